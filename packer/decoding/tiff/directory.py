"""`Directory`: the tags of a TIFF, as far as they decide pixels."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from packer.decoding.orientation import MOST_METADATA, too_much_metadata, xmp_orientation
from packer.decoding.tiff.tag_names import DISPUTED, NAMES, named
from packer.errors import BadPair

WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC, FILL_ORDER = 256, 257, 258, 259, 262, 266
STRIP_OFFSETS, ORIENTATION, SAMPLES, STRIP_ROWS, STRIP_BYTES, PLANAR = 273, 274, 277, 278, 279, 284
T4_OPTIONS, T6_OPTIONS, PREDICTOR, PALETTE = 292, 293, 317, 320
TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_BYTES = 322, 323, 324, 325
EXTRA_SAMPLES, SAMPLE_FORMAT, JPEG_TABLES, XMP = 338, 339, 347, 700
TOGETHER, SEPARATE = 1, 2
"""The channels of a pixel are stored one after the other, or each channel has blocks of its own."""

_DEFAULTS = {
    BITS: 1,
    COMPRESSION: 1,
    FILL_ORDER: 1,
    ORIENTATION: 1,
    SAMPLES: 1,
    STRIP_ROWS: 2**32 - 1,
    PLANAR: 1,
    T4_OPTIONS: 0,
    T6_OPTIONS: 0,
    PREDICTOR: 1,
    SAMPLE_FORMAT: 1,
}
_NUMBERS = (
    *_DEFAULTS,
    *(WIDTH, HEIGHT, PHOTOMETRIC, STRIP_OFFSETS, STRIP_BYTES, PALETTE),
    *(TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_BYTES, EXTRA_SAMPLES),
)
_TEXTS = (JPEG_TABLES, XMP)
_TYPES = {1: "B", 3: "H", 4: "I"}
_TEXT_TYPES = (1, 2, 6, 7)
_STRIPS, _TILES = (STRIP_OFFSETS, STRIP_BYTES), (TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_BYTES)
_MOST_BLOCKS, _MOST_NUMBERS = 1 << 22, 1 << 16
_NEW_SUBFILE_TYPE, _OVERVIEW = 254, 1
_MOST_OVERVIEWS = 40
"""Each is half as large as the one before."""
_UNSIGNED, _SIGNED, _FLOAT = 1, 2, 3
_DTYPES = {
    **{(bits, _UNSIGNED): "u1" for bits in (1, 2, 4, 8)},
    **{(8 * size, _UNSIGNED): f"u{size}" for size in (2, 4)},
    **{(8 * size, _SIGNED): f"i{size}" for size in (1, 2, 4)},
    **{(8 * size, _FLOAT): f"f{size}" for size in (2, 4, 8)},
}


@dataclass(frozen=True)
class Directory:
    """The only directory of a file: tags that are numbers, and tags that are bytes."""

    order: str
    numbers: dict[int, tuple[int, ...]]
    texts: dict[int, bytes]

    def one(self, tag: int) -> int:
        """Return the number of a tag. A number per channel is fine if all are equal."""
        numbers = self.numbers.get(tag) or ((_DEFAULTS[tag],) if tag in _DEFAULTS else ())
        if not numbers or len(set(numbers)) > 1:
            found = f"has the numbers {numbers[:4]}" if numbers else "is missing"
            raise BadPair(f"is a TIFF whose tag {named(tag)} {found}; convert it to PNG")
        return numbers[0]

    @property
    def dtype(self) -> str:
        bits, kind = self.one(BITS), self.one(SAMPLE_FORMAT)
        if (bits, kind) not in _DTYPES:
            words = {_UNSIGNED: "", _SIGNED: "signed ", _FLOAT: "floating-point "}.get(kind, "unknown ")
            raise BadPair(
                f"is a TIFF of {words}numbers with {bits} bits; only 1, 2, 4, 8, 16 and 32, signed 8, 16 and 32, "
                "and float16, float32 and float64 are read"
            )
        return _DTYPES[bits, kind]

    @property
    def orientation(self) -> int:
        """The tag's number, or that of XMP if there is no tag."""
        xmp = self.texts.get(XMP, b"")
        turned = self.one(ORIENTATION) if ORIENTATION in self.numbers else xmp_orientation(xmp) or 1
        return turned if 1 <= turned <= 8 else 1


def read_directory(file: BinaryIO, page: int | None = None) -> Directory:
    """Read the tags that decide pixels. One of a type that is not read is refused: without it they would be wrong.

    `page`: where the directory begins, in a file with several pages; other files have one.
    """
    order, first = _start(file)
    file.seek(first if page is None else page)
    (count,) = struct.unpack(order + "H", file.read(2))
    entries = file.read(12 * count + 4)
    if page is None:
        _check_other_pages(file, order, struct.unpack_from(order + "I", entries, 12 * count)[0])
    directory = Directory(order, {}, {})
    for entry in range(0, 12 * count, 12):
        tag, kind, length = struct.unpack_from(order + "HHI", entries, entry)
        inline = entries[entry + 8 : entry + 12]
        if tag in directory.texts or tag in directory.numbers:
            raise BadPair(f"is damaged: it has the tag {named(tag)} twice")
        if tag in NAMES:
            _check_entry(tag, kind, length)
        if tag in _TEXTS:
            directory.texts[tag] = _text(file, order, length, inline)
        elif tag in _NUMBERS:
            directory.numbers[tag] = _numbers(file, f"{order}{length}{_TYPES[kind]}", inline)
    if TILE_OFFSETS not in directory.numbers and not directory.numbers.keys().isdisjoint(_TILES):
        raise BadPair("is a TIFF with tiles and no TileOffsets, which some programs read as strips; save it again")
    return directory


def directories(file: BinaryIO) -> Iterator[int]:
    """Yield where the directory of each page begins, without those of smaller copies of pages."""
    order, offset = _start(file)
    seen = set[int]()
    while offset:
        if offset in seen:
            raise BadPair("is damaged: its list of pages has no end")
        seen.add(offset)
        kinds, after = _kinds_of(file, order, offset)
        if kinds != {_OVERVIEW}:
            yield offset
        offset = after


def _start(file: BinaryIO) -> tuple[str, int]:
    """Return the order of bytes, and where the first directory begins."""
    file.seek(0)
    start = file.read(8)
    if start[2:4] in (b"+\0", b"\0+"):
        raise BadPair("is a BigTIFF; save it as a TIFF of less than 4 GiB")
    order = {b"II": "<", b"MM": ">"}[start[:2]]
    return order, struct.unpack_from(order + "I", start, 4)[0]


def _check_entry(tag: int, kind: int, length: int) -> None:
    """Refuse an entry that would be ignored, or that claims too much."""
    if tag in DISPUTED:
        raise BadPair(f"is a TIFF with the tag {named(tag)}, which some programs read and others ignore; save it again")
    if kind not in (_TEXT_TYPES if tag in _TEXTS else _TYPES):
        raise BadPair(f"is a TIFF whose tag {named(tag)} has numbers of the type {kind}; save it again")
    if not length and tag not in _TEXTS:
        raise BadPair(f"is a TIFF whose tag {named(tag)} is empty; save it again")
    if tag not in _TEXTS and length > (_MOST_BLOCKS if tag in _STRIPS + _TILES else _MOST_NUMBERS):
        raise BadPair(f"is damaged: its tag {named(tag)} claims {length} numbers")


def _check_other_pages(file: BinaryIO, order: str, offset: int) -> None:
    """Refuse further pages, but not smaller copies of the first, as files for the cloud have them (COG)."""
    seen = set[int]()
    while offset:
        if offset in seen or len(seen) == _MOST_OVERVIEWS:
            raise BadPair("is damaged: its list of pages has no end")
        seen.add(offset)
        kinds, offset = _kinds_of(file, order, offset)
        if kinds != {_OVERVIEW}:
            raise BadPair("is a TIFF with several pages; save one page alone, or pack all as a volume with --volumes")


def _kinds_of(file: BinaryIO, order: str, offset: int) -> tuple[set[int | None], int]:
    """Return what a directory says that its page is, and where the next directory begins."""
    file.seek(offset)
    (count,) = struct.unpack(order + "H", file.read(2))
    entries = file.read(12 * count + 4)
    kinds = {_page_kind(order, entries[entry : entry + 12]) for entry in range(0, 12 * count, 12)} - {None}
    return kinds, struct.unpack_from(order + "I", entries, 12 * count)[0]


def _page_kind(order: str, entry: bytes) -> int | None:
    """Return the number of an entry if it says what its page is."""
    tag, kind, count = struct.unpack_from(order + "HHI", entry)
    if tag != _NEW_SUBFILE_TYPE or kind not in (3, 4) or count != 1:
        return None
    return int(struct.unpack_from(order + _TYPES[kind], entry, 8)[0])


def _numbers(file: BinaryIO, layout: str, inline: bytes) -> tuple[int, ...]:
    """Return the numbers of an entry. Up to four bytes are in the entry itself, more are at its offset."""
    size = struct.calcsize(layout)
    if size > 4:
        file.seek(struct.unpack(layout[0] + "I", inline)[0])
        inline = file.read(size)
    return struct.unpack_from(layout, inline)


def _text(file: BinaryIO, order: str, size: int, inline: bytes) -> bytes:
    """Return the content of an entry whose type is bytes of some kind."""
    if size > MOST_METADATA:
        raise too_much_metadata()
    if size <= 4:
        return b""
    file.seek(struct.unpack(order + "I", inline)[0])
    return file.read(size)
