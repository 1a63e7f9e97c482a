"""Decode BMP: uncompressed rows of bytes. Compressed BMP is refused."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO

import cv2
import numpy as np

from packer.decoding.bits import unpack_bits
from packer.decoding.header import FilePixels, Header, Pixels
from packer.errors import BadPair

SIGNATURE = b"BM"
_CORE, _INFO = 12, 40
_RGB, _BITFIELDS = 0, 3
_COMPRESSED = {1: "RLE8", 2: "RLE4", 4: "JPEG", 5: "PNG"}
_MASKS = (0x00FF0000, 0x0000FF00, 0x000000FF)
_OPAQUE_OR_NOT = 0xFF000000


@dataclass(frozen=True)
class _Bmp:
    """The header: where rows and palette are, and the order of the rows."""

    width: int
    height: int
    bits: int
    is_top_down: bool
    has_alpha: bool
    rows_at: int
    palette_at: int
    palette_size: int
    palette_width: int

    @property
    def row_bytes(self) -> int:
        return (self.width * self.bits + 31) // 32 * 4


def read(file: BinaryIO) -> Header:
    bmp = _read(file)
    channels = 4 if bmp.has_alpha else 3
    if bmp.bits <= 8:
        channels = 1
    if file.seek(0, 2) < bmp.rows_at + bmp.row_bytes * bmp.height:
        raise BadPair("is cut short")
    return Header("BMP", bmp.width, bmp.height, 8, channels, has_alpha=bmp.has_alpha, has_palette=bmp.bits <= 8)


def decode(data: bytes, header: Header) -> FilePixels:
    """Return indices with their palette, or colours. Rows are usually stored from the bottom up."""
    bmp = _read(BytesIO(data))
    rows = np.frombuffer(data, np.uint8, bmp.row_bytes * bmp.height, bmp.rows_at).reshape(bmp.height, bmp.row_bytes)
    if not bmp.is_top_down:
        rows = rows[::-1]
    if bmp.bits <= 8:
        return FilePixels(unpack_bits(rows, bmp.bits, bmp.width), palette=_palette(data, bmp))
    pixels = rows[:, : bmp.width * bmp.bits // 8].reshape(bmp.height, bmp.width, -1)
    colours = cv2.cvtColor(np.ascontiguousarray(pixels[..., :3]), cv2.COLOR_BGR2RGB)
    return FilePixels(colours, pixels[..., 3] if bmp.has_alpha else None)


def _read(file: BinaryIO) -> _Bmp:
    """Read a header of any version; refuse what is ambiguous."""
    file.seek(0)
    start = file.read(14 + 124)
    rows_at, length = struct.unpack_from("<II", start, 10)
    compression, used, alpha_mask = _RGB, 0, 0
    if length == _CORE:
        width, height, planes, bits = struct.unpack_from("<HHHH", start, 18)
    elif length >= _INFO:
        width, height, planes, bits, compression = struct.unpack_from("<iiHHI", start, 18)
        (used,) = struct.unpack_from("<I", start, 46)
    else:
        raise BadPair(f"is a BMP with a header of {length} bytes, which is not supported; convert it to PNG")
    if compression in _COMPRESSED:
        raise BadPair(f"is a BMP compressed by {_COMPRESSED[compression]}; convert it to PNG")
    if compression == _BITFIELDS and bits == 32:
        if struct.unpack_from("<III", start, 54) != _MASKS:
            raise BadPair("is a BMP with custom channel masks; convert it to PNG")
        alpha_mask = struct.unpack_from("<I", start, 66)[0] if length >= 56 else 0
    elif compression != _RGB:
        raise BadPair(f"is a BMP with compression {compression} and {bits} bits; convert it to PNG")
    if bits not in (1, 4, 8, 24, 32) or planes != 1 or width <= 0 or alpha_mask not in (0, _OPAQUE_OR_NOT):
        raise BadPair(f"is a BMP with {bits} bits per pixel, {planes} planes and {width} columns; convert it to PNG")
    entries = min(used or 1 << bits, 1 << bits) if bits <= 8 else 0
    palette_width = 3 if length == _CORE else 4
    if rows_at < 14 + length + entries * palette_width:
        raise BadPair("is damaged: its header or palette overlaps its pixels")
    return _Bmp(width, abs(height), bits, height < 0, bool(alpha_mask), rows_at, 14 + length, entries, palette_width)


def _palette(data: bytes, bmp: _Bmp) -> Pixels:
    """Return rows of red, green, blue, alpha; the file has blue, green, red, and all are opaque."""
    size = bmp.palette_size * bmp.palette_width
    colours = np.frombuffer(data, np.uint8, size, bmp.palette_at).reshape(-1, bmp.palette_width)
    return np.concatenate([colours[:, 2::-1], np.full((len(colours), 1), 255, np.uint8)], axis=1)
