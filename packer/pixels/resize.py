"""`Geometry`: bring images and labels to the stored size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.pixels.area import RULE, area_mean, split_planes
from packer.pixels.choices import CROP_OR_PAD, NATIVE, TILE
from packer.pixels.class_lookup import IGNORE
from packer.pixels.nearest_lines import Lines, nearest_source, stored_lines
from packer.pixels.placement import PicturePart, Placement, scaled_size
from readers.contract.tiles import Origin, Size, tile_starts

Array = TypeVar("Array", bound=NDArray[Any])
LARGE = 64
"""The shortest side of a picture that may be decoded smaller."""
_GROW = {"area": cv2.INTER_LINEAR, "linear": cv2.INTER_LINEAR, "cubic": cv2.INTER_CUBIC}


@dataclass(frozen=True)
class Geometry:
    """The stored (height, width), the way to fit a picture to it, and the interpolation of images.

    `size` is None for native rows. `overlap` and `edge` are for tiles: the number of pixels that neighbours share; the
    last tile of a side is padded, or shifted so that it ends with the picture.
    area: area mean on sides that shrink, linear on sides that grow; the mean of bytes is exact. cubic: the same, but
    growing sides are cubic. linear: two neighbours per side, also when shrinking (aliases). nearest: as labels.
    With a `resolution`, pictures are scaled until a pixel has this side, in the units of their coordinates, before they
    are cut, padded or kept.
    """

    size: Size | None
    fit: str = "stretch"
    interpolation: str = "area"
    overlap: int = 0
    edge: str = "pad"
    resolution: float | None = None

    @property
    def depends_on_source(self) -> bool:
        """True if the size of a picture decides the number or the size of its rows."""
        return self.fit in (TILE, NATIVE)

    @property
    def tools(self) -> tuple[str, ...]:
        """The rules of our own that decide the bytes, for the recipe; OpenCV's are named by its version."""
        scales = self.resolution is not None or self.fit not in (CROP_OR_PAD, TILE, NATIVE)
        return (RULE,) if scales and self.interpolation in ("area", "cubic") else ()

    def origins(self, source: Size) -> list[Origin | None]:
        """Return the top left corner of each tile of a picture of this size, or None for the whole picture."""
        if self.fit != TILE or self.size is None:
            return [None]
        shifted = self.edge == "shift"
        tops, lefts = (tile_starts(source[side], self.size[side], self.overlap, shifted) for side in (0, 1))
        return [(top, left) for top in tops for left in lefts]

    def reduction(self, source: Size) -> int:
        """Return how many times smaller a picture may be decoded before an area mean scales it.

        It stays as large as the mean at least, and both sides are divided without a rest, so that nothing moves.
        """
        size = self._scaled(source, None)
        if not self.tools or min(source) < LARGE:
            return 1
        ratios = (8, 4, 2)
        return next((n for n in ratios if all(s % n == 0 and s >= n * t for s, t in zip(source, size, strict=True))), 1)

    def image(
        self, pixels: Array, origin: Origin | None = None, out: Array | None = None, source: Size | None = None
    ) -> Array:
        """Return an image (H,W,C) as planes (C,h,w) at the stored size, written to `out` if given; padding is black.

        `source` is the size of the picture if it was decoded smaller.
        """
        placement = self.placement(source or _size(pixels), origin)
        size, taken = placement.scaled, placement.taken
        planes = np.empty((pixels.shape[2], *placement.stored), pixels.dtype) if out is None else out
        target = planes[(slice(None), *placement.region)]
        if placement.is_filled:
            planes[...] = 0
        if size == _size(pixels) or not _is_exact(pixels, size, self.interpolation):
            split_planes(_resize(pixels, size, self.interpolation)[taken], target)
        elif target.shape[1:] == size:
            area_mean(pixels, target)
        else:
            target[...] = _area_planes(pixels, size)[(slice(None), *taken)]
        return planes  # type: ignore[return-value]

    def label(self, index: NDArray[np.uint16], origin: Origin | None = None) -> NDArray[np.uint16]:
        """Return class indices at the stored size, by nearest: a mean of two classes is a third. Padding is ignored."""
        placement = self.placement(_size(index), origin)
        part = _resize(index, placement.scaled, "nearest")[placement.taken]
        if not placement.is_filled:
            return part
        out = np.full(placement.stored, IGNORE, index.dtype)
        out[placement.region] = part
        return out

    def sampled(self, source: Size, origin: Origin | None = None) -> tuple[Lines, Lines, PicturePart]:
        """Return the rows and columns that `label` takes from a picture of this size, and where it puts them."""
        placement = self.placement(source, origin)
        rows, columns = stored_lines(placement)
        return rows, columns, placement.region

    def placement(self, source: Size, origin: Origin | None = None) -> Placement:
        """Return how the fields of a row of this size are brought to the stored size."""
        scaled = self._scaled(source, origin)
        return Placement.of(source, scaled, self.size or scaled, origin)

    def _scaled(self, source: Size, origin: Origin | None) -> Size:
        """Return the size to scale a picture to before it is padded or cut."""
        if self.size is None or origin is not None or source == self.size or self.fit == CROP_OR_PAD:
            return source
        return scaled_size(source, self.size, self.fit)


def _size(pixels: NDArray[Any]) -> Size:
    return pixels.shape[0], pixels.shape[1]


def _nearest(pixels: Array, size: Size) -> Array:
    rows, columns = nearest_source(pixels.shape[0], size[0]), nearest_source(pixels.shape[1], size[1])
    return pixels.take(rows, axis=0).take(columns, axis=1)  # type: ignore[return-value]


def _resize(pixels: Array, size: Size, interpolation: str) -> Array:
    """Scale. An area mean is exact only if no side grows, so sides that grow come second."""
    if size == _size(pixels):
        return pixels
    if interpolation == "nearest":
        return _nearest(pixels, size)
    if interpolation != "linear":
        shrunk = min(size[0], pixels.shape[0]), min(size[1], pixels.shape[1])
        if shrunk != _size(pixels):
            if _is_exact(pixels, shrunk, interpolation):
                pixels = np.asarray(cv2.merge(list(_area_planes(pixels, shrunk))), pixels.dtype)  # type: ignore[assignment]
            else:
                pixels = _opencv(pixels, shrunk, cv2.INTER_AREA)
    return pixels if size == _size(pixels) else _opencv(pixels, size, _GROW[interpolation])


def _is_exact(pixels: NDArray[Any], size: Size, interpolation: str) -> bool:
    """Return whether `area_mean` scales an image to this size: bytes, and no side grows."""
    shrinks = size[0] <= pixels.shape[0] and size[1] <= pixels.shape[1]
    return shrinks and pixels.dtype == np.uint8 and interpolation in ("area", "cubic")


def _area_planes(pixels: NDArray[Any], size: Size) -> NDArray[np.uint8]:
    planes = np.empty((pixels.shape[2], *size), np.uint8)
    area_mean(pixels, planes)
    return planes


def _opencv(pixels: Array, size: Size, rule: int) -> Array:
    return np.asarray(cv2.resize(pixels, size[::-1], interpolation=rule), pixels.dtype)  # type: ignore[return-value]
