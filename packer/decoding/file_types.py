"""Find the picture format of a file by its first bytes."""

from __future__ import annotations

import struct
from types import ModuleType
from typing import BinaryIO

from packer.decoding import bmp, jpeg, npy, png, webp
from packer.decoding.header import Header
from packer.decoding.rules import MOST_PIXELS, check_size
from packer.decoding.tiff import picture as tiff
from packer.errors import BadPair

JPEG_2000 = (b"\0\0\0\x0cjP  \r\n\x87\n", b"\xff\x4f\xff\x51")
"""The first bytes of a file in boxes, and of a codestream alone."""
_KINDS: tuple[tuple[tuple[bytes, ...], ModuleType], ...] = (
    ((png.SIGNATURE,), png),
    ((jpeg.SIGNATURE,), jpeg),
    (tiff.SIGNATURES, tiff),
    ((bmp.SIGNATURE,), bmp),
    ((npy.SIGNATURE,), npy),
)
_OTHERS = {
    b"GIF8": "a GIF",
    b"\xff\x0a": "a JPEG XL",
    b"\0\0\0\x0cJXL ": "a JPEG XL",
    b"\x76\x2f\x31\x01": "an OpenEXR",
    b"8BPS": "a Photoshop file",
    b"#?RADIANCE": "a Radiance HDR",
    **{b"P%d" % number: "a PNM" for number in range(1, 8)},
    b"PF": "a PFM",
    b"Pf": "a PFM",
}


def kind_of(start: bytes) -> ModuleType:
    """Return the module that reads a file with these first 16 bytes. Raise BadPair if there is none."""
    for signatures, kind in _KINDS:
        if start.startswith(signatures):
            return kind
    if start.startswith(JPEG_2000):
        from packer.decoding import jpeg2000  # most builds have none

        return jpeg2000
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return webp
    if not start:
        raise BadPair("is empty")
    name = next((name for signature, name in _OTHERS.items() if start.startswith(signature)), None)
    if start[4:8] == b"ftyp":
        name = "a HEIF or AVIF"
    if name is None:
        raise BadPair("is not a PNG, JPEG, TIFF, JPEG 2000, BMP, WebP or npy; convert it to one of them")
    raise BadPair(f"is {name}, which cannot be packed; convert it to PNG")


def read_header(file: BinaryIO, max_pixels: int = MOST_PIXELS) -> Header:
    """Read the header of a picture. Raise BadPair if it is damaged or not supported."""
    kind = kind_of(file.read(16))
    try:
        header: Header = kind.read(file)
    except (struct.error, IndexError, KeyError) as error:
        raise BadPair("ends within its header") from error
    check_size(header.stored_height, header.stored_width, header.channels, max_pixels)
    return header
