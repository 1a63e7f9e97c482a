"""The slices of a volume: rows of two sides, along D."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.fields import Field
from readers.contract.tile_grid import Area


def slices_of(field: Field, row: NDArray[Any]) -> NDArray[Any]:
    """Return a view of a volume's row whose first axis are its slices: (D, …, H, W)."""
    return np.moveaxis(row, len(field.planes), 0)


def picture_in(field: Field, row: NDArray[Any]) -> NDArray[Any]:
    """Return the part of a row that is shown as its picture: the middle slice of a volume, or the row itself."""
    if row.ndim - len(field.planes) == 2:
        return row
    slices = slices_of(field, row)
    middle: NDArray[Any] = slices[len(slices) // 2]
    return middle


def spans_of_lines(shape: tuple[int, ...], part: Area, item: int) -> Iterator[tuple[int, int]]:
    """Yield where in the bytes of a raw volume the lines of a part begin and end, slice by slice."""
    *_, depth, height, width = shape
    deep, lines, _ = part
    for plane in range(math.prod(shape[:-3])):
        for number in range(deep.start, deep.stop):
            start = (plane * depth + number) * height
            yield (start + lines.start) * width * item, (start + lines.stop) * width * item
