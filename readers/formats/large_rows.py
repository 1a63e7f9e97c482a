"""Rows in tiles that are too large for memory: read strip by strip, or only at some points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.fields import Field
from readers.formats.shard import Shard
from readers.formats.tiled_rows import check_tiles, grid_of

LARGE = 256 << 20
"""Fields of rows with more raw bytes are not read at once."""
SIDES = 2

Lines = NDArray[np.int64]
"""The numbers of rows or of columns, ascending."""


def is_large(shard: Shard, field: Field, row: int) -> bool:
    """Return whether a field of a row is read in parts: it is in tiles, and too large for memory."""
    size = shard.size(row)
    return field.is_tiled and len(size) == SIDES and field.row_bytes_at(*size) > LARGE


def strips(shard: Shard, field: Field, row: int) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Yield all lines of a row in tiles, a tile high at a time, and which lines they are. Its table is checked."""
    shape = field.row_shape(*shard.size(row))
    with shard.naming(row):
        check_tiles(field, shard.stored(field, row), shape)
    grid = grid_of(field, shape)
    for strip in grid.strips:
        yield strip, shard.window(field, row, (strip, *grid.whole[1:]))


def at_points(shard: Shard, field: Field, row: int, down: Lines, across: Lines) -> NDArray[Any]:
    """Return the numbers of a row in tiles where these rows and columns cross."""
    out = np.empty((*field.planes, len(down), len(across)), field.dtype)
    grid = grid_of(field, field.row_shape(*shard.size(row)))
    for strip in grid.strips:
        first, last = np.searchsorted(down, (strip.start, strip.stop)).tolist()
        if first < last:
            lines = shard.window(field, row, (strip, *grid.whole[1:]))
            out[..., first:last, :] = lines[..., down[first:last, None] - strip.start, across]
    return out


def reduced(shard: Shard, field: Field, row: int, most: tuple[int, ...]) -> NDArray[Any]:
    """Return a row; if it is too large for memory, at most so many of its rows and columns, evenly taken."""
    if not is_large(shard, field, row):
        return shard.pixels(field, row)
    down, across = (_middles(side, min(side, count)) for side, count in zip(shard.size(row), most, strict=True))
    return at_points(shard, field, row, down, across)


def _middles(side: int, count: int) -> Lines:
    return np.asarray((2 * np.arange(count) + 1) * side // (2 * count), np.int64)
