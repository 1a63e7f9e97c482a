"""Decode WebP. The container is checked here, OpenCV decodes. Pixels in a chunk VP8L are lossless."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

import cv2

from packer.decoding import opencv
from packer.decoding.header import FilePixels, Header
from packer.decoding.orientation import Orientation, read_metadata
from packer.errors import BadPair

_ANIMATED, _HAS_ALPHA = 0x02, 0x10


def read(file: BinaryIO) -> Header:
    """Read the size from the start of the pixels, and the orientation from the chunks EXIF and XMP."""
    orientation = Orientation()
    facts: tuple[int, int, bool] | None = None
    has_alpha = False
    for kind, length in _chunks(file):
        flags = file.read(1)[0] if kind == b"VP8X" else 0
        has_alpha |= bool(flags & _HAS_ALPHA)
        if flags & _ANIMATED or kind in (b"ANIM", b"ANMF"):
            raise BadPair("is an animated WebP; save one frame as a PNG")
        if kind in (b"VP8 ", b"VP8L") and facts is None:
            start = file.read(10)
            facts = (*_size(kind, start), kind == b"VP8 ")
            has_alpha |= kind == b"VP8L" and bool(start[4] & _HAS_ALPHA)
        elif kind == b"EXIF":
            orientation.add_exif(read_metadata(file, length))
        elif kind == b"XMP ":
            orientation.add_xmp(read_metadata(file, length))
    if facts is None:
        raise BadPair("is a WebP without pixels")
    width, height, lossy = facts
    channels = 3 + has_alpha
    return Header(
        "WebP", width, height, 8, channels, has_alpha=has_alpha, is_lossy=lossy, orientation=orientation.number
    )


def decode(data: bytes, header: Header) -> FilePixels:
    """Return colours, and alpha if the file has any."""
    pixels = opencv.decode(data, cv2.IMREAD_UNCHANGED)
    if pixels.shape[2] == 3:
        return FilePixels(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB))
    return FilePixels(cv2.cvtColor(pixels, cv2.COLOR_BGRA2RGB), pixels[..., 3])


def _chunks(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Yield each chunk as (type, length), with the file at its content. All chunks must be inside the file."""
    file_size = file.seek(0, 2)
    file.seek(4)
    (length,) = struct.unpack("<I", file.read(4))
    offset, end = 12, 8 + length
    if end > file_size:
        raise BadPair("is cut short")
    while offset + 8 <= end:
        file.seek(offset)
        kind, size = struct.unpack("<4sI", file.read(8))
        if offset + 8 + size > end:
            raise BadPair("is damaged: a chunk reaches beyond its end")
        yield kind, size
        offset += 8 + size + size % 2


def _size(kind: bytes, start: bytes) -> tuple[int, int]:
    """Return (width, height) from the first bytes of the pixels."""
    if kind == b"VP8L":
        signature, bits = struct.unpack_from("<BI", start)
        if signature != 0x2F:
            raise BadPair("is damaged: its VP8L has a wrong signature")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if start[3:6] != b"\x9d\x01\x2a":
        raise BadPair("is damaged: its VP8 has a wrong signature")
    width, height = struct.unpack_from("<HH", start, 6)
    return width & 0x3FFF, height & 0x3FFF
