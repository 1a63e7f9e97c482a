"""Decode JPEG. Every warning of libjpeg is a refusal: where it warns, it has invented missing pixels."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from typing import BinaryIO, TypeAlias

import numpy as np
import simplejpeg

from packer.decoding.header import FilePixels, Header
from packer.decoding.orientation import EXIF, Orientation
from packer.errors import BadPair

SIGNATURE = b"\xff\xd8"
_XMP = b"http://ns.adobe.com/xap/1.0/\0"
_PROFILE = b"ICC_PROFILE\0"
_JFIF = b"JFIF\0"
_KNOWN_REVISION = b"\1\1"
_HARMLESS = ("bad ICC marker", "JFIF revision")
"""The warnings of libjpeg about what decides no pixel."""
_MORE_XMP = b"http://ns.adobe.com/xmp/extension/\0"
_MORE_XMP_HEADER = len(_MORE_XMP) + 32 + 4 + 4
"""The parts of a long XMP packet begin with its identifier, its length and the offset of the part."""
_FRAMES = (0xC0, 0xC1, 0xC2, 0xC9, 0xCA)
"""Baseline, extended and progressive, with either entropy coding. The others are lossless or hierarchical."""
_PROGRESSIVE = (0xC2, 0xCA)
Change: TypeAlias = Callable[[int, bytes], bytes | None]
"""From a marker and the content of its segment to another content, or to None if the segment is to be left out."""


def read(file: BinaryIO) -> Header:
    """Follow the markers up to the first scan. Frame header and orientation come before it."""
    frame: tuple[int, ...] | None = None
    orientation, more_xmp = Orientation(), b""
    for marker, content in _segments(file):
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            if marker not in _FRAMES:
                raise BadPair(
                    f"is a JPEG of a rare kind (frame {marker:#x}: lossless or hierarchical); convert it to PNG"
                )
            frame = struct.unpack_from(">BHHB", content)
        elif marker == 0xE1 and content.startswith(EXIF[:5]):
            orientation.add_exif(content)
        elif marker == 0xE1 and content.startswith(_XMP):
            orientation.add_xmp(content)
        elif marker == 0xE1 and content.startswith(_MORE_XMP):
            more_xmp += content[_MORE_XMP_HEADER:]
    orientation.add_xmp(more_xmp)
    if frame is None:
        raise BadPair("has no frame header")
    depth, height, width, components = frame
    if components not in (1, 3):
        raise BadPair(f"has {components} colour components (CMYK?); convert it to RGB")
    if depth != 8:
        raise BadPair(f"is a JPEG with {depth} bits per channel; convert it to PNG")
    return Header("JPEG", width, height, depth, components, is_lossy=True, orientation=orientation.number)


def is_progressive(file: BinaryIO) -> bool:
    """Return whether every scan refines the whole picture, so that its coefficients are in memory at once."""
    return any(marker in _PROGRESSIVE for marker, _ in _segments(file))


def decode(data: bytes, header: Header) -> FilePixels:
    """Return the numbers of a gray JPEG, or the colours of any other."""
    colours = "GRAY" if header.channels == 1 else "RGB"
    height, width = header.decoded_size if header.reduction > 1 else (0, 0)  # the least; 0: the whole picture
    decode_jpeg = partial(simplejpeg.decode_jpeg, colorspace=colours, min_height=height, min_width=width, strict=True)
    try:
        try:
            pixels = decode_jpeg(data)
        except ValueError as error:
            if not any(doubt in str(error) for doubt in _HARMLESS):
                raise
            head, rest = changed_head(data, _without_doubts)
            pixels = decode_jpeg(SIGNATURE + head + rest)
    except ValueError as error:
        raise BadPair(_reason(str(error))) from error
    _check_scans(data, header.channels)
    numbers = np.asarray(pixels, np.uint8)
    return FilePixels(numbers[..., 0] if header.channels == 1 else numbers)


def identity() -> str:
    return f"simplejpeg {simplejpeg.__version__}"


def _reason(error: str) -> str:
    """Return the reason of a refusal. Some are not damage for certain, and a person can decide."""
    if "subsampling" in error:
        return "is a JPEG with a rare chroma subsampling; convert it to PNG"
    if "extraneous bytes" in error:
        return (
            f"is damaged, or just has bytes that belong to no pixel ({error}); "
            "look at it, and convert it to PNG if it is whole"
        )
    return f"is damaged ({error})"


def segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content


def changed_head(data: bytes, change: Change) -> tuple[bytes, bytes]:
    """Return the segments before the first scan, each changed or left out (None), and the rest of the file."""
    file, kept = BytesIO(data), []
    for marker, content in _segments(file):
        if (changed := change(marker, content)) is not None:
            kept.append(segment(marker, changed))
    return b"".join(kept), data[file.tell() - 2 :]


def _without_doubts(marker: int, content: bytes) -> bytes | None:
    """Change what libjpeg warns about although it decides no pixel: an incomplete profile, a revision of JFIF."""
    if marker == 0xE2 and content.startswith(_PROFILE):
        return None
    if marker == 0xE0 and content.startswith(_JFIF):
        return _JFIF + _KNOWN_REVISION + content[len(_JFIF) + 2 :]
    return content


def _check_scans(data: bytes, channels: int) -> None:
    """Refuse a file that ends properly, but lacks the scans with the last bits of a channel."""
    file = BytesIO(data)
    read(file)
    scan, end = file.tell() - 2, None
    missing: dict[int, list[int]] = {}
    while scan >= 0:
        count = data[scan + 4]
        first, last, bits = struct.unpack_from("BBB", data, scan + 5 + 2 * count)
        for channel in data[scan + 5 : scan + 5 + 2 * count : 2]:
            missing.setdefault(channel, [1] * 64)[first : last + 1] = [bits & 15] * (last + 1 - first)
        if end is None:
            if len(missing) == channels and not any(map(any, missing.values())):
                return  # most files have one scan for everything; searching for more takes longer than all else here
            end = data.find(b"\xff\xd9", scan)
        scan = data.find(b"\xff\xda", scan + 2, end)
    if len(missing) < channels or any(any(bits) for bits in missing.values()):
        raise BadPair("is damaged: its last scans are missing")


def _segments(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the segments before the first scan as (marker, content). The file is then behind the marker of the scan."""
    file.seek(2)
    while (marker := _marker(file)) not in (0xD9, 0xDA):
        (length,) = struct.unpack(">H", file.read(2))
        if length < 2:
            raise BadPair("is not a JPEG that follows the standard: a segment has no length")
        yield marker, file.read(length - 2)


def _marker(file: BinaryIO) -> int:
    """Return the next marker that has a length or ends the header."""
    while True:
        marker = file.read(2)
        while marker[1] == 0xFF:  # padding
            marker = marker[1:] + file.read(1)
        if marker[0] != 0xFF:
            raise BadPair("is not a JPEG that follows the standard: a marker is missing")
        if marker[1] != 0x01 and not 0xD0 <= marker[1] <= 0xD7:
            return marker[1]
