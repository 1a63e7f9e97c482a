"""Bring numbers that must not be mixed to the stored size: each stored pixel is one of the source."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from packer.pixels.placement import Placement

Lines = NDArray[np.int64]


@lru_cache(maxsize=64)
def nearest_source(source: int, target: int) -> Lines:
    """Return the source pixel of each target pixel: the one under its centre, src = (2i+1)*S // (2*D)."""
    return (2 * np.arange(target, dtype=np.int64) + 1) * source // (2 * target)


class StoredLines(NamedTuple):
    """The rows and columns of a picture that are stored."""

    rows: Lines
    columns: Lines


def stored_lines(placement: Placement) -> StoredLines:
    """Return the rows and the columns of the source that are stored."""
    rows, columns = (
        nearest_source(source, target)[part]
        for source, target, part in zip(placement.source, placement.scaled, placement.taken, strict=True)
    )
    return StoredLines(rows, columns)


def store_nearest(numbers: NDArray[Any], placement: Placement, fill: float, out: NDArray[Any]) -> None:
    """Write the nearest pixels of (…,H,W) numbers of any type into `out` of the same type, with `fill` around them."""
    if placement.is_filled:
        out[...] = fill
    target = out[(..., *placement.region)]
    if placement.scaled == placement.source:
        np.copyto(target, numbers[(..., *placement.taken)], casting="no")
        return
    rows, columns = stored_lines(placement)
    np.copyto(target, numbers.take(rows, axis=-2).take(columns, axis=-1), casting="no")
