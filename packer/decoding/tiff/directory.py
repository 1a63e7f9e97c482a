"""`Directory`: the tags of a TIFF, as far as they decide pixels."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple

from packer.decoding.orientation import MOST_METADATA, too_much_metadata, xmp_orientation
from packer.decoding.tiff import geo
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
_LONG8 = 16
"""The type of numbers of 64 bits, which BigTIFF alone has."""
_LETTERS = {**_TYPES, _LONG8: "Q"}
_TEXT_TYPES = (1, 2, 6, 7)
_STRIPS, _TILES = (STRIP_OFFSETS, STRIP_BYTES), (TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_BYTES)
_MOST_BLOCKS, _MOST_NUMBERS, _MOST_TAGS = 1 << 22, 1 << 16, 1 << 16
_MOST_OFFSET = 2**63 - 1
_NEW_SUBFILE_TYPE, _OVERVIEW, _MASK = 254, 1, 4
SAVE_AGAIN = "save it with the same numbers: gdal_translate -co COMPRESS=DEFLATE FILE OUT.tif"
_MOST_OVERVIEWS = 40
"""The smaller copies of a page: each is half as large as the one before."""
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
    geo: dict[int, bytes] = field(default_factory=dict)
    """The content of the tags of a GeoTIFF."""

    def one(self, tag: int) -> int:
        """Return the number of a tag. A number per channel is fine if all are equal."""
        numbers = self.numbers.get(tag) or ((_DEFAULTS[tag],) if tag in _DEFAULTS else ())
        if not numbers or len(set(numbers)) > 1:
            state = f"has the numbers {numbers[:4]}" if numbers else "is missing"
            raise BadPair(f"is a TIFF whose tag {named(tag)} {state}; {SAVE_AGAIN}")
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
        """The tag's number, or the number of XMP if there is no tag."""
        xmp = self.texts.get(XMP, b"")
        turned = self.one(ORIENTATION) if ORIENTATION in self.numbers else xmp_orientation(xmp) or 1
        return turned if 1 <= turned <= 8 else 1


class _Layout(NamedTuple):
    """The order of bytes, and the letters of the numbers that are larger in a BigTIFF: offsets, and counts of tags."""

    order: str
    offset: str = "I"
    tags: str = "H"

    @property
    def entry_bytes(self) -> int:
        return 4 + 2 * self.offset_bytes

    @property
    def offset_bytes(self) -> int:
        return struct.calcsize(self.offset)

    def entries(self, file: BinaryIO, offset: int) -> tuple[list[bytes], int]:
        """Return the entries of the directory at an offset, and the offset of the next one."""
        _seek(file, offset)
        (count,) = struct.unpack(self.order + self.tags, file.read(struct.calcsize(self.tags)))
        size = self.entry_bytes
        if count > _MOST_TAGS:
            raise BadPair(f"is damaged: it claims {count} tags")
        data = file.read(size * count + self.offset_bytes)
        (behind,) = struct.unpack_from(self.order + self.offset, data, size * count)
        return [data[start : start + size] for start in range(0, size * count, size)], behind

    def facts(self, entry: bytes) -> tuple[int, int, int, bytes]:
        """Return the tag of an entry, its type, how many numbers it has, and the bytes that hold them or their
        offset."""
        tag, kind, length = struct.unpack_from(self.order + "HH" + self.offset, entry)
        return tag, kind, length, entry[-self.offset_bytes :]


def read_directory(file: BinaryIO, page: int | None = None) -> Directory:
    """Read the tags that decide pixels. One of a type that is not read is refused: without it they would be wrong.

    `page`: where the directory begins, in a file with several pages; other files have one.
    """
    layout, first = _start(file)
    entries, behind = layout.entries(file, first if page is None else page)
    if page is None:
        _check_other_pages(file, layout, behind)
    directory = Directory(layout.order, {}, {})
    for entry in entries:
        tag, kind, length, inline = layout.facts(entry)
        if tag in directory.texts or tag in directory.numbers:
            raise BadPair(f"is damaged: it has the tag {named(tag)} twice")
        if tag in NAMES:
            _check_entry(layout, tag, kind, length)
        if tag in _TEXTS:
            directory.texts[tag] = _text(file, layout, length, inline)
        elif tag in geo.LETTERS:
            directory.geo[tag] = _geo(file, layout, entry)
        elif tag in _NUMBERS:
            directory.numbers[tag] = _numbers(file, layout, f"{layout.order}{length}{_LETTERS[kind]}", inline)
    if TILE_OFFSETS not in directory.numbers and not directory.numbers.keys().isdisjoint(_TILES):
        raise BadPair("is a TIFF with tiles and no TileOffsets, which some programs read as strips; save it again")
    return directory


def directories(file: BinaryIO) -> Iterator[int]:
    """Yield where the directory of each page begins, without smaller copies of pages."""
    layout, offset = _start(file)
    seen, copies = set[int](), 0
    while offset:
        kinds, after = _kinds_of(file, layout, offset)
        copies = copies + 1 if kinds == {_OVERVIEW} else 0
        if offset in seen or copies > _MOST_OVERVIEWS:
            raise BadPair("is damaged: its list of pages has no end")
        seen.add(offset)
        if not copies:
            yield offset
        offset = after


def _start(file: BinaryIO) -> tuple[_Layout, int]:
    """Return the layout of a file, and the offset of its first directory."""
    file.seek(0)
    start = file.read(16)
    order = {b"II": "<", b"MM": ">"}[start[:2]]
    version, size, zero = struct.unpack_from(order + "HHH", start, 2)
    if version == 42:
        return _Layout(order), struct.unpack_from(order + "I", start, 4)[0]
    if (size, zero) != (8, 0):
        raise BadPair(f"is not a BigTIFF that follows the standard: its offsets have {size} bytes")
    return _Layout(order, "Q", "Q"), struct.unpack_from(order + "Q", start, 8)[0]


def _check_entry(layout: _Layout, tag: int, kind: int, length: int) -> None:
    """Refuse an entry that would be ignored, or that claims too much."""
    if tag in DISPUTED:
        raise BadPair(f"is a TIFF with the tag {named(tag)}, which some programs read and others ignore; save it again")
    types = set(_TEXT_TYPES if tag in _TEXTS else _TYPES)
    if tag not in _TEXTS and layout.offset == "Q":
        types.add(_LONG8)
    if kind not in types:
        raise BadPair(f"is a TIFF whose tag {named(tag)} has numbers of the type {kind}; save it again")
    if not length and tag not in _TEXTS:
        raise BadPair(f"is a TIFF whose tag {named(tag)} is empty; save it again")
    if tag not in _TEXTS and length > (_MOST_BLOCKS if tag in _STRIPS + _TILES else _MOST_NUMBERS):
        raise BadPair(f"is damaged: its tag {named(tag)} claims {length} numbers")


def _check_other_pages(file: BinaryIO, layout: _Layout, offset: int) -> None:
    """Refuse further pages, but not smaller copies of the first, as files for the cloud have them (COG)."""
    seen = set[int]()
    while offset:
        if offset in seen or len(seen) == _MOST_OVERVIEWS:
            raise BadPair("is damaged: its list of pages has no end")
        seen.add(offset)
        kinds, offset = _kinds_of(file, layout, offset)
        if any((kind or 0) & _MASK for kind in kinds):
            raise BadPair(
                "is a TIFF with a transparency mask as a page of its own, which says where its pixels count; to pack "
                "all of them, leave the mask out: gdal_translate -mask none FILE OUT.tif"
            )
        if kinds != {_OVERVIEW}:
            raise BadPair("is a TIFF with several pages; save one page alone, or pack all as a volume with --volumes")


def _kinds_of(file: BinaryIO, layout: _Layout, offset: int) -> tuple[set[int | None], int]:
    """Return what a directory says that its page is, and where the next directory begins."""
    entries, behind = layout.entries(file, offset)
    return {_page_kind(layout, entry) for entry in entries} - {None}, behind


def _page_kind(layout: _Layout, entry: bytes) -> int | None:
    """Return the number of an entry if it says what its page is."""
    tag, kind, count, inline = layout.facts(entry)
    if tag != _NEW_SUBFILE_TYPE or kind not in (3, 4) or count != 1:
        return None
    return int(struct.unpack_from(layout.order + _TYPES[kind], inline)[0])


def _numbers(file: BinaryIO, layout: _Layout, letters: str, inline: bytes) -> tuple[int, ...]:
    """Return the numbers of an entry. As many as fit are in the entry itself, more are at its offset."""
    size = struct.calcsize(letters)
    return struct.unpack_from(letters, inline if size <= len(inline) else _behind(file, layout, size, inline))


def _geo(file: BinaryIO, layout: _Layout, entry: bytes) -> bytes:
    """Return the content of a tag that decides no pixel; nothing if it is not as the standard says."""
    tag, kind, length, inline = layout.facts(entry)
    expected, letter = geo.LETTERS[tag]
    size = length * struct.calcsize(letter)
    if kind != expected or length > geo.MOST_NUMBERS:
        return b""
    content = inline[:size] if size <= len(inline) else _behind(file, layout, size, inline)
    return content if len(content) == size else b""


def _text(file: BinaryIO, layout: _Layout, size: int, inline: bytes) -> bytes:
    """Return the content of an entry whose type is bytes of some kind."""
    if size > MOST_METADATA:
        raise too_much_metadata()
    return b"" if size <= len(inline) else _behind(file, layout, size, inline)


def _behind(file: BinaryIO, layout: _Layout, size: int, inline: bytes) -> bytes:
    """Return the content of an entry that has its offset."""
    _seek(file, struct.unpack(layout.order + layout.offset, inline)[0])
    return file.read(size)


def _seek(file: BinaryIO, offset: int) -> None:
    if offset > _MOST_OFFSET:
        raise BadPair(f"is damaged: it has the offset {offset}")
    file.seek(offset)
