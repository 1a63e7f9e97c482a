"""Scale measured values linearly, over the pixels that have one: a mean with missing values would be made up.

readers/contract/FORMAT.md defines it. On a side of S pixels that becomes D, the centre of pixel i lies `(2i+1)*S - D`
units of 1 / 2D behind the centre of the first source pixel. The two nearest source pixels weigh what is missing to 2D.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.pixels.nearest_lines import store_nearest
from packer.pixels.placement import Placement

RULE = "valid mean 1"
"""The name of this definition in recipes."""
Lines = NDArray[np.int64]


def is_valid(values: NDArray[Any], fill: float) -> NDArray[np.bool_]:
    """Return which numbers are not `fill`, which may be NaN."""
    return np.asarray(~np.isnan(values) if np.isnan(fill) else values != values.dtype.type(fill), np.bool_)


def store_valid_mean(values: NDArray[Any], placement: Placement, fill: float, out: NDArray[Any]) -> None:
    """Write (H,W) values, in which `fill` marks a missing one, into `out` (h,w) of the same type.

    Each weighted sum has four products, added in the order of the rows, then of the columns.
    """
    if placement.scaled == placement.source:
        store_nearest(values, placement, fill, out)
        return
    if placement.is_filled:
        out[...] = fill
    valid = is_valid(values, fill)
    numbers = np.where(valid, values, 0).astype(np.float64)
    sides = [
        _neighbours(source, scaled)[:, part]
        for source, scaled, part in zip(placement.source, placement.scaled, placement.taken, strict=True)
    ]
    (*rows, top, bottom), (*columns, left, right) = sides
    sums, weights = (np.zeros((len(top), len(left))) for _ in range(2))
    for row, tall in zip(rows, (top, bottom), strict=True):
        for column, wide in zip(columns, (left, right), strict=True):
            weight = (tall[:, None] * wide) * valid.take(row, 0).take(column, 1)
            sums += weight * numbers.take(row, 0).take(column, 1)
            weights += weight
    is_enough = 2 * weights >= 4 * placement.scaled[0] * placement.scaled[1]
    means = np.divide(sums, weights, out=np.zeros_like(sums), where=is_enough)
    means = np.rint(means) if out.dtype.kind != "f" else means
    out[placement.region] = np.where(is_enough, means, fill).astype(out.dtype)


def _neighbours(source: int, target: int) -> Lines:
    """Return four lines: the two nearest source pixels of each target pixel, and their weights in units of 1 / 2D."""
    first, second = np.divmod((2 * np.arange(target, dtype=np.int64) + 1) * source - target, 2 * target)
    pixels = np.stack([first, first + 1]).clip(0, source - 1)
    return np.concatenate([pixels, [2 * target - second, second]])
