"""Decode TIFF. This is done here, because libtiff under OpenCV fills damaged blocks in silence."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import product
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from packer.decoding.bits import unpack_bits
from packer.decoding.header import Header, Pixels, Stored, alpha_if_used
from packer.decoding.lzw import unpack_lzw
from packer.decoding.orientation import MOST_METADATA, too_much_metadata, xmp_orientation
from packer.errors import BadPair

SIGNATURES = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC, FILL_ORDER = 256, 257, 258, 259, 262, 266
STRIP_OFFSETS, ORIENTATION, SAMPLES, STRIP_ROWS, STRIP_BYTES, PLANAR = 273, 274, 277, 278, 279, 284
PREDICTOR, PALETTE, TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_BYTES = 317, 320, 322, 323, 324, 325
EXTRA_SAMPLES, SAMPLE_FORMAT, XMP = 338, 339, 700

_DEFAULTS = {
    BITS: 1,
    COMPRESSION: 1,
    FILL_ORDER: 1,
    ORIENTATION: 1,
    SAMPLES: 1,
    STRIP_ROWS: 2**32 - 1,
    PLANAR: 1,
    PREDICTOR: 1,
    SAMPLE_FORMAT: 1,
}
_TYPES = {1: "B", 3: "H", 4: "I"}
_MOST_ENTRIES = 1 << 22
_NUMBERS = {(1, 1): "u1", (2, 1): "u1", (4, 1): "u1", (8, 1): "u1", (16, 1): "u2", (32, 3): "f4"}
_GRAY, _RGB, _INDEXED = 1, 2, 3
_PHOTOMETRICS = {
    0: "white is zero",
    4: "a mask",
    5: "CMYK",
    6: "YCbCr",
    8: "CIELab",
    9: "ICCLab",
    32803: "a raw sensor",
}
_COMPRESSIONS = {2: "CCITT", 3: "CCITT fax", 4: "CCITT fax", 6: "JPEG", 7: "JPEG", 34887: "LERC", 50000: "Zstandard"}
_NO_PREDICTOR, _DIFFERENCES, _PLANES = 1, 2, 3


@dataclass(frozen=True)
class _Tiff:
    """The only directory of the file."""

    order: str
    tags: dict[int, tuple[int, ...]]
    xmp: bytes

    def one(self, tag: int) -> int:
        """Return the number of a tag. A number per channel is fine if all are equal."""
        numbers = self.tags.get(tag) or ((_DEFAULTS[tag],) if tag in _DEFAULTS else ())
        if not numbers or len(set(numbers)) > 1:
            raise BadPair(f"is a TIFF whose tag {tag} is {numbers or 'missing'}; convert it to PNG")
        return numbers[0]

    @property
    def dtype(self) -> str:
        bits, kind = self.one(BITS), self.one(SAMPLE_FORMAT)
        if (bits, kind) not in _NUMBERS:
            words = {1: "", 2: "signed ", 3: "floating-point "}.get(kind, "unknown ")
            raise BadPair(
                f"is a TIFF of {words}numbers with {bits} bits; only 1, 2, 4, 8, 16 and float32 can be packed"
            )
        return _NUMBERS[bits, kind]

    @property
    def is_tiled(self) -> bool:
        return TILE_OFFSETS in self.tags

    @property
    def block(self) -> tuple[int, int]:
        """The (height, width) of a tile or strip."""
        if self.is_tiled:
            return self.one(TILE_HEIGHT), self.one(TILE_WIDTH)
        return min(self.one(STRIP_ROWS), self.one(HEIGHT)), self.one(WIDTH)

    @property
    def orientation(self) -> int:
        """The tag's number, or that of XMP if there is no tag."""
        turned = self.one(ORIENTATION) if ORIENTATION in self.tags else xmp_orientation(self.xmp) or 1
        return turned if 1 <= turned <= 8 else 1

    @property
    def has_alpha(self) -> bool:
        return self.one(SAMPLES) in (2, 4)


def read(file: BinaryIO) -> Header:
    """Read the directory, and refuse what cannot be decoded. Only damage of the blocks is found later."""
    tiff = _read(file)
    width, height, samples = tiff.one(WIDTH), tiff.one(HEIGHT), tiff.one(SAMPLES)
    is_float = tiff.dtype == "f4"
    _check_colours(tiff, samples)
    if (compression := tiff.one(COMPRESSION)) not in _UNPACK:
        raise BadPair(f"is a TIFF compressed by {_COMPRESSIONS.get(compression, compression)}; convert it to PNG")
    fitting = _NO_PREDICTOR if tiff.one(BITS) < 8 else _PLANES if is_float else _DIFFERENCES
    if tiff.one(PREDICTOR) not in (_NO_PREDICTOR, fitting):
        raise BadPair(
            f"is a TIFF with the predictor {tiff.one(PREDICTOR)}, which does not fit its numbers; save it with 1"
        )
    if tiff.one(FILL_ORDER) != 1 or (samples > 1 and tiff.one(PLANAR) != 1):
        raise BadPair("is a TIFF with PlanarConfiguration 2 or FillOrder 2; save it with 1")
    palette = tiff.one(PHOTOMETRIC) == _INDEXED
    return Header("TIFF", width, height, tiff.one(BITS), samples, is_float, False, tiff.orientation, palette)


def decode(data: bytes, header: Header) -> Stored:
    """Return gray, indices with their palette, or colours; alpha is separate."""
    tiff = _read(BytesIO(data))
    samples = header.channels
    pixels = np.empty((header.stored_height, header.stored_width, samples), tiff.dtype)
    for top, left, block in _blocks(tiff, data, samples):
        target = pixels[top : top + block.shape[0], left : left + block.shape[1]]
        target[:] = block[: target.shape[0], : target.shape[1]]
    alpha = alpha_if_used(pixels[..., -1]) if tiff.has_alpha else None
    if samples <= 2:
        return Stored(np.ascontiguousarray(pixels[..., 0]), alpha, _palette(tiff))
    return Stored(np.ascontiguousarray(pixels[..., :3]), alpha)


def _read(file: BinaryIO) -> _Tiff:
    """Read the integers of the directory. Other types do not matter for the pixels."""
    file.seek(0)
    start = file.read(8)
    if start[2:4] in (b"+\0", b"\0+"):
        raise BadPair("is a BigTIFF; save it as a TIFF of less than 4 GiB")
    order = {b"II": "<", b"MM": ">"}[start[:2]]
    file.seek(struct.unpack_from(order + "I", start, 4)[0])
    (count,) = struct.unpack(order + "H", file.read(2))
    directory = file.read(12 * count + 4)
    if struct.unpack_from(order + "I", directory, 12 * count)[0] != 0:
        raise BadPair("is a TIFF with several pages; save one page alone")
    tags, xmp = {}, b""
    for entry in range(0, 12 * count, 12):
        tag, kind, numbers = struct.unpack_from(order + "HHI", directory, entry)
        if kind in _TYPES and (tag in _DEFAULTS or tag in _WANTED):
            tags[tag] = _numbers(
                file, f"{order}{_count(tag, numbers)}{_TYPES[kind]}", directory[entry + 8 : entry + 12]
            )
        elif tag == XMP:
            xmp = _xmp(file, order, numbers, directory[entry + 8 : entry + 12])
    return _Tiff(order, tags, xmp)


_WANTED = (
    *(WIDTH, HEIGHT, PHOTOMETRIC, STRIP_OFFSETS, STRIP_BYTES, PALETTE),
    *(TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_BYTES, EXTRA_SAMPLES),
)


def _count(tag: int, numbers: int) -> int:
    if numbers > _MOST_ENTRIES:
        raise BadPair(f"is damaged: its tag {tag} claims {numbers} numbers")
    return numbers


def _numbers(file: BinaryIO, layout: str, inline: bytes) -> tuple[int, ...]:
    """Return the numbers of an entry. Up to four bytes are in the entry itself, more are at its offset."""
    size = struct.calcsize(layout)
    if size > 4:
        file.seek(struct.unpack(layout[0] + "I", inline)[0])
        inline = file.read(size)
    return struct.unpack_from(layout, inline)


def _xmp(file: BinaryIO, order: str, size: int, inline: bytes) -> bytes:
    """Return the packet of an entry, whose type is bytes of some kind."""
    if size > MOST_METADATA:
        raise too_much_metadata()
    if size <= 4:
        return b""
    file.seek(struct.unpack(order + "I", inline)[0])
    return file.read(size)


def _check_colours(tiff: _Tiff, samples: int) -> None:
    """Allow gray, RGB or a palette, and one more channel if it is declared as alpha."""
    photometric, extra = tiff.one(PHOTOMETRIC), tiff.tags.get(EXTRA_SAMPLES, ())
    colours = {_GRAY: 1, _RGB: 3, _INDEXED: 1}.get(photometric)
    if colours is None:
        raise BadPair(f"is a TIFF of {_PHOTOMETRICS.get(photometric, photometric)}; convert it to gray or RGB")
    if tiff.one(BITS) < 8 and (photometric, samples) != (_GRAY, 1):
        raise BadPair(f"is a TIFF with {tiff.one(BITS)} bits that is not gray; convert it to PNG")
    if photometric == _INDEXED and (samples, tiff.dtype) != (1, "u1"):
        raise BadPair("is a TIFF with a palette, but not with 8 bits; convert it to PNG")
    if samples == colours + 1 and len(extra) == 1 and extra[0] in (1, 2) and tiff.dtype != "f4":
        return
    if samples != colours:
        raise BadPair(f"is a TIFF with {samples} channels, not {colours}; save it with {colours}")


def _blocks(tiff: _Tiff, data: bytes, samples: int) -> Iterator[tuple[int, int, Pixels]]:
    """Yield each strip or tile as (row, column, pixels). Each must lie within the file and have all its pixels."""
    (tall, wide), height, width = tiff.block, tiff.one(HEIGHT), tiff.one(WIDTH)
    names = (TILE_OFFSETS, TILE_BYTES) if tiff.is_tiled else (STRIP_OFFSETS, STRIP_BYTES)
    offsets, counts = (tiff.tags.get(name, ()) for name in names)
    if not 0 < tall * wide <= 4 * max(height * width, 1 << 20):
        raise BadPair(f"is damaged: its blocks are {tall}x{wide}")
    needed = -(-height // tall) * -(-width // wide)
    if not needed == len(offsets) == len(counts):
        raise BadPair(f"is damaged: it has {len(offsets)} blocks and needs {needed}")
    corners = product(range(0, height, tall), range(0, width, wide))
    unpack, stored = _UNPACK[tiff.one(COMPRESSION)], np.dtype(tiff.order + tiff.dtype)
    for (top, left), offset, count in zip(corners, offsets, counts, strict=True):
        rows = tall if tiff.is_tiled else min(tall, height - top)
        row_bytes = -(-wide * samples * tiff.one(BITS) // 8)
        size = rows * row_bytes
        raw = unpack(data[offset : offset + count], size) if offset + count <= len(data) else b""
        if len(raw) < size:
            raise BadPair(f"is damaged: the block at row {top}, column {left} is cut short")
        if tiff.one(PREDICTOR) == _PLANES:
            yield top, left, _from_planes(raw[:size], rows, wide, samples)
            continue
        if tiff.one(BITS) < 8:
            packed = np.frombuffer(raw, np.uint8, size).reshape(rows, row_bytes)
            yield top, left, unpack_bits(packed, tiff.one(BITS), wide)[..., None]
            continue
        block = np.frombuffer(raw, stored, size // stored.itemsize).reshape(rows, wide, samples)
        if tiff.one(PREDICTOR) == _DIFFERENCES:
            block = np.cumsum(block, axis=1, dtype=tiff.dtype)
        yield top, left, block


def _from_planes(raw: bytes, rows: int, wide: int, samples: int) -> Pixels:
    """Undo predictor 3: a plane for each of the four bytes of a float, the highest first, as differences in a row."""
    differences = np.frombuffer(raw, np.uint8).reshape(rows, 4 * wide, samples)
    planes = np.cumsum(differences, axis=1, dtype=np.uint8).reshape(rows, 4, wide * samples)
    return np.ascontiguousarray(planes.swapaxes(1, 2)).view(">f4").reshape(rows, wide, samples)


def _palette(tiff: _Tiff) -> NDArray[np.uint8] | None:
    """Return rows of red, green, blue, alpha. TIFF stores 16 bits per colour, of which the upper 8 count.

    If no number needs more than 8 bits, the lower 8 count: some writers make this mistake, and libtiff allows it.
    """
    if tiff.one(PHOTOMETRIC) != _INDEXED:
        return None
    colours = np.array(tiff.tags.get(PALETTE, ()), np.uint16)
    if len(colours) != 3 * 256:
        raise BadPair(f"is damaged: its palette has {len(colours)} numbers")
    rows = np.full((256, 4), 255, np.uint8)
    rows[:, :3] = (colours >> (8 if colours.max() > 255 else 0)).reshape(3, 256).T
    return rows


def _plain(block: bytes, size: int) -> bytes:
    return block[:size]


def _deflated(block: bytes, size: int) -> bytes:
    """Decompress zlib. The checksum at its end must be right, so no damage passes."""
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(block, size + 1)
    except zlib.error as error:
        raise BadPair(f"is damaged ({error})") from error
    return raw if stream.eof else b""


def _packbits(block: bytes, size: int) -> bytes:
    """Unpack runs and copies, each with its length in front."""
    raw, offset = bytearray(), 0
    while len(raw) < size and offset + 1 < len(block):
        length = block[offset]
        if length < 128:
            raw += block[offset + 1 : offset + 2 + length]
            offset += 2 + length
        else:
            raw += block[offset + 1 : offset + 2] * (257 - length if length > 128 else 0)
            offset += 2 if length > 128 else 1
    return bytes(raw)


_UNPACK: dict[int, Callable[[bytes, int], bytes]] = {
    1: _plain,
    5: unpack_lzw,
    8: _deflated,
    32946: _deflated,
    32773: _packbits,
}
