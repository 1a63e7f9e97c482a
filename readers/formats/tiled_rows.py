"""Rows in tiles: their table, and the tiles that a part of a row touches."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import DamagedError
from readers.contract.fields import JPEG, RAW, Field
from readers.contract.tile_grid import ALIGNED, END_BYTES, Area, TileGrid, aligned, common, shape_of
from readers.formats.jpeg_parts import decode_part
from readers.formats.unpack import decode_jpeg, not_the_row, scratch, split, unpack, unpack_bytes

BANDS_OF_SPLIT = 3
ReadBytes = Callable[[int, int], NDArray[np.uint8]]
"""`read(start, stop)` returns bytes of a row."""


def grid_of(field: Field, shape: tuple[int, ...]) -> TileGrid:
    """Return the tiles of a row of this shape."""
    assert field.tile is not None, "the manifest was checked"
    return TileGrid(shape[-len(field.tile) :], field.tile)


def check_tiles(field: Field, stored: NDArray[np.uint8], shape: tuple[int, ...]) -> None:
    """Raise DamagedError if the ends of the tiles do not ascend to the end of the row."""
    grid = grid_of(field, shape)
    ends = _ends(field, stored, grid).astype(np.uint64)
    starts = np.concatenate([[np.uint64(grid.table_bytes)], np.minimum(ends[:-1], np.uint64(len(stored)))])
    starts += -starts % np.uint64(ALIGNED)
    if ends[-1] != len(stored) or not (starts < ends).all():
        raise _damaged_table(field, stored)


def unpack_row(field: Field, stored: NDArray[np.uint8], out: NDArray[Any]) -> None:
    """Write an encoded row, in tiles or not, into a contiguous array. Raise DamagedError if it has another shape."""
    if field.is_tiled:
        unpack_tiles(field, stored, out.shape, grid_of(field, out.shape).whole, out)
    else:
        unpack(field, stored, out)


def unpack_part(field: Field, stored: NDArray[np.uint8], shape: tuple[int, ...], part: Area, out: NDArray[Any]) -> None:
    """Write a part of a row of this shape, in tiles or a JPEG file, into an array. Only what it touches is read, if it
    stands alone.

    Raise DamagedError if that is damaged, or the row has another shape."""
    if field.is_tiled:
        unpack_tiles(field, stored, shape, part, out)
        return
    pixels = decode_part(stored, shape, part)
    if pixels is None:
        raise not_the_row(field, shape)
    _copy(out, pixels)


def unpack_tiles(
    field: Field, stored: NDArray[np.uint8], shape: tuple[int, ...], part: Area, out: NDArray[Any]
) -> None:
    """Write a part of a row of this shape into an array. Only the tiles that it touches are read.

    Raise DamagedError if one of them is outside the row, or does not have its numbers."""
    grid = grid_of(field, shape)
    ends = _ends(field, stored, grid)
    for number, area in grid.touched(part):
        sides = *field.planes, *shape_of(area)
        tile = _tile(field, _bytes(field, stored, ends, number), sides)
        if tile is None:
            raise DamagedError(
                f"tile {number + 1} of {grid.count} of its {field.name!r} is not stored as {field.unit_encoding} of "
                f"{'x'.join(map(str, sides))} numbers"
            )
        target, inside = common(part, area)
        _copy(out[target], tile[inside])


def spans_of_tiles(grid: TileGrid, part: Area, size: int, read: ReadBytes) -> list[tuple[int, int]]:
    """Return where in a row of this size the tiles begin and end that a part touches. Those that follow each other are
    one span. Only their ends in the table are read, by `read(start, stop)`. A damaged table has no tiles."""
    numbers = [] if size <= grid.table_bytes else [number for number, _ in grid.touched(part)]
    if not numbers:
        return []
    first = max(0, numbers[0] - 1)
    ends = read(END_BYTES * first, END_BYTES * (numbers[-1] + 1)).view("<u8").tolist()
    spans: list[tuple[int, int]] = []
    for number in numbers:
        start, stop = aligned(ends[number - 1 - first] if number else grid.table_bytes), ends[number - first]
        if not start < stop <= size:
            return []
        if spans and start == aligned(spans[-1][1]):
            start = spans.pop()[0]
        spans.append((start, stop))
    return spans


def _ends(field: Field, stored: NDArray[np.uint8], grid: TileGrid) -> NDArray[np.uint64]:
    """Return the table of a row, if the row is longer: so the tiles of a row are never more than its bytes."""
    if len(stored) <= grid.table_bytes:
        raise _damaged_table(field, stored)
    return stored[: grid.table_bytes].view("<u8")


def _bytes(field: Field, stored: NDArray[np.uint8], ends: NDArray[np.uint64], number: int) -> NDArray[np.uint8]:
    """Return the stored bytes of a tile."""
    start, stop = aligned(int(ends[number - 1]) if number else ends.nbytes), int(ends[number])
    if not start < stop <= len(stored) or (number == len(ends) - 1 and stop != len(stored)):
        raise _damaged_table(field, stored)
    return stored[start:stop]


def _damaged_table(field: Field, stored: NDArray[np.uint8]) -> DamagedError:
    return DamagedError(f"the ends of the tiles of its {field.name!r} do not fit to its {len(stored)} bytes")


def _tile(field: Field, stored: NDArray[np.uint8], shape: tuple[int, ...]) -> NDArray[Any] | None:
    """Return the numbers of a tile, a view of its bytes or of memory of this thread; None if it has others."""
    size = math.prod(shape) * np.dtype(field.dtype).itemsize
    if field.unit_encoding == RAW:
        return stored.view(field.dtype).reshape(shape) if len(stored) == size else None
    if field.unit_encoding == JPEG:
        pixels = decode_jpeg(stored, shape)
        return None if pixels is None else pixels.transpose(2, 0, 1)
    numbers = scratch(size).view(field.dtype).reshape(shape)
    return numbers if unpack_bytes(field.unit_encoding, stored, numbers) else None


def _copy(out: NDArray[Any], numbers: NDArray[Any]) -> None:
    """Copy numbers, also of interleaved pixels."""
    if numbers.ndim == BANDS_OF_SPLIT == len(numbers) and numbers.strides[0] == numbers.itemsize == 1:
        split(numbers.transpose(1, 2, 0), out)
    else:
        np.copyto(out, numbers)
