"""Row statistics: mean and standard deviation of an image, and a fingerprint of how it looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from readers.contract.pixel_sums import Pixels

FLAT = "flat"
"""In place of the hash of an image that is one colour: all of these look alike."""

SAMPLED = 128
"""Rows and columns that the hash is made of, about: every pixel would take a tenth of a build."""


def look(crc32: int, pixels: NDArray[Any]) -> str:
    """The CRC of the image as it is stored, then the difference hash of its pixels (H,W,3), or `flat`."""
    step = max(1, min(pixels.shape[:2]) // SAMPLED)
    sample = pixels[::step].take(np.arange(0, pixels.shape[1], step), axis=1)
    small = cv2.resize(sample, (9, 8), interpolation=cv2.INTER_AREA)
    small = small.astype(np.float32).sum(2)
    bits = np.packbits(small[:, 1:] > small[:, :-1]).tobytes().hex()
    flat = small.max() - small.min() <= 3 and bool((pixels == pixels[0, 0]).all())
    return f"{crc32:08x}{FLAT if flat else bits}"


def row_pixels(image: NDArray[Any], counts: Sequence[int], ignored: int) -> Pixels:
    """Of an image (3,H,W) as it is stored, and the number of its label's pixels of each class, and of none."""
    area = sum(counts) + ignored
    sums, squares = zip(*map(_sums, _bytes(image)), strict=True)
    return Pixels(
        classes=tuple(counts),
        rows=tuple(int(count > 0) for count in counts),
        areas=tuple(area * (count > 0) for count in counts),
        ignored=ignored,
        sums=sums,
        squares=squares,
    )


def _bytes(image: NDArray[Any]) -> NDArray[np.uint8]:
    """Numbers from 0 to 1 as the nearest of 256."""
    return image if image.dtype == np.uint8 else np.rint(image.astype(np.float32) * 255).astype(np.uint8)


def _sums(plane: NDArray[np.uint8]) -> tuple[int, int]:
    """Of the numbers and their squares, ten times as fast as numpy. The latter's sum comes as the square of its root,
    which is off by far less than one for as many pixels as there may be."""
    return int(cv2.sumElems(plane)[0]), round(cv2.norm(plane, cv2.NORM_L2SQR))
