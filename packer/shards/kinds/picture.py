"""The kind `picture`: pictures decoded by the image rules, scaled, and stored as planes of numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.decoding.decode import decode_image, header_of
from packer.decoding.rules import FAST
from packer.errors import BadPair
from packer.pixels.exact_sums import byte_sums, exact_sums
from packer.recipe.field_rule import FieldRule
from packer.recipe.recipe import Recipe
from packer.recipe.source import Given, PackedPixels
from packer.shards.kinds import Decoded, Stored, one_file
from readers.contract.fields import Field
from readers.contract.statistics import PictureStatistics
from readers.contract.tiles import Origin


class PictureKind:
    """A picture as a recipe stores it."""

    def __init__(self, recipe: Recipe, rule: FieldRule) -> None:
        self._rules = rule.image_rules
        self._geometry = recipe.geometry
        self._scaled: NDArray[Any] | None = None
        if rule.field.dtype != "|u1":
            self._scaled = (np.arange(256, dtype=np.float32) / np.float32(255)).astype(rule.field.dtype)

    def decode(self, data: Given) -> Decoded:
        """Return the pixels of an image, which may be fewer than those of the picture."""
        if isinstance(data, PackedPixels):
            return Decoded(data.pixels, data.pixels.shape[:2])
        data = one_file(data)
        if self._rules.decode == FAST:
            height, width = header_of(data, self._rules.max_pixels).size
            return Decoded(decode_image(data, self._rules, self._geometry.reduction((height, width))), (height, width))
        pixels = decode_image(data, self._rules)
        return Decoded(pixels, (pixels.shape[0], pixels.shape[1]))

    def store(self, decoded: Decoded, origin: Origin | None, out: NDArray[Any]) -> Stored:
        """Store the image in its planes. The hash is made of bytes if it was decoded to these, else from 0 to 1."""
        direct = decoded.pixels.dtype == out.dtype == np.uint8
        planes = self._geometry.image(decoded.pixels, origin, out if direct else None, decoded.size)
        if planes.dtype == np.uint8 and self._scaled is not None:
            self._scaled.take(planes, out=out, mode="clip")  # "raise" would copy twice
            return Stored(_statistics(planes[0].size, (byte_sums(plane, self._scaled) for plane in planes)), planes)
        if not direct:
            np.copyto(out, self._as_stored(planes))
        return Stored(count(out), planes)

    def _as_stored(self, planes: NDArray[Any]) -> NDArray[Any]:
        """Convert pixels from 0 to 1 to the stored type. Resizing may have moved them out of this range."""
        planes = np.clip(planes, 0, 1)
        return np.rint(planes * 255).astype(np.uint8) if self._scaled is None else planes


def check(field: Field, planes: NDArray[Any]) -> PictureStatistics:
    """Return the statistics of a stored image; raise BadPair if it has impossible numbers. NaN is one."""
    if planes.dtype.kind == "f" and field.range == (0, 1) and not ((planes >= 0) & (planes <= 1)).all():
        raise BadPair(f"has numbers in its {field.name} that are not from 0 to 1")
    if planes.dtype.kind == "f" and not np.isfinite(planes).all():
        raise BadPair(f"has numbers in its {field.name} that are not finite")
    return count(planes)


def count(planes: NDArray[Any]) -> PictureStatistics:
    """Return the statistics of a stored image (B,H,W)."""
    return _statistics(planes[0].size, map(exact_sums, planes))


def _statistics(numbers: int, bands: Iterable[tuple[int, int]]) -> PictureStatistics:
    sums, squares = zip(*bands, strict=True)
    return PictureStatistics(numbers, sums, squares)
