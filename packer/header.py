"""What a PNG or JPEG says of itself before it is decoded: kind, size, depth, channels, how it is turned."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from packer.errors import BadPair

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
GRAY, RGB, PALETTE, GRAY_ALPHA, RGB_ALPHA = 0, 2, 3, 4, 6
_CHANNELS = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGB_ALPHA: 4}

_EXIF = b"Exif\0\0"
_WHOLE_NUMBERS = {3: "H", 4: "I"}

MOST_PIXELS = 1 << 28
"""A header may claim any size; decoding one of 60,000 x 60,000 would take the machine down."""


@dataclass(frozen=True)
class Header:
    """The facts of a picture. `orientation` is EXIF's: 1 is upright, 5 to 8 are stored with sides swapped."""

    kind: str
    stored_width: int
    stored_height: int
    depth: int
    colour: int
    transparent: bytes | None = None
    """The tRNS chunk; empty for a type with alpha; None where every pixel is opaque."""
    orientation: int = 1

    @property
    def size(self) -> tuple[int, int]:
        """(height, width) once upright."""
        if self.orientation >= 5:
            return self.stored_width, self.stored_height
        return self.stored_height, self.stored_width

    @property
    def channels(self) -> int:
        return _CHANNELS[self.colour]


def read_header(file: BinaryIO) -> Header:
    """The header of a picture. Raises BadPair where it is none, or one that says impossible things."""
    start = file.read(8)
    try:
        if start == PNG_SIGNATURE:
            header = _png(file)
        elif start[:2] == b"\xff\xd8":
            file.seek(2)
            header = _jpeg(file)
        else:
            raise BadPair("is neither PNG nor JPEG" if start else "is empty")
    except (struct.error, IndexError, KeyError) as error:
        raise BadPair("ends within its header") from error
    if not 0 < header.stored_width * header.stored_height <= MOST_PIXELS:
        size = f"{header.stored_width}x{header.stored_height} pixels"
        raise BadPair(f"claims {size}; there must be some, and at most {MOST_PIXELS}")
    return header


def png_chunks(data: bytes | memoryview) -> Iterator[tuple[bytes, int, int]]:
    """Each chunk of a PNG as (type, start, end) of its content; raises BadPair on a wrong checksum or a missing end."""
    place = len(PNG_SIGNATURE)
    while place + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, place)
        kind, start, end = bytes(data[place + 4 : place + 8]), place + 8, place + 8 + length
        if end + 4 > len(data):
            break
        if zlib.crc32(data[place + 4 : end]) != struct.unpack_from(">I", data, end)[0]:
            raise BadPair(f"is damaged: the checksum of its chunk {kind.decode('latin-1')!r} is wrong")
        yield kind, start, end
        if kind == b"IEND":
            return
        place = end + 4
    raise BadPair("is cut short")


def jpeg_is_whole(data: bytes) -> bool:
    """Whether the end marker is reached by following the markers: the same bytes in a thumbnail do not count."""
    place = 2
    while True:
        place = data.find(b"\xff", place)
        if place < 0 or place + 1 >= len(data):
            return False
        marker = data[place + 1]
        if marker == 0xD9:
            return True
        if marker == 0xFF:  # padding
            place += 1
        elif marker in (0x00, 0x01) or 0xD0 <= marker <= 0xD7:  # no length follows
            place += 2
        else:
            place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")


def _png(file: BinaryIO) -> Header:
    """Read the chunks' headers; only IHDR, tRNS and eXIf matter, and eXIf may come after the pixels."""
    facts: tuple[int, ...] | None = None
    transparent: bytes | None = None
    orientation = 1
    while True:
        length, kind = struct.unpack(">I4s", file.read(8))
        if facts is None and kind != b"IHDR":
            raise BadPair("is not a PNG that follows the standard: it does not begin with IHDR")
        if kind == b"IEND":
            break
        content = file.read(length) if kind in (b"IHDR", b"eXIf", b"tRNS") and length < 1 << 16 else b""
        file.seek(length - len(content) + 4, 1)
        if kind == b"IHDR":
            facts = struct.unpack(">IIBBBBB", content)
        elif kind == b"tRNS":
            transparent = content
        elif kind == b"eXIf":
            orientation = _orientation(content)
    assert facts is not None
    width, height, depth, colour, *_ = facts
    if colour not in _CHANNELS or depth not in (1, 2, 4, 8, 16):
        raise BadPair(f"claims the colour type {colour} with {depth} bits, which no PNG has")
    if colour in (GRAY_ALPHA, RGB_ALPHA):
        transparent = b""
    return Header("png", width, height, depth, colour, transparent, orientation)


def _jpeg(file: BinaryIO) -> Header:
    """Follow the markers up to the scan: the frame header is on the way, and so is EXIF, mostly before it."""
    frame: tuple[int, ...] | None = None
    orientation: int | None = None
    while True:
        marker = file.read(2)
        while marker[1] == 0xFF:  # padding
            marker = marker[1:] + file.read(1)
        if marker[0] != 0xFF:
            raise BadPair("is not a JPEG that follows the standard: a marker is missing")
        if marker[1] == 0x01 or 0xD0 <= marker[1] <= 0xD7:
            continue
        if marker[1] in (0xD9, 0xDA):
            break
        (length,) = struct.unpack(">H", file.read(2))
        if length < 2:
            raise BadPair("is not a JPEG that follows the standard: a segment has no length")
        content = file.read(length - 2)
        if 0xC0 <= marker[1] <= 0xCF and marker[1] not in (0xC4, 0xC8, 0xCC):
            frame = struct.unpack_from(">BHHB", content)
        elif marker[1] == 0xE1 and content.startswith(_EXIF) and orientation is None:
            orientation = _orientation(content)
    if frame is None:
        raise BadPair("has no frame header")
    depth, height, width, components = frame
    if components not in (1, 3):
        raise BadPair(f"has {components} colour components (CMYK?); convert it to RGB")
    return Header("jpeg", width, height, depth, GRAY if components == 1 else RGB, None, orientation or 1)


def _orientation(tiff: bytes) -> int:
    """The orientation in an EXIF block; 1 where it has none, or none that makes sense."""
    tiff = tiff.removeprefix(_EXIF)
    try:
        order = {b"II": "<", b"MM": ">"}[tiff[:2]]
        (directory,) = struct.unpack_from(order + "I", tiff, 4)
        (count,) = struct.unpack_from(order + "H", tiff, directory)
        for entry in range(directory + 2, directory + 2 + 12 * count, 12):
            tag, kind, _ = struct.unpack_from(order + "HHI", tiff, entry)
            if tag == 0x0112 and kind in _WHOLE_NUMBERS:
                (value,) = struct.unpack_from(order + _WHOLE_NUMBERS[kind], tiff, entry + 8)
                return int(value) if 1 <= value <= 8 else 1
    except (KeyError, struct.error):
        pass
    return 1
