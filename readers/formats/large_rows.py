"""Rows in tiles that are too large for memory: read strip by strip, or only at some points.

A strip is as high as a tile. A strip of a volume is as deep as a tile. Its picture is its middle slice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract import giant
from readers.contract.fields import Field
from readers.contract.slices import Cut
from readers.contract.tile_grid import TileGrid
from readers.formats.shard import Shard
from readers.formats.tiled_rows import check_tiles, grid_of

Lines = NDArray[np.int64]
"""The numbers of rows or of columns, ascending."""


def is_large(shard: Shard, field: Field, row: int) -> bool:
    """Return whether a field of a row is read in parts: it is in tiles, and too large for memory."""
    return field.is_tiled and field.row_bytes_at(*shard.size(row)) > giant.GIANT


def strips(shard: Shard, field: Field, row: int) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Yield all strips of a row in tiles, and where on its first side they lie. Its table is checked."""
    shape = field.row_shape(*shard.size(row))
    with shard.naming(row):
        check_tiles(field, shard.stored(field, row), shape)
    grid = grid_of(field, shape)
    for strip in grid.strips:
        yield strip, shard.window(field, row, (strip, *grid.whole[1:]))


def at_points(shard: Shard, field: Field, row: int, down: Lines, across: Lines) -> NDArray[Any]:
    """Return the numbers of a picture in tiles where these rows and columns cross."""
    out = np.empty((*field.planes, len(down), len(across)), field.dtype)
    *middle, (height, width) = *_middle(shard, row), shard.size(row)[-2:]
    assert field.tile is not None, "the manifest was checked"
    for strip in TileGrid((height,), field.tile[-2:-1]).strips:
        first, last = np.searchsorted(down, (strip.start, strip.stop)).tolist()
        if first < last:
            lines = shard.window(field, row, (*middle, strip, slice(0, width)))
            lines = lines.reshape(*field.planes, -1, width)
            out[..., first:last, :] = lines[..., down[first:last, None] - strip.start, across]
    return out


def picture(shard: Shard, field: Field, row: int, cut: Cut | None = None) -> NDArray[Any]:
    """Return the picture of a row, or a plane of a volume: copy from it, do not keep it. Tiles next to it are not
    read."""
    sides = list(shard.size(row))
    part = [slice(0, side) for side in sides]
    if len(sides) > 2:
        side, index = cut or Cut.middle(tuple(sides))
        part[side] = slice(index, index + 1)
        del sides[side]
    return shard.window(field, row, tuple(part)).reshape(*field.planes, *sides)


def has_large_picture(shard: Shard, field: Field, row: int, cut: Cut | None = None) -> bool:
    """Return whether even the picture of a row, or the plane of a volume, is too large for memory."""
    sides = list(shard.size(row))
    if len(sides) > 2:
        del sides[0 if cut is None else cut.side]
    return field.is_tiled and field.row_bytes_at(*sides) > giant.GIANT


def reduced(shard: Shard, field: Field, row: int, most: tuple[int, ...]) -> NDArray[Any]:
    """Return a row; if it is too large for memory, its picture with at most this number of rows and columns."""
    if not is_large(shard, field, row):
        return shard.pixels(field, row)
    down, across = (_middles(side, min(side, count)) for side, count in zip(shard.size(row)[-2:], most, strict=True))
    return at_points(shard, field, row, down, across)


def _middle(shard: Shard, row: int) -> tuple[slice, ...]:
    """Return where the middle slice of a volume is on its first side; nothing for a picture."""
    return tuple(slice(side // 2, side // 2 + 1) for side in shard.size(row)[:-2])


def _middles(side: int, count: int) -> Lines:
    return np.asarray((2 * np.arange(count) + 1) * side // (2 * count), np.int64)
