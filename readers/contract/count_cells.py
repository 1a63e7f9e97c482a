"""Count the pixels of each class in each cell of a label: cells are 64 x 64 pixels, in volumes 16 x 16 x 16."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readers.contract.kernels import fits_kernels, kernel

KERNEL = kernel("readers.contract.cells_kernel")
CELL = {2: (64, 64), 3: (16, 16, 16)}
"""The sides of a cell, by the sides of a row."""
CELL_PIXELS = 4096
AT_ONCE = 1 << 22
"""The numbers of a table of cells by classes that is in memory."""


class RowCells(NamedTuple):
    """The cells of a row in which a class occurs, by class and then by number, each with its pixels of the class."""

    classes: NDArray[np.uint16]
    cells: NDArray[np.uint32]
    """The numbers of cells, counted along the last side first."""
    pixels: NDArray[np.uint16]


def grid(sides: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many cells a row has on each side."""
    return tuple(-(-side // length) for side, length in zip(sides, CELL[len(sides)], strict=True))


def count_cells(index: NDArray[Any], classes: int, first: int = 0) -> RowCells:
    """Count the numbers of a label, or of the part of one whose first side begins at `first`. Other numbers count
    nowhere."""
    return merged(_parts(index, classes, first))


def count_pixels(index: NDArray[Any], classes: int) -> NDArray[np.int64]:
    """Return the pixels of each class in a label. The slices of a volume are counted as one picture."""
    table = _table(index.reshape(-1, index.shape[-1]), classes)
    total: NDArray[np.int64] = table.reshape(-1, classes).sum(axis=0, dtype=np.int64)
    return total


def merged(parts: Iterable[RowCells]) -> RowCells:
    """Return the cells of a row that was counted in parts. A cell in two of them has the sum of its pixels."""
    listed = list(parts)
    if len(listed) == 1:
        return listed[0]
    classes, cells, pixels = (np.concatenate(arrays) for arrays in zip(*listed, strict=True))
    order = np.lexsort((cells, classes))
    classes, cells, pixels = classes[order], cells[order], pixels[order]
    is_other = (classes[1:] != classes[:-1]) | (cells[1:] != cells[:-1])
    starts = np.flatnonzero(np.concatenate([np.ones(min(1, len(cells)), np.bool_), is_other]))
    sums = np.add.reduceat(pixels, starts) if len(starts) else pixels
    return RowCells(classes[starts], cells[starts], sums)


def _parts(index: NDArray[Any], classes: int, first: int) -> Iterator[RowCells]:
    """Yield the counts of parts whose tables fit in memory. A part begins where a line of cells does, or at `first`."""
    length, in_line = CELL[index.ndim][0], math.prod(grid(index.shape)[1:])
    start, stop, many = first, first + len(index), max(1, AT_ONCE // (classes * in_line))
    while start < stop or start == first:
        line, inside = divmod(start, length)
        end = min(stop, (line + (1 if inside else many)) * length)
        table = _table(index[start - first : end - first], classes).reshape(-1, classes)
        present, cells = table.T.nonzero()
        yield RowCells(present.astype(np.uint16), (cells + line * in_line).astype(np.uint32), table[cells, present])
        start = max(end, start + 1)


def _table(index: NDArray[Any], classes: int) -> NDArray[np.uint16]:
    """Return the pixels of each class (last axis) in each cell."""
    sides = CELL[index.ndim]
    table = np.zeros((*grid(index.shape), classes), np.uint16)
    for deep, picture in enumerate(index if index.ndim > 2 else index[None]):
        counts = table[deep // sides[0]] if index.ndim > 2 else table
        if KERNEL is not None and fits_kernels(picture):
            KERNEL.count(picture, counts, *sides[-2:])
        else:
            counts += _counted(picture, counts.shape, sides[-2:])
    return table


def _counted(index: NDArray[Any], shape: tuple[int, ...], sides: tuple[int, ...]) -> NDArray[np.uint16]:
    """Do the same as the kernel."""
    down, across, classes = shape
    lines, columns = (np.arange(length) // side for length, side in zip(index.shape, sides, strict=True))
    places = (lines[:, None] * across + columns) * classes + index
    counts = np.bincount(places[index < classes], minlength=down * across * classes)
    return counts.reshape(shape).astype(np.uint16)
