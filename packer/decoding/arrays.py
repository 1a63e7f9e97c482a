"""Arrays in the place of files: the facts that a file has in its header, and the pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.decoding.header import FilePixels, Header, Pixels
from packer.decoding.rules import MOST_PIXELS, check_size
from packer.errors import BadPair
from readers.contract.kinds import MOST_BANDS

ARRAY = "array"
SHAPES = f"expected (H, W), or (H, W, B) with 1 to {MOST_BANDS} bands"
BANDS_LAST = ". Bands come last: np.moveaxis(array, 0, -1)"
DATES = ". Dates of bands (T, H, W, C) are np.dstack(dates), returned by a function (Rows), with --times"
FEW = 16
"""The most bands of an array that are few. A last axis that is longer may be a side of the picture."""
DTYPES = "expected whole numbers or floating-point numbers of 1 to 8 bytes"
MOST_MASKS = 1024
"""The most bands of truth values: overlapping classes."""
MOST_VALUE = 65535
"""The largest number of a label."""


def header_of(pixels: Pixels, max_pixels: int = MOST_PIXELS) -> Header:
    """Return the facts of an array. Raise BadPair if it cannot be a picture."""
    header = header_by(ARRAY, pixels.shape, pixels.dtype)
    check_size(header.stored_height, header.stored_width, header.channels, max_pixels, "has")
    return header


def header_by(kind: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Header:
    """Return the facts of an array by its shape and type. The fourth of four channels is alpha, except in floats.

    One and three channels are gray and RGB.
    """
    most = MOST_MASKS if dtype.kind == "b" else MOST_BANDS
    if len(shape) not in (2, 3) or not all(0 < bands <= most for bands in shape[2:]):
        hint = DATES if len(shape) == 4 else BANDS_LAST if len(shape) == 3 and shape[0] <= FEW else ""
        raise BadPair(f"has the shape {shape}; {SHAPES}{hint}")
    if dtype.kind not in "buif" or dtype.itemsize not in (1, 2, 4, 8):
        raise BadPair(f"has the dtype {dtype.name}; {DTYPES}")
    channels = 1 if len(shape) == 2 else shape[2]
    has_alpha = channels == 4 and dtype.kind != "f"
    return Header(
        kind,
        shape[1],
        shape[0],
        1 if dtype.kind == "b" else 8 * dtype.itemsize,
        channels,
        is_float=dtype.kind == "f",
        is_signed=dtype.kind == "i",
        has_alpha=has_alpha,
        extra=0 if has_alpha or channels in (1, 3) else channels - 1,
    )


def check_bands_last(shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse an array of many bands that seem to come first: few are before the sides, or the sides are a square."""
    if len(shape) != 3 or shape[2] <= FEW or dtype.kind == "b" or shape[0] == shape[1]:
        return
    if shape[0] <= FEW or shape[1] == shape[2]:
        raise BadPair(f"has the shape {shape}; {SHAPES}{BANDS_LAST}")


def stored(pixels: Pixels) -> FilePixels:
    """Return the pixels of an array with these facts."""
    if pixels.dtype == np.bool_:
        pixels = pixels.view(np.uint8)
    if pixels.shape[2:] == (1,):
        return FilePixels(pixels[..., 0])
    if pixels.shape[2:] != (4,) or pixels.dtype.kind == "f":
        return FilePixels(pixels)
    return FilePixels(np.ascontiguousarray(pixels[..., :3]), pixels[..., 3])


def class_numbers(pixels: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers of a label as 8 or 16 bits, whatever type of whole numbers they have."""
    if pixels.dtype.kind not in "biu" or pixels.dtype in (np.uint8, np.uint16) or not pixels.size:
        return pixels
    low, high = int(pixels.min()), int(pixels.max())
    if low < 0 or high > MOST_VALUE:
        wrong = low if low < 0 else high
        index = ", ".join(map(str, np.argwhere(pixels == wrong)[0].tolist()))
        raise BadPair(f"has the number {wrong} at ({index}); class numbers are 0 to {MOST_VALUE}")
    return pixels.astype(np.uint8 if high < 256 else np.uint16)
