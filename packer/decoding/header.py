"""`Header` and `Stored`: the facts of a picture before and after it is decoded; its orientation."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[Any]

EXIF = b"Exif\0\0"
_WHOLE_NUMBERS = {3: "H", 4: "I"}
_XMP_ORIENTATION = re.compile(rb"tiff:Orientation\s*(?:=\s*[\"']|>)\s*([1-8])\s*[\"'<]")


@dataclass(frozen=True)
class Header:
    """The facts of a picture. `channels` includes alpha and is 1 for a palette; `depth` is in bits per channel."""

    kind: str
    stored_width: int
    stored_height: int
    depth: int
    channels: int
    is_float: bool = False
    is_lossy: bool = False
    orientation: int = 1
    """The EXIF number: 1 is upright, 5 to 8 have height and width swapped."""
    has_palette: bool = False

    @property
    def size(self) -> tuple[int, int]:
        """The upright (height, width)."""
        if self.orientation >= 5:
            return self.stored_width, self.stored_height
        return self.stored_height, self.stored_width


@dataclass(frozen=True)
class Stored:
    """The pixels of a file, not yet turned upright: (H,W) numbers or (H,W,3) RGB.

    `alpha` is None if every pixel is opaque. With a palette (rows of red, green, blue, alpha), numbers are indices.
    """

    numbers: Pixels
    alpha: Pixels | None = None
    palette: NDArray[np.uint8] | None = None


def alpha_if_used(alpha: Pixels) -> Pixels | None:
    """Return alpha, or None if every pixel is opaque."""
    return alpha if alpha.min() < np.iinfo(alpha.dtype).max else None


def exif_orientation(tiff: bytes) -> int | None:
    """Return the orientation in an EXIF block: None if it has none, 1 if it is not from 1 to 8."""
    tiff = tiff.removeprefix(EXIF)
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
    """Return the orientation in an XMP packet. It counts only if EXIF has none."""
    found = _XMP_ORIENTATION.search(packet)
    return int(found[1]) if found else None
