"""The rules of geometry once more, written out plainly: what the pixels of a row must be."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.tiles import Size, Tile


def overlaps(source: int, target: int) -> NDArray[np.int64]:
    """Return the overlap of each source pixel with each target pixel, in units of 1/target."""
    low, high = np.arange(target)[:, None] * source, np.arange(1, target + 1)[:, None] * source
    left, right = np.arange(source) * target, np.arange(1, source + 1) * target
    return np.asarray(np.maximum(0, np.minimum(high, right) - np.maximum(low, left)), np.int64)


def area(image: NDArray[Any], size: Size) -> NDArray[np.uint8]:
    """Return an image (H,W,C) of which no side grows as exact means; halves become even numbers."""
    height, width = image.shape[:2]
    sums = np.einsum("ys,sxc->yxc", overlaps(height, size[0]), image.astype(np.int64))
    sums = np.einsum("xs,ysc->yxc", overlaps(width, size[1]), sums)
    total = height * width
    means = sums // total + (2 * (sums % total) + sums // total % 2 > total)
    return np.asarray(means, np.uint8)


def nearest(pixels: NDArray[Any], size: Size) -> NDArray[Any]:
    """Return at each pixel the one below its centre."""
    height, width = pixels.shape[:2]
    rows = [(2 * row + 1) * height // (2 * size[0]) for row in range(size[0])]
    columns = [(2 * column + 1) * width // (2 * size[1]) for column in range(size[1])]
    return pixels[rows][:, columns]


def centred(pixels: NDArray[Any], size: Size, fill: int) -> NDArray[Any]:
    """Return pixels cut or padded to a size around their middle."""
    for axis in (0, 1):
        more = size[axis] - pixels.shape[axis]
        if more < 0:
            start = -more // 2
            pixels = pixels.take(range(start, start + size[axis]), axis=axis)
        else:
            sides = [(0, 0)] * pixels.ndim
            sides[axis] = (more // 2, more - more // 2)
            pixels = np.pad(pixels, sides, constant_values=fill)
    return pixels


def tile(pixels: NDArray[Any], key: str, size: Size, fill: int) -> NDArray[Any]:
    """Return the tile with this key, padded below and to the right."""
    top, left = Tile.of(key).origin
    part = pixels[top : top + size[0], left : left + size[1]]
    sides = [(0, size[0] - part.shape[0]), (0, size[1] - part.shape[1])] + [(0, 0)] * (pixels.ndim - 2)
    return np.pad(part, sides, constant_values=fill)
