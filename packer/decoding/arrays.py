"""Arrays in the place of files: the facts that a file has in its header, and the pixels."""

from __future__ import annotations

import numpy as np

from packer.decoding.header import Header, Pixels, Stored, alpha_if_used
from packer.decoding.rules import MOST_PIXELS
from packer.errors import BadPair

ARRAY = "array"
_SHAPES = "(H, W), (H, W, 3) or (H, W, 4)"
_DTYPES = "uint8, uint16, float16, float32 or float64"


def header_of(pixels: Pixels, max_pixels: int = MOST_PIXELS) -> Header:
    """Return the facts of an array. Raise BadPair if it cannot be a picture."""
    if pixels.ndim not in (2, 3) or pixels.shape[2:] not in ((), (3,), (4,)):
        raise BadPair(f"has the shape {pixels.shape}; expected {_SHAPES}")
    if pixels.dtype not in (np.uint8, np.uint16, np.float16, np.float32, np.float64):
        raise BadPair(f"has the dtype {pixels.dtype.name}; expected {_DTYPES}")
    height, width = pixels.shape[:2]
    if not 0 < height * width <= max_pixels:
        raise BadPair(f"has {width}x{height} pixels; 1 to {max_pixels} are allowed (--max-pixels)")
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    return Header(ARRAY, width, height, 8 * pixels.itemsize, channels, is_float=pixels.dtype.kind == "f")


def stored(pixels: Pixels) -> Stored:
    """Return the pixels of an array with these facts. A fourth channel is alpha, which no picture of floats has."""
    if pixels.shape[2:] != (4,):
        return Stored(pixels)
    if pixels.dtype.kind == "f":
        raise BadPair(f"has the shape {pixels.shape} of floating-point numbers; a fourth channel would be alpha")
    return Stored(np.ascontiguousarray(pixels[..., :3]), alpha_if_used(pixels[..., 3]))
