"""OpenCV's decoder, with its failures in our words."""

from __future__ import annotations

import re

import cv2
import numpy as np

from packer.decoding.header import Pixels
from packer.errors import BadPair


def decode(data: bytes, flags: int) -> Pixels:
    """The stored pixels; turning them is ours to do, so that image and label follow the same rule."""
    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), flags | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error as error:
        if error.code == cv2.Error.StsNoMem:  # says nothing about the picture, so it must not become a verdict on it
            raise MemoryError(error.err) from error
        raise BadPair(f"cannot be decoded ({error.err})") from error
    if pixels is None:
        raise BadPair("cannot be decoded: it is damaged")
    return pixels


def identity() -> str:
    """OpenCV and the libraries inside it that decide pixels."""
    about = cv2.getBuildInformation()
    parts = [f"opencv {cv2.__version__}"]
    for name in ("PNG", "WEBP"):
        found = re.search(rf"^\s*{name}:.*\(ver ([^)]*)\)", about, re.MULTILINE)
        parts.append(f"{name.lower()} {found[1] if found else 'unknown'}")
    return ", ".join(parts)
