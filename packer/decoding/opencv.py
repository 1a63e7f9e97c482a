"""Call OpenCV's decoder, and turn its errors into a BadPair."""

from __future__ import annotations

import re

import cv2
import numpy as np

from packer.decoding.header import Pixels
from packer.errors import BadPair


def decode(data: bytes, flags: int) -> Pixels:
    """Return the stored pixels, not turned by EXIF: `decode` turns image and label by the same rule."""
    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), flags | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error as error:
        if error.code == cv2.Error.StsNoMem:  # not the fault of the picture, so it must not make the pair bad
            raise MemoryError(error.err) from error
        raise BadPair(f"cannot be decoded ({error.err})") from error
    if pixels is None:
        raise BadPair("cannot be decoded: it is damaged")
    return pixels


def identity() -> str:
    """Return the versions of OpenCV and of the libraries inside it that decide pixels."""
    about = cv2.getBuildInformation()
    parts = [f"opencv {cv2.__version__}"]
    for name in ("PNG", "WEBP"):
        match = re.search(rf"^\s*{name}:.*\(ver ([^)]*)\)", about, re.MULTILINE)
        parts.append(f"{name.lower()} {match[1] if match else 'unknown'}")
    return ", ".join(parts)
