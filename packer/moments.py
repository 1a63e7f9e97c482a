"""What a row adds to the statistics of its data set: whole numbers, so that their sums do not depend on any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from readers.contract.pixels import Pixels


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
