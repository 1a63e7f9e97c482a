"""The orientation of a picture, from the metadata in which it can be: EXIF first, then XMP."""

from __future__ import annotations

import re
import struct
from typing import BinaryIO

from packer.errors import BadPair

EXIF = b"Exif\0\0"
MOST_METADATA = 16 << 20
"""A longer block of metadata is refused, because its orientation would stay unknown. Real ones have kilobytes."""
_WHOLE_NUMBERS = {1: "B", 3: "H", 4: "I", 8: "h", 9: "i"}
_TIFF_PREFIX = re.compile(rb"xmlns:([\w.-]{1,64})\s*=\s*[\"']http://ns\.adobe\.com/tiff/1\.0/[\"']")
_MOST_PREFIXES = 8


class Orientation:
    """Collects what the metadata of a file say. The first block of a kind with an orientation counts."""

    def __init__(self) -> None:
        self.exif: int | None = None
        self.xmp: int | None = None

    def add_exif(self, block: bytes) -> None:
        self.exif = self.exif or exif_orientation(block)

    def add_xmp(self, packet: bytes) -> None:
        self.xmp = self.xmp or xmp_orientation(packet)

    @property
    def is_known(self) -> bool:
        return bool(self.exif or self.xmp)

    @property
    def number(self) -> int:
        """The EXIF number. XMP counts only if EXIF has none."""
        return self.exif or self.xmp or 1


def read_metadata(file: BinaryIO, length: int) -> bytes:
    """Return the next `length` bytes. Raise BadPair if they are too many to search for an orientation."""
    if length > MOST_METADATA:
        raise too_much_metadata()
    return file.read(length)


def too_much_metadata() -> BadPair:
    return BadPair(f"has more than {MOST_METADATA >> 20} MiB of EXIF or XMP, which may turn it; remove its metadata")


def exif_orientation(block: bytes) -> int | None:
    """Return the orientation in an EXIF block: None if it has none, 1 if it is not from 1 to 8."""
    tiff = block[len(EXIF) :] if block.startswith(EXIF[:5]) else block
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
    return None


def xmp_orientation(packet: bytes) -> int | None:
    """Return the orientation in an XMP packet, as an attribute or an element, under any prefix of its namespace."""
    text = packet.replace(b"\0", b"")  # UTF-16 and UTF-32 become ASCII
    declared = sorted(set(_TIFF_PREFIX.findall(text)))[:_MOST_PREFIXES]
    prefixes = b"|".join(map(re.escape, (b"tiff", *declared)))
    pattern = rb"\b(?:%s):Orientation(?:\s{0,99}=\s{0,99}[\"']|(?:\s[^<>]{0,99})?>)\s{0,99}([1-8])\s{0,99}[\"'<]"
    match = re.search(pattern % prefixes, text)
    return int(match[1]) if match else None
