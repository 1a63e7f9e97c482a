"""Keep thin objects at the stored size: an object that fills no stored pixel gets those that it crosses.

A label is sampled: a stored pixel, its cell of the picture, shows what the pixel in the middle of the cell shows. A
wire of one pixel may lie between all of these. So the sampled pixels are changed before the label is sampled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from packer.annotations.annotation import Mask

RULE = "thin objects 1"
"""The words of the recipe. They change when the pixels do."""
SHARE = 3
"""A thin object gets each cell in which it has at least a third of the pixels that it has where it has most."""


class Cells(NamedTuple):
    """For each row and each column of a picture the one that is sampled for its cell. Both ascend.

    Where the picture is cut and has no cells, it is one out of the picture.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]


def keep_thin(top: NDArray[Any], cells: Cells) -> None:
    """Give each thin object of a picture, which has the number of an object in each pixel, the cells that it crosses.

    It keeps the sampled pixels that it has. Of two that cross a cell the one with more pixels gets it, then the later
    one. An object that fills a cell is not thin, and loses no cell that it fills.
    """
    parts = [np.flatnonzero((each >= 0) & (each < side)) for each, side in zip(cells, top.shape, strict=True)]
    if not all(map(len, parts)):
        return
    (first, last), (left, right) = ((each[0], each[-1]) for each in parts)
    top = top[first : last + 1, left : right + 1]
    cells = Cells(cells.rows[first : last + 1] - first, cells.columns[left : right + 1] - left)
    is_thin = _thin(top, cells)
    rows, columns = np.divmod(np.flatnonzero(is_thin.take(top)), top.shape[1])
    numbers = top[rows, columns].astype(np.int64)
    cell = cells.rows[rows] * top.shape[1] + cells.columns[columns]
    crossings, counts = np.unique(numbers * top.size + cell, return_counts=True)
    numbers, cell = np.divmod(crossings, top.size)
    most = np.zeros(len(is_thin), np.int64)
    np.maximum.at(most, numbers, counts)
    at = np.divmod(cell, top.shape[1])
    gets = np.flatnonzero((SHARE * counts >= most[numbers]) & ~is_thin[top[at]])
    gets = gets[np.argsort(counts[gets], kind="stable")]  # the last one of a cell gets it
    top[at[0][gets], at[1][gets]] = numbers[gets]


def with_crossed(mask: Mask, cells: Cells) -> Mask:
    """Return the pixels of an object, with the sampled ones of the cells that it crosses if it is thin."""
    if not mask.inside.size:
        return mask
    height, width = mask.inside.shape
    (top, bottom), (left, right) = _whole(mask.top, height, cells.rows), _whole(mask.left, width, cells.columns)
    inside = np.zeros((bottom - top, right - left), np.uint8)
    inside[mask.top - top :, mask.left - left :][:height, :width] = mask.inside
    keep_thin(inside, Cells(cells.rows[top:bottom] - top, cells.columns[left:right] - left))
    return Mask(top, left, inside.view(np.bool_))


def _thin(top: NDArray[Any], cells: Cells) -> NDArray[np.bool_]:
    """Return for each object whether it fills no cell, and False for 0."""
    low, high = (
        _of_cells(_of_cells(top, cells.rows, 0, part), cells.columns, 1, part) for part in (np.minimum, np.maximum)
    )
    is_thin = np.ones(int(top.max()) + 1, np.bool_)
    is_thin[low[low == high]] = False
    is_thin[0] = False
    return is_thin


def _of_cells(top: NDArray[Any], lines: NDArray[np.int64], axis: int, part: np.ufunc) -> NDArray[Any]:
    """Return the least or the largest number of each cell along an axis. `reduceat` takes ten times as long."""
    first = np.flatnonzero(np.diff(lines, prepend=-1))
    last = np.append(first[1:], len(lines)) - 1
    found = top.take(first, axis)
    for step in range(1, int((last - first).max()) + 1):
        part(found, top.take(np.minimum(first + step, last), axis), out=found)
    return found


def _whole(start: int, length: int, lines: NDArray[np.int64]) -> tuple[int, int]:
    """Return the part of a side that has all cells of a part of it."""
    first, end = np.searchsorted(lines, lines[start]), np.searchsorted(lines, lines[start + length - 1], "right")
    return int(first), int(end)
