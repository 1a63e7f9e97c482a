"""WebP: the container is ours to check, OpenCV decodes; lossless where the pixels are VP8L."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

import cv2

from packer.decoding import opencv
from packer.decoding.header import Header, Stored, exif_orientation, seen_through
from packer.errors import BadPair

_ANIMATED = 0x02


def read(file: BinaryIO) -> Header:
    """The size is said where the pixels begin; the orientation in a chunk of its own."""
    orientation: int | None = None
    facts: tuple[int, int, bool] | None = None
    for kind, length in _chunks(file):
        if (kind == b"VP8X" and file.read(1)[0] & _ANIMATED) or kind in (b"ANIM", b"ANMF"):
            raise BadPair("is an animated WebP; save the picture that is meant alone")
        if kind in (b"VP8 ", b"VP8L") and facts is None:
            facts = (*_size(kind, file.read(10)), kind == b"VP8 ")
        elif kind == b"EXIF" and length < 1 << 16:
            orientation = exif_orientation(file.read(length))
    if facts is None:
        raise BadPair("is a WebP without pixels")
    width, height, lossy = facts
    return Header("WebP", width, height, 8, 4, is_lossy=lossy, orientation=orientation or 1)


def decode(data: bytes, header: Header) -> Stored:
    """Colours, and alpha where the file has any."""
    pixels = opencv.decode(data, cv2.IMREAD_UNCHANGED)
    if pixels.shape[2] == 3:
        return Stored(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB))
    return Stored(cv2.cvtColor(pixels, cv2.COLOR_BGRA2RGB), seen_through(pixels[..., 3]))


def _chunks(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Each chunk as (type, length), the file standing at its content; all must lie within the file."""
    whole = file.seek(0, 2)
    file.seek(4)
    (length,) = struct.unpack("<I", file.read(4))
    place, end = 12, 8 + length
    if end > whole:
        raise BadPair("is cut short")
    while place + 8 <= end:
        file.seek(place)
        kind, size = struct.unpack("<4sI", file.read(8))
        if place + 8 + size > end:
            raise BadPair("is damaged: a chunk reaches beyond its end")
        yield kind, size
        place += 8 + size + size % 2


def _size(kind: bytes, start: bytes) -> tuple[int, int]:
    """(width, height) from the first bytes of the pixels."""
    if kind == b"VP8L":
        signature, bits = struct.unpack_from("<BI", start)
        if signature != 0x2F:
            raise BadPair("is damaged: its VP8L begins wrongly")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if start[3:6] != b"\x9d\x01\x2a":
        raise BadPair("is damaged: its VP8 begins wrongly")
    width, height = struct.unpack_from("<HH", start, 6)
    return width & 0x3FFF, height & 0x3FFF
