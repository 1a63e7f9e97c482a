"""Encode rows: the bytes that are stored of a row whose field has an encoding."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair
from packer.pixels.jpeg_rules import JpegRules
from readers.contract.errors import DamagedError
from readers.contract.fields import ZSTD, Field
from readers.contract.receipt import MOST_PSNR
from readers.formats.unpack import unpack

LEVEL = 1
"""The fastest level with full frames. Labels nearly vanish at this one."""
MOST_SIDE = 65500
"""The most pixels of a side that libjpeg writes."""
EQUAL = MOST_PSNR
"""The PSNR of a picture that comes back unchanged: that of any other is lower."""
_MINE = threading.local()
"""The compressor of this thread; threads must not share one."""


class Encoded(NamedTuple):
    """The bytes that are stored of a row. If they lose something, also what is read from them, and the PSNR of that."""

    stored: bytes
    numbers: NDArray[Any] | None = None
    psnr: int = EQUAL
    """In hundredths of a decibel."""


def encode(field: Field, jpeg: JpegRules | None, numbers: NDArray[Any], file: bytes) -> Encoded:
    """Return what is stored of a row: the same bytes wherever the versions of `tools_of_encodings` are the same.

    `file` is what the row was read from, empty if that is not a file.
    """
    if field.encoding == ZSTD:
        return Encoded(_frame(numbers))
    assert jpeg is not None, "planned fields have no other encoding"
    if jpeg.keep and _holds(field, file, numbers):
        return Encoded(file)
    stored = _jpeg(numbers, jpeg.quality)
    found = np.empty_like(numbers)
    unpack(field, np.frombuffer(stored, np.uint8), found)
    return Encoded(stored, found, psnr(numbers, found))


def psnr(numbers: NDArray[np.uint8], found: NDArray[np.uint8]) -> int:
    """Return the peak signal-to-noise ratio of a picture, in hundredths of a decibel."""
    squares = round(cv2.norm(numbers.reshape(-1), found.reshape(-1), cv2.NORM_L2SQR))
    return EQUAL if squares == 0 else min(EQUAL, round(1000 * math.log10(255**2 * numbers.size / squares)))


def tools_of_encodings(fields: Sequence[Field]) -> tuple[str, ...]:
    """Return the versions of the libraries that encode these fields. That of JPEG is among the decoders."""
    if not any(field.encoding == ZSTD for field in fields):
        return ()
    import zstandard

    return (f"zstd {'.'.join(map(str, zstandard.ZSTD_VERSION))} level {LEVEL}",)


def _frame(numbers: NDArray[Any]) -> bytes:
    """Return a frame of Zstandard."""
    import zstandard

    if not hasattr(_MINE, "zstd"):
        _MINE.zstd = zstandard.ZstdCompressor(level=LEVEL, write_checksum=False, write_content_size=True)
    frame: bytes = _MINE.zstd.compress(numbers)
    return frame


def _jpeg(numbers: NDArray[np.uint8], quality: int) -> bytes:
    """Return a JPEG file without chroma subsampling."""
    import simplejpeg

    bands, height, width = numbers.shape
    if max(height, width) > MOST_SIDE:
        raise BadPair(f"has {height}x{width} pixels; a JPEG file has at most {MOST_SIDE} a side")
    pixels, colours, sampling = cv2.merge(list(numbers)).reshape(height, width, bands), "RGB", "444"
    if bands == 1:
        colours, sampling = "GRAY", "Gray"
    file: bytes = simplejpeg.encode_jpeg(pixels, quality, colours, sampling)
    return file


def _holds(field: Field, file: bytes, numbers: NDArray[np.uint8]) -> bool:
    """Return whether readers get just these numbers from a file."""
    if not file.startswith(b"\xff\xd8"):
        return False
    found = np.empty_like(numbers)
    try:
        unpack(field, np.frombuffer(file, np.uint8), found)
    except DamagedError:
        return False
    return np.array_equal(found, numbers)
