"""Rows that are too large for memory: each field is decoded, checked, counted and encoded strip by strip.

A kind of field sees each strip as a small picture, or as a volume of few slices. What it finds is added up, so that
the row, its checksums and its statistics are the same as if it had been built at once.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from functools import reduce
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray
from zlib_ng.zlib_ng import crc32, crc32_combine

from packer.decoding.decode import header_of
from packer.decoding.header import BandFiles, Header, Strip
from packer.decoding.raw_file import naming
from packer.errors import BadPair
from packer.pixels.encode import Encoded, encode_strip, psnr
from packer.pixels.image_hash import hash_of, is_same, step_of
from packer.pixels.label_rules import BINARY, LabelRules
from packer.pixels.tile_table import TileTable
from packer.publish.atomic import target_errors
from packer.recipe.field_rule import FieldRule
from packer.recipe.source import Given, Lines, Slices
from packer.shards.cell_files import row_cells
from packer.shards.kinds import FieldKind
from packer.shards.kinds.by_field import check_row
from packer.shards.label_mask import LabelMask
from packer.shards.one_row import of_one_row
from readers.contract import giant
from readers.contract.cells import is_counted
from readers.contract.count_cells import RowCells, merged
from readers.contract.fields import Field
from readers.contract.statistics import FieldStatistics
from readers.contract.tile_grid import TileGrid
from readers.contract.tiles import Size
from readers.formats.large_rows import is_large, strips
from readers.formats.shard import Shard
from readers.formats.tiled_rows import grid_of


def is_giant(fields: Sequence[Field], size: Size | None) -> bool:
    """Return whether a row that keeps this size is built strip by strip."""
    if size is None or not may_be_giant(fields) or not all(field.size in (None, size) for field in fields):
        return False
    return sum(field.row_bytes_at(*size) for field in fields) > giant.GIANT


def may_be_giant(fields: Sequence[Field]) -> bool:
    """Return whether large rows of these fields are built strip by strip: all of them must be in tiles."""
    return all(field.is_tiled for field in fields)


class StoredInFile(NamedTuple):
    """The facts of a field of a row that is stored in a file."""

    crc32: int
    """The checksum of the stored bytes."""
    statistics: FieldStatistics
    psnr: int
    look: str
    """The hash of a picture."""
    header: Header | None = None
    """The header of the picture, if it is one."""
    cells: RowCells | None = None
    """The cells of a field with classes."""


class StripMask(NamedTuple):
    """The strips of a label are ignored where the picture has no data."""

    mask: LabelMask
    picture: Lines


def build(
    rule: FieldRule, kind: FieldKind, lines: Lines, name: str, path: Path, mask: StripMask | None
) -> StoredInFile:
    """Store a field of a row in a file. Raise BadPair with the name of what it was read from. Close the mask."""
    field, pixels = rule.field, math.prod(lines.size)
    grid = grid_of(field, field.row_shape(*lines.size))
    raw, statistics, header = _Raw(field, lines.size), list[FieldStatistics](), None
    cells = list[RowCells]()
    kept = lines.stored(field) if rule.jpeg is not None and rule.jpeg.keep else None
    parts = closing(_decoded(lines, list(grid.strips), name))
    masked = nullcontext() if mask is None else closing(mask.picture)
    with target_errors(path.parent.parent), path.open("wb") as file, parts as decoded_strips, masked:
        tiles = _Tiles(file, rule, grid.count) if kept is None else _Kept(file, kept)
        for strip, data in decoded_strips:
            with naming(name), counted_from(strip.start, data):
                check_reading(rule, data)
                numbers = np.empty(field.row_shape(strip.stop - strip.start, *lines.size[1:]), field.dtype)
                decoded = kind.decode(data)
                if mask is not None:
                    decoded = mask.mask.in_strip(decoded, mask.picture, strip)
                stored = kind.store(decoded, None, numbers)
            raw.add(strip.start, numbers, stored.planes)
            if is_counted(field):
                cells.append(row_cells(field, numbers, strip.start))
            header = header_of(data) if isinstance(data, (Strip, BandFiles)) else None
            lossy = list[FieldStatistics]()
            for line in _lines_of_tiles(field, numbers):
                with naming(name), counted_from(strip.start, data):
                    encoded = tiles.encoded(line)
                file.write(encoded.stored)  # not the fault of the picture if the disk is full
                if encoded.numbers is not None:
                    lossy.append(check_row(field, encoded.numbers))
            statistics += lossy or [stored.statistics]
            del data, numbers, decoded, stored, line, encoded  # the next strip takes their memory
        checksum = tiles.end()
    quality = psnr(tiles.squares, pixels * field.numbers)
    counted = merged(cells) if cells else None
    return StoredInFile(checksum, of_one_row(statistics, pixels), quality, raw.look, header, counted)


def _decoded(lines: Lines, strips: Sequence[slice], name: str) -> Generator[tuple[slice, Given], None, None]:
    """Yield the lines of each strip. Another thread decodes the lines of the next one in the meantime."""
    with ThreadPoolExecutor(1) as pool:
        ahead = pool.submit(lines.lines, strips[0].start, strips[0].stop)
        for strip, following in zip(strips, [*strips[1:], None], strict=True):
            with naming(name):
                data = ahead.result()
            if following is not None:
                ahead = pool.submit(lines.lines, following.start, following.stop)
            yield strip, data


def _lines_of_tiles(field: Field, strip: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield a strip; of a slab the parts that are as high as a tile, in the order of their tiles."""
    if not field.is_volume:
        yield strip
        return
    assert field.tile is not None, "giant rows are in tiles"
    for cut in TileGrid(strip.shape[-2:-1], field.tile[-2:-1]).strips:
        yield strip[..., cut, :]


class _Tiles:
    """Encodes the tiles of a row, which are written behind the place of their table, and writes the table."""

    def __init__(self, file: BinaryIO, rule: FieldRule, tiles: int) -> None:
        self._file, self._rule, self._table = file, rule, TileTable(tiles)
        self._start, self._crc32, self.squares = file.seek(len(self._table.to_bytes())), 0, 0

    def encoded(self, numbers: NDArray[Any]) -> Encoded:
        """Return what is to be written of the next strip."""
        encoded = encode_strip(self._rule.field, self._rule.jpeg, numbers, self._table)
        self._crc32, self.squares = crc32(encoded.stored, self._crc32), self.squares + encoded.squares
        return encoded

    def end(self) -> int:
        """Write the table, and return the checksum of the row."""
        length, table = self._file.tell() - self._start, self._table.to_bytes()
        self._file.seek(0)
        self._file.write(table)
        return crc32_combine(crc32(table), self._crc32, length)


class _Kept:
    """Writes the bytes of a row that is stored in these tiles before."""

    squares = 0

    def __init__(self, file: BinaryIO, stored: NDArray[np.uint8]) -> None:
        self._file, self._stored = file, stored

    def encoded(self, numbers: NDArray[Any]) -> Encoded:
        return Encoded(b"")

    def end(self) -> int:
        self._file.write(self._stored.data)
        return crc32(self._stored.data)


def stored_statistics(shard: Shard, field: Field, row: int) -> FieldStatistics:
    """Return the statistics of a stored row; raise BadPair if it has impossible numbers."""
    if not is_large(shard, field, row):
        return check_row(field, shard.row(field, row))
    counts = [check_row(field, lines) for _, lines in strips(shard, field, row)]
    return of_one_row(counts, math.prod(shard.size(row)))


@contextmanager
def counted_from(top: int, data: Given) -> Iterator[None]:
    """Add to a reason from where its positions are counted. Slices are named by their numbers."""
    try:
        yield
    except BadPair as bad:
        if not top or isinstance(data, Slices):
            raise
        raise BadPair(f"{bad} (rows are counted from row {top} of the picture)") from None


def check_reading(rule: FieldRule, data: Given) -> None:
    """Refuse a label if only the whole picture shows how to read it."""
    is_binary = isinstance(rule.read, LabelRules) and rule.read.codec == BINARY
    if is_binary and isinstance(data, Strip) and data.header.has_palette:
        raise BadPair("has a palette, and is too large to find out whether its colours are gray; save it as gray")


class _Raw:
    """The checksum of the raw bytes of a row, and what its hash is made of."""

    def __init__(self, field: Field, size: Size) -> None:
        self._crcs = [0] * field.numbers
        self._plane_bytes = field.row_bytes_at(*size) // field.numbers
        self._step = step_of(size[-2:])
        self._middle = size[0] // 2 if len(size) > 2 else None
        """The slice of a volume that makes the hash."""
        self._samples: list[NDArray[Any]] = []
        self._first: NDArray[Any] | None = None
        self._has_one_colour = True

    def add(self, top: int, numbers: NDArray[Any], planes: NDArray[Any] | None) -> None:
        """Take the numbers that are stored of the next strip; of a picture also the planes that they were made of."""
        per_plane = numbers.reshape(len(self._crcs), -1)
        self._crcs = [crc32(plane.data, crc) for plane, crc in zip(per_plane, self._crcs, strict=True)]
        if planes is None:
            return
        self._samples.append(self._sample(top, planes))
        if self._first is None:
            self._first = planes[(slice(None), *[slice(1)] * (planes.ndim - 1))].copy()
        self._has_one_colour = self._has_one_colour and is_same(planes, self._first)

    def _sample(self, top: int, planes: NDArray[Any]) -> NDArray[Any]:
        """Return the lines of a strip that the hash is made of; of a volume the lines of its middle slice."""
        first = -top % self._step
        if self._middle is not None:
            here = top <= self._middle < top + planes.shape[1]
            first, planes = 0, planes[:, self._middle - top] if here else planes[:, 0, :0]
        return planes[:, first :: self._step, :: self._step].copy()  # a view would keep the strip

    @property
    def look(self) -> str:
        """The hash of a picture; nothing of other fields."""
        if not self._samples:
            return ""
        checksum = reduce(lambda ours, crc: crc32_combine(ours, crc, self._plane_bytes), self._crcs)
        return hash_of(checksum, np.concatenate(self._samples, 1), lambda: self._has_one_colour)
