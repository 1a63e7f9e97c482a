"""Bringing images and labels to the stored size; both by the same plan, each by the rule that fits its kind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.labels import IGNORE

Size = tuple[int, int]
Array = TypeVar("Array", bound=NDArray[Any])

FITS = ("stretch", "letterbox", "crop-or-pad")
INTERPOLATIONS = ("area", "linear", "cubic", "nearest")
_GROW = {"area": cv2.INTER_LINEAR, "linear": cv2.INTER_LINEAR, "cubic": cv2.INTER_CUBIC}


@dataclass(frozen=True)
class Geometry:
    """The stored (height, width), how a picture is made to fit it, and how an image's pixels are made.

    area: exact area mean on sides that shrink, linear on sides that grow; cubic: the same, growing cubic;
    linear: two neighbours a side, also when shrinking (aliases); nearest: the rule of labels.
    """

    size: Size
    fit: str = "stretch"
    interpolation: str = "area"

    def image(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """An image at the stored size; padding is black."""
        source = _size(pixels)
        if source == self.size:
            return pixels
        if self.fit == "crop-or-pad":
            return _centre(pixels, self.size, 0)
        return _centre(_resize(pixels, self._scaled(source), self.interpolation), self.size, 0)

    def label(self, index: NDArray[np.uint16]) -> NDArray[np.uint16]:
        """Class indices at the stored size: nearest only, for a mean of two classes is a third; padding is ignored."""
        source = _size(index)
        if source == self.size:
            return index
        if self.fit == "crop-or-pad":
            return _centre(index, self.size, IGNORE)
        return _centre(_nearest(index, self._scaled(source)), self.size, IGNORE)

    def _scaled(self, source: Size) -> Size:
        """What a picture of this size is scaled to before it is padded."""
        if self.fit == "stretch":
            return self.size
        (height, width), (tall, wide) = source, self.size
        if tall * width <= wide * height:  # the height is what binds
            return tall, min(wide, max(1, (2 * width * tall + height) // (2 * height)))
        return min(tall, max(1, (2 * height * wide + width) // (2 * width))), wide


def _size(pixels: NDArray[Any]) -> Size:
    return pixels.shape[0], pixels.shape[1]


@lru_cache(maxsize=64)
def nearest_source(source: int, target: int) -> NDArray[np.intp]:
    """Which source pixel each target pixel takes: the one under its centre, src = (2i+1)*S // (2*D)."""
    return (2 * np.arange(target) + 1) * source // (2 * target)


def _nearest(pixels: Array, size: Size) -> Array:
    rows, columns = nearest_source(pixels.shape[0], size[0]), nearest_source(pixels.shape[1], size[1])
    return pixels.take(rows, axis=0).take(columns, axis=1)  # type: ignore[return-value]


def _resize(pixels: NDArray[Any], size: Size, interpolation: str) -> NDArray[Any]:
    """Scale an image. OpenCV's area rule averages exactly, but only where no side grows: sides that grow come after."""
    if interpolation == "nearest":
        return _nearest(pixels, size)
    if interpolation != "linear":
        shrunk = min(size[0], pixels.shape[0]), min(size[1], pixels.shape[1])
        if shrunk != _size(pixels):
            pixels = np.asarray(cv2.resize(pixels, shrunk[::-1], interpolation=cv2.INTER_AREA), pixels.dtype)
    if size == _size(pixels):
        return pixels
    return np.asarray(cv2.resize(pixels, size[::-1], interpolation=_GROW[interpolation]), pixels.dtype)


def _centre(pixels: Array, size: Size, padding: int) -> Array:
    """Cut or pad around the centre; an odd pixel is cut or padded at the end."""
    if _size(pixels) == size:
        return pixels
    out = np.full((*size, *pixels.shape[2:]), padding, pixels.dtype)
    (from_rows, to_rows), (from_columns, to_columns) = (_span(pixels.shape[axis], size[axis]) for axis in (0, 1))
    out[to_rows, to_columns] = pixels[from_rows, from_columns]
    return out  # type: ignore[return-value]


def _span(source: int, target: int) -> tuple[slice, slice]:
    """The part of a side that is taken, and where it goes."""
    length = min(source, target)
    taken, put = (source - length) // 2, (target - length) // 2
    return slice(taken, taken + length), slice(put, put + length)
