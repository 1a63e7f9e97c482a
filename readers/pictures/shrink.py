"""Take from a row only the pixels that are shown, before they are coloured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

ShownSize = tuple[int, int]
"""Height and width."""
SAMPLES = 3
"""A shown pixel is the mean of at most this number of pixels on each side of the part that it covers."""
MOST_RATIO, LEAST_DIFFERENCE = 100, 0.01
"""The most that a pixel is longer than wide in pictures, and the least."""
THINNEST = 3
"""The least height or width of a picture that is made to fit."""


def fitted(size: ShownSize, box: ShownSize) -> ShownSize:
    """Return the size that a picture gets in a box. A small one grows by a whole number: pixels stay squares."""
    scale = min(box[0] / size[0], box[1] / size[1])
    scale = max(1, int(scale)) if scale >= 1 else scale
    height, width = (max(round(side * scale), min(THINNEST, room)) for side, room in zip(size, box, strict=True))
    return height, width


def proportioned(size: ShownSize, steps: Sequence[float]) -> ShownSize:
    """Return a size in the proportions of the world, by the distances from row to row and from column to column.

    The side with the larger steps grows. A distance that is not known, or a hundredth of the other, changes nothing.
    """
    down, across = steps
    ratio = down / across if across > 0 else 0.0
    if not 1 / MOST_RATIO <= ratio <= MOST_RATIO or abs(ratio - 1) < LEAST_DIFFERENCE:
        return size
    height, width = size
    return (round(height * ratio), width) if ratio > 1 else (height, round(width / ratio))


def nearest(pixels: NDArray[Any], size: ShownSize) -> NDArray[Any]:
    """Return (…,H,W) numbers at another size; each is one of the numbers that are there."""
    if pixels.shape[-2:] == size:
        return pixels
    rows, columns = (_middles(side, shown) for side, shown in zip(pixels.shape[-2:], size, strict=True))
    return pixels[..., rows, :][..., columns]


def mean(plane: NDArray[Any], size: ShownSize) -> NDArray[np.float32]:
    """Return a plane at another size as means of the pixels that each one covers, or of nine of them."""
    (height, width), samples = size, [_samples(*sides) for sides in zip(plane.shape, size, strict=True)]
    taken = nearest(plane, (height * samples[0], width * samples[1]))
    if samples == [1, 1]:
        return taken.astype(np.float32)
    parts = taken.reshape(height, samples[0], width, samples[1])
    with np.errstate(over="ignore", invalid="ignore"):
        total = parts[:, 0, :, 0].astype(np.float32)
        for number in range(1, samples[0] * samples[1]):
            total += parts[:, number // samples[1], :, number % samples[1]]
        total /= samples[0] * samples[1]
    return total


def _samples(side: int, shown: int) -> int:
    return min(SAMPLES, -(-side // shown))


def _middles(side: int, shown: int) -> NDArray[np.int64]:
    """Return the pixel in the middle of each shown one."""
    return (2 * np.arange(shown) + 1) * side // (2 * shown)
