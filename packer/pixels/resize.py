"""`Geometry`: bring images and labels to the stored size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.pixels.choices import NATIVE, TILE
from packer.pixels.class_lookup import IGNORE
from readers.contract.tiles import Origin, Size, tile_starts

Array = TypeVar("Array", bound=NDArray[Any])

_GROW = {"area": cv2.INTER_LINEAR, "linear": cv2.INTER_LINEAR, "cubic": cv2.INTER_CUBIC}


@dataclass(frozen=True)
class Geometry:
    """The stored (height, width), the way to fit a picture to it, and the interpolation of images.

    `size` is None for native rows. `overlap` and `edge` are for tiles: the number of pixels that neighbours share; the
    last tile of a side is padded, or shifted so that it ends with the picture.
    area: exact area mean on sides that shrink, linear on sides that grow. cubic: the same, but growing sides are cubic.
    linear: two neighbours per side, also when shrinking (aliases). nearest: the rule of labels.
    """

    size: Size | None
    fit: str = "stretch"
    interpolation: str = "area"
    overlap: int = 0
    edge: str = "pad"

    @property
    def depends_on_source(self) -> bool:
        """True if the size of a picture decides the number or the size of its rows."""
        return self.fit in (TILE, NATIVE)

    def origins(self, source: Size) -> list[Origin | None]:
        """Return the top left corner of each tile of a picture of this size, or None for the whole picture."""
        if self.fit != TILE or self.size is None:
            return [None]
        shifted = self.edge == "shift"
        tops, lefts = (tile_starts(source[side], self.size[side], self.overlap, shifted) for side in (0, 1))
        return [(top, left) for top in tops for left in lefts]

    def image(self, pixels: Array, origin: Origin | None = None) -> Array:
        """Return an image at the stored size; padding is black."""
        return self._fitted(pixels, origin, 0, self.interpolation)

    def label(self, index: NDArray[np.uint16], origin: Origin | None = None) -> NDArray[np.uint16]:
        """Return class indices at the stored size, by nearest: a mean of two classes is a third. Padding is ignored."""
        return self._fitted(index, origin, IGNORE, "nearest")

    def _fitted(self, pixels: Array, origin: Origin | None, padding: int, interpolation: str) -> Array:
        if self.size is None:
            return pixels
        if origin is not None:
            return _window(pixels, origin, self.size, padding)
        source = _size(pixels)
        if source == self.size:
            return pixels
        if self.fit != "crop-or-pad":
            pixels = _resize(pixels, _scaled(source, self.size, self.fit), interpolation)
        return _centre(pixels, self.size, padding)


def _scaled(source: Size, target: Size, fit: str) -> Size:
    """Return the size to scale a picture to before it is padded (letterbox) or cut (shorter-side)."""
    if fit == "stretch":
        return target
    (height, width), (tall, wide) = source, target
    by_height = tall, max(1, (2 * width * tall + height) // (2 * height))
    by_width = max(1, (2 * height * wide + width) // (2 * width)), wide
    height_binds = tall * width <= wide * height
    return by_height if height_binds == (fit == "letterbox") else by_width


def _size(pixels: NDArray[Any]) -> Size:
    return pixels.shape[0], pixels.shape[1]


@lru_cache(maxsize=64)
def nearest_source(source: int, target: int) -> NDArray[np.intp]:
    """Return the source pixel of each target pixel: the one under its centre, src = (2i+1)*S // (2*D)."""
    return (2 * np.arange(target) + 1) * source // (2 * target)


def _nearest(pixels: Array, size: Size) -> Array:
    rows, columns = nearest_source(pixels.shape[0], size[0]), nearest_source(pixels.shape[1], size[1])
    return pixels.take(rows, axis=0).take(columns, axis=1)  # type: ignore[return-value]


def _resize(pixels: Array, size: Size, interpolation: str) -> Array:
    """Scale. OpenCV's area rule averages exactly only if no side grows, so sides that grow come second."""
    if interpolation == "nearest":
        return _nearest(pixels, size)
    if interpolation != "linear":
        shrunk = min(size[0], pixels.shape[0]), min(size[1], pixels.shape[1])
        if shrunk != _size(pixels):
            pixels = _opencv(pixels, shrunk, cv2.INTER_AREA)
    if size == _size(pixels):
        return pixels
    return _opencv(pixels, size, _GROW[interpolation])


def _opencv(pixels: Array, size: Size, rule: int) -> Array:
    return np.asarray(cv2.resize(pixels, size[::-1], interpolation=rule), pixels.dtype)  # type: ignore[return-value]


def _window(pixels: Array, origin: Origin, size: Size, padding: int) -> Array:
    """Return the part of a picture in a tile, padded if the tile reaches beyond the picture."""
    (top, left), (height, width) = origin, size
    part = pixels[top : top + height, left : left + width]
    if _size(part) == size:
        return part  # type: ignore[return-value]
    out = np.full((*size, *pixels.shape[2:]), padding, pixels.dtype)
    out[: part.shape[0], : part.shape[1]] = part
    return out  # type: ignore[return-value]


def _centre(pixels: Array, size: Size, padding: int) -> Array:
    """Cut or pad around the centre. An odd pixel is cut or padded at the end."""
    if _size(pixels) == size:
        return pixels
    out = np.full((*size, *pixels.shape[2:]), padding, pixels.dtype)
    (from_rows, to_rows), (from_columns, to_columns) = (_span(pixels.shape[axis], size[axis]) for axis in (0, 1))
    out[to_rows, to_columns] = pixels[from_rows, from_columns]
    return out  # type: ignore[return-value]


def _span(source: int, target: int) -> tuple[slice, slice]:
    """Return the part of a side that is taken, and its position in the target."""
    length = min(source, target)
    start, offset = (source - length) // 2, (target - length) // 2
    return slice(start, start + length), slice(offset, offset + length)
