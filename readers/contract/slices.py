"""The slices of a volume: rows of two sides, along D. `Cut`: a plane through a volume along any side."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readers.contract.fields import Field
from readers.contract.tile_grid import Area


class Cut(NamedTuple):
    """A plane through a volume, at an index of one of its sides: depth is 0, height 1, width 2."""

    side: int
    at: int

    @classmethod
    def middle(cls, sides: tuple[int, ...]) -> Cut:
        """Return the plane that is shown as the picture of a volume: its middle slice."""
        return cls(0, sides[0] // 2)


def slices_of(field: Field, row: NDArray[Any]) -> NDArray[Any]:
    """Return a view of a volume's row whose first axis are its slices: (D, …, H, W)."""
    return np.moveaxis(row, len(field.planes), 0)


def picture_in(field: Field, row: NDArray[Any], cut: Cut | None = None) -> NDArray[Any]:
    """Return the part of a row that is shown as its picture: a plane of a volume, or the row itself."""
    planes = len(field.planes)
    if row.ndim - planes == 2:
        return row
    side, at = cut or Cut.middle(row.shape[planes:])
    plane: NDArray[Any] = np.moveaxis(row, planes + side, 0)[at]
    return plane


def spans_of_lines(shape: tuple[int, ...], part: Area, item: int) -> Iterator[tuple[int, int]]:
    """Yield where in the bytes of a raw volume the lines of a part begin and end, slice by slice."""
    *_, depth, height, width = shape
    deep, lines, _ = part
    for plane in range(math.prod(shape[:-3])):
        for number in range(deep.start, deep.stop):
            start = (plane * depth + number) * height
            yield (start + lines.start) * width * item, (start + lines.stop) * width * item
