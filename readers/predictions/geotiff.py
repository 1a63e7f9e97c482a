"""GeoTIFF in tiles that are compressed by deflate; BigTIFF where 4 GB may not be enough. The directory comes first."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray
from zlib_ng import zlib_ng

from readers.contract.classes import ClassTable
from readers.contract.errors import RequestError
from readers.contract.place import GEO, Place, System
from readers.machine import usable_cores

TILE = 256
LEVEL = 6
MOST_CLASSIC = (1 << 32) - (1 << 26)
"""The most bytes of numbers in a classic TIFF, whose offsets have 32 bits."""
_SHORT, _LONG, _DOUBLE, _ASCII, _LONG8 = 3, 4, 12, 2, 16
_LETTERS = {_SHORT: "H", _LONG: "I", _DOUBLE: "d", _LONG8: "Q"}
_OFFSETS, _COUNTS = 324, 325
_DEFLATE, _SEPARATE = 8, 2
_GRAY, _RGB, _PALETTE = 1, 2, 3
_FORMS = {"u": 1, "i": 2, "f": 3}
_MODEL, _RASTER, _GEOGRAPHIC, _PROJECTED = 1024, 1025, 2048, 3072
_AREA = 1
_FIRST_GEOGRAPHIC, _BEHIND_GEOGRAPHIC = 4000, 5000
"""EPSG has the codes of coordinate systems in degrees between these. It counts for a place that no file has made."""


class WrittenPicture(NamedTuple):
    """A picture that is written: (bands, height, width) of one dtype."""

    shape: tuple[int, int, int]
    dtype: np.dtype[Any]
    place: Place | None = None
    classes: ClassTable | None = None
    no_data: float | None = None
    is_rgb: bool = False
    """True if the three bands are red, green and blue."""

    @property
    def lines(self) -> list[range]:
        """The rows of each line of tiles."""
        height = self.shape[1]
        return [range(top, min(top + TILE, height)) for top in range(0, height, TILE)]


def check(dtype: np.dtype[Any], place: Place | None) -> None:
    """Refuse numbers and places that a GeoTIFF cannot have."""
    if dtype.kind not in _FORMS:
        raise RequestError(f"TIFF has no numbers of {dtype}")
    if place is not None and place.kind != GEO:
        raise RequestError("the place of a volume does not fit into a TIFF; write a .nii.gz")


def write(file: BinaryIO, picture: WrittenPicture, lines: Iterable[NDArray[Any]]) -> None:
    """Write a picture. `lines` gives the rows of each line of tiles, band after band."""
    bands, height, width = picture.shape
    count = bands * -(-height // TILE) * -(-width // TILE)
    is_big = picture.dtype.itemsize * bands * height * width > MOST_CLASSIC
    directory = _Directory(is_big)
    tables = directory.write(file, [*_tags(picture, count), (_OFFSETS, directory.word, [0] * count)])
    offsets, counts = [], []
    with ThreadPoolExecutor(usable_cores()) as threads:
        for line in lines:
            for tile in threads.map(_packed, _tiles(line)):
                offsets.append(file.tell())
                counts.append(len(tile))
                file.write(tile)
    for tag, numbers in ((_OFFSETS, offsets), (_COUNTS, counts)):
        at, letter = tables[tag]
        file.seek(at)
        file.write(struct.pack(f"<{count}{letter}", *numbers))
    file.seek(0, 2)


def _tiles(line: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield the tiles of a line. The last ones are filled up."""
    for left in range(0, line.shape[1], TILE):
        part = line[:, left : left + TILE]
        if part.shape != (TILE, TILE):
            part = np.pad(part, [(0, TILE - side) for side in part.shape])
        yield np.ascontiguousarray(part)


def _packed(tile: NDArray[Any]) -> bytes:
    data: bytes = zlib_ng.compress(tile.data, LEVEL)
    return data


def _tags(picture: WrittenPicture, tiles: int) -> Iterator[tuple[int, int, Sequence[float] | bytes]]:
    """Yield each tag, its type and its numbers."""
    bands, height, width = picture.shape
    bits, form = 8 * picture.dtype.itemsize, _FORMS[picture.dtype.kind]
    table = picture.classes
    coloured = table is not None and len(table) <= 256 and bands == 1 and picture.dtype == np.uint8
    yield 256, _LONG, [width]
    yield 257, _LONG, [height]
    yield 258, _SHORT, [bits] * bands
    yield 259, _SHORT, [_DEFLATE]
    gray_or_rgb = _RGB if picture.is_rgb else _GRAY
    yield 262, _SHORT, [_PALETTE if coloured else gray_or_rgb]
    yield 277, _SHORT, [bands]
    yield 284, _SHORT, [_SEPARATE if bands > 1 else 1]
    if coloured and table is not None:
        colours = np.zeros((3, 256), np.uint16)
        rgb = table.palette.rgb
        colours[:, : len(rgb)] = rgb.T.astype(np.uint16) * 257
        yield 320, _SHORT, colours.ravel().tolist()
    yield 322, _LONG, [TILE]
    yield 323, _LONG, [TILE]
    yield _COUNTS, _LONG, [0] * tiles
    if bands > 1 and not picture.is_rgb:
        yield 338, _SHORT, [0] * (bands - 1)
    yield 339, _SHORT, [form] * bands
    if picture.place is not None:
        yield from _geo_tags(picture.place)
    if picture.no_data is not None:
        yield 42113, _ASCII, _number_text(picture.no_data).encode() + b"\0"


def _number_text(number: float) -> str:
    """Return a number with all of its digits."""
    return str(int(number)) if float(number).is_integer() else f"{number:.17g}"


def _geo_tags(place: Place) -> Iterator[tuple[int, int, Sequence[float] | bytes]]:
    """Yield the tags of a place on a map."""
    a, b, x, c, d, y = place.transform
    if b == c == 0 and a > 0 > d:
        yield 33550, _DOUBLE, [a, -d, 0]
        yield 33922, _DOUBLE, [0, 0, 0, x, y, 0]
    else:
        yield 34264, _DOUBLE, [a, b, 0, x, c, d, 0, y, 0, 0, 0, 0, 0, 0, 0, 1]
    if place.system.keys or place.system.crs:
        yield 34735, _SHORT, _keys(place.system)
    if place.system.numbers:
        yield 34736, _DOUBLE, place.system.numbers
    if place.system.text:
        yield 34737, _ASCII, place.system.text.encode("ascii", "replace") + b"\0"


def _keys(system: System) -> list[int]:
    """Return the GeoKeyDirectory of a coordinate system. The transform is of the corners of pixels."""
    if system.keys:
        keys = list(system.keys)
        for start in range(4, len(keys) - 3, 4):
            if keys[start] == _RASTER:
                keys[start + 1 : start + 4] = [0, 1, _AREA]
        return keys
    entries = [(_RASTER, _AREA)]
    code = system.crs.partition(":")[2]
    if code.isdecimal():
        is_geographic = _FIRST_GEOGRAPHIC <= int(code) < _BEHIND_GEOGRAPHIC
        entries = [(_MODEL, 2 if is_geographic else 1), *entries]
        entries.append((_GEOGRAPHIC if is_geographic else _PROJECTED, int(code)))
    return [1, 1, 0, len(entries), *(number for key, value in entries for number in (key, 0, 1, value))]


class _Directory:
    """The first bytes of a TIFF: its header and its directory, and the tables behind it."""

    def __init__(self, is_big: bool) -> None:
        self._is_big = is_big
        self.word = _LONG8 if is_big else _LONG
        """The type of offsets."""

    def write(
        self, file: BinaryIO, tags: Sequence[tuple[int, int, Sequence[float] | bytes]]
    ) -> dict[int, tuple[int, str]]:
        """Write the tags. Return for each where its numbers are, and their letter."""
        letter = _LETTERS[self.word]
        head = struct.pack("<2sHHHQ", b"II", 43, 8, 0, 16) if self._is_big else struct.pack("<2sHI", b"II", 42, 8)
        count, inline = ("<Q", 8) if self._is_big else ("<H", 4)
        entry = f"<HH{letter}{inline}s"
        end = len(head) + struct.calcsize(count) + len(tags) * struct.calcsize(entry) + inline
        end += -end % 8
        entries, tables = list[bytes](), list[tuple[int, bytes]]()
        where: dict[int, tuple[int, str]] = {}
        for tag, kind, numbers in sorted(tags):
            data = numbers if isinstance(numbers, bytes) else struct.pack(f"<{len(numbers)}{_LETTERS[kind]}", *numbers)
            at = len(head) + struct.calcsize(count) + len(entries) * struct.calcsize(entry)
            at += struct.calcsize(entry) - inline
            if len(data) > inline:
                data += bytes(-len(data) % 8)
                at, end = end, end + len(data)
                tables.append((at, data))
                data = struct.pack(f"<{letter}", at)
            where[tag] = at, _LETTERS.get(kind, "B")
            entries.append(struct.pack(entry, tag, kind, len(numbers), data.ljust(inline, b"\0")))
        file.write(head + struct.pack(count, len(entries)) + b"".join(entries) + bytes(inline))
        for at, data in tables:
            file.seek(at)
            file.write(data)
        file.seek(end)
        return where
