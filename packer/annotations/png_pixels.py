"""Decode a PNG that a file of annotations holds, if it is not larger than the picture."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair
from readers.contract.tiles import Size

PNG = b"\x89PNG\r\n\x1a\n"


def png_pixels(data: bytes, size: Size) -> NDArray[Any]:
    """Return the pixels of a grey PNG (H,W), or of one with transparency (H,W,4), which fits into this size."""
    height, width = int.from_bytes(data[20:24], "big"), int.from_bytes(data[16:20], "big")
    if not data.startswith(PNG) or not 0 < height <= size[0] or not 0 < width <= size[1]:
        description = f"of {height}x{width} pixels" if data.startswith(PNG) else "that is not a PNG"
        raise BadPair(f"has a bitmap {description} in a picture of {size[0]}x{size[1]} (height x width)")
    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error:
        pixels = None
    if pixels is None or pixels.shape[:2] != (height, width) or (pixels.ndim == 3 and pixels.shape[2] != 4):
        raise BadPair("has a bitmap that is a damaged PNG, or in colour")
    return np.asarray(pixels)
