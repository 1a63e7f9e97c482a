"""The statistics of a stored row: sums for mean and standard deviation, and counts of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from readers.contract.pixel_sums import Pixels


def row_pixels(image: NDArray[Any], counts: Sequence[int], ignored: int) -> Pixels:
    """Return the sums of a stored image (3,H,W) whose label has this many pixels per class, and ignored ones."""
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
    """Round numbers from 0 to 1 to the nearest of 256."""
    return image if image.dtype == np.uint8 else np.rint(image.astype(np.float32) * 255).astype(np.uint8)


def _sums(plane: NDArray[np.uint8]) -> tuple[int, int]:
    """Return the sum of the numbers and of their squares, ten times as fast as numpy.

    OpenCV gives the sum of squares as the square of its root. For the most pixels allowed, the error is far below one.
    """
    return int(cv2.sumElems(plane)[0]), round(cv2.norm(plane, cv2.NORM_L2SQR))
