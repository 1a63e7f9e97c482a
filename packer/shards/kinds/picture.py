"""The kind `picture`: pictures decoded by the image rules, scaled, and stored as planes of numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.decoding.bands import Bands, read_bands
from packer.decoding.decode import decode_image, header_of
from packer.decoding.header import Picture
from packer.decoding.rules import FAST
from packer.errors import BadPair
from packer.pixels.exact_numbers import as_bits
from packer.pixels.exact_sums import byte_sums, exact_sums
from packer.pixels.field_options import naming_option
from packer.pixels.stored_picture import store_picture, store_with_data
from packer.pixels.valid_mean import is_valid
from packer.recipe.field_rule import FieldRule
from packer.recipe.recipe import Recipe
from packer.recipe.source import Given, PackedPixels
from packer.shards.kinds import Decoded, StoredRow, one_file
from readers.contract.fields import Field
from readers.contract.statistics import MaskedStatistics, PictureStatistics
from readers.contract.tiles import Origin


class PictureKind:
    """A picture as a recipe stores it."""

    def __init__(self, recipe: Recipe, rule: FieldRule) -> None:
        self._rules = rule.image_rules
        self._bands = None if self._rules.bands is None else Bands(self._rules.bands)
        self._geometry = recipe.geometry
        self._field = rule.field
        self._fill = rule.field.fill_number if rule.field.no_data else None
        self._scaled: NDArray[Any] | None = None
        if rule.field.dtype != "|u1" and rule.field.range == (0, 1):
            self._scaled = (np.arange(256, dtype=np.float32) / np.float32(255)).astype(rule.field.dtype)

    def decode(self, data: Given) -> Decoded:
        """Return the pixels of an image, which may be fewer than the picture has."""
        if isinstance(data, PackedPixels):
            _check_finite(self._field, data.pixels)
            return Decoded(data.pixels, data.pixels.shape[:2])
        with naming_option(self._field.name):
            return self._decode(one_file(data))

    def _decode(self, data: Picture) -> Decoded:
        if self._bands is not None:
            return self._decode_bands(data, self._bands)
        if self._rules.decode == FAST and self._fill is None:
            height, width = header_of(data, self._rules.max_pixels).size
            return Decoded(decode_image(data, self._rules, self._geometry.reduction((height, width))), (height, width))
        pixels = decode_image(data, self._rules)
        return Decoded(pixels, (pixels.shape[0], pixels.shape[1]))

    def _decode_bands(self, data: Picture, bands: Bands) -> Decoded:
        pixels = read_bands(data, bands, self._rules)
        bands_of_file, most = bands.names(header_of(data, self._rules.max_pixels)), self._field.bands or ()
        if bands_of_file != most:
            raise BadPair(f"has the bands {', '.join(bands_of_file)}, and other files have {', '.join(most)}")
        if self._field.range is None and pixels.dtype != self._field.dtype:
            raise BadPair(f"has numbers of {pixels.dtype}, and other files have {np.dtype(self._field.dtype)}")
        return Decoded(pixels, (pixels.shape[0], pixels.shape[1]))

    def store(self, decoded: Decoded, origin: Origin | None, out: NDArray[Any]) -> StoredRow:
        """Store the image in its planes. The hash is made of the numbers that it was decoded to."""
        direct = decoded.pixels.dtype == out.dtype and (out.dtype == np.uint8 or self._field.range != (0, 1))
        planes = self._planes(decoded, origin, out if direct else None)
        padding = self._padding(decoded, origin)
        if planes.dtype == np.uint8 and self._scaled is not None:
            self._scaled.take(planes, out=out, mode="clip")  # "raise" would copy twice
            if not padding:
                sums = (byte_sums(plane, self._scaled) for plane in planes)
                return StoredRow(_statistics(planes[0].size, sums), planes)
        elif not direct:
            np.copyto(out, self._as_stored(planes))
        for part in padding:
            out[part] = self._field.fill_number
        return StoredRow(_counted(self._field, out), planes)

    def _padding(self, decoded: Decoded, origin: Origin | None) -> list[tuple[Any, ...]]:
        """Return the parts of a row around its picture, if they have another number than 0."""
        placement = self._geometry.placement(decoded.size, origin)
        if self._field.no_data or self._field.fill == 0 or not placement.is_filled:
            return []
        rows, columns = placement.region
        above, below = slice(0, rows.start), slice(rows.stop, None)
        before, after = slice(0, columns.start), slice(columns.stop, None)
        parts = [(above, slice(None)), (below, slice(None)), (rows, before), (rows, after)]
        return [(slice(None), *part) for part in parts]

    def _planes(self, decoded: Decoded, origin: Origin | None, out: NDArray[Any] | None) -> NDArray[Any]:
        """Bring the image to the stored size, in `out` if it is given."""
        pixels = decoded.pixels
        if self._bands is None and self._fill is None:
            return self._geometry.image(pixels, origin, out, decoded.size)
        placement = self._geometry.placement(decoded.size, origin)
        planes = np.empty((pixels.shape[2], *placement.stored), pixels.dtype) if out is None else out
        if self._fill is None:
            store_picture(pixels, placement, self._geometry.interpolation, planes)
        else:
            store_with_data(pixels, placement, self._geometry.interpolation, planes, self._fill)
        return planes

    def data_mask(self, decoded: Decoded) -> NDArray[np.bool_] | None:
        """Return which pixels (H,W) have data in a band; None if all have."""
        if self._fill is None:
            return None
        mask = is_valid(decoded.pixels, self._fill).any(axis=2)
        return None if mask.all() else np.asarray(mask, np.bool_)

    def _as_stored(self, planes: NDArray[Any]) -> NDArray[Any]:
        """Convert pixels from 0 to 1 to the stored type. Resizing may have moved them out of this range."""
        planes = np.clip(planes, 0, 1)
        return np.rint(planes * 255).astype(np.uint8) if self._scaled is None else planes


def check(field: Field, planes: NDArray[Any]) -> PictureStatistics:
    """Return the statistics of a stored image; raise BadPair if it has impossible numbers. NaN is one."""
    if planes.dtype.kind == "f" and field.range == (0, 1):
        is_within = (planes >= 0) & (planes <= 1)
        if not (is_within | np.isnan(planes) if field.no_data else is_within).all():
            raise BadPair(f"has numbers in its {field.name} that are not from 0 to 1")
    _check_finite(field, planes)
    return _counted(field, planes)


def _check_finite(field: Field, numbers: NDArray[Any]) -> None:
    """Refuse NaN and infinite numbers, but not the NaN that marks pixels without data: stored NaNs have one form."""
    if numbers.dtype.kind != "f" or np.isfinite(numbers).all():
        return
    odd = numbers[~np.isfinite(numbers)]
    if not field.no_data or (as_bits(odd) != as_bits(np.array(field.fill_number, numbers.dtype))).any():
        raise BadPair(f"has numbers in its {field.name} that are not finite")


def count(planes: NDArray[Any]) -> PictureStatistics:
    """Return the statistics of a stored image (B,H,W) or volume (B,D,H,W)."""
    return _statistics(planes[0].size, map(exact_sums, planes.reshape(len(planes), -1, planes.shape[-1])))


def _counted(field: Field, planes: NDArray[Any]) -> PictureStatistics:
    """Return the statistics of a stored image or volume without its pixels that have no data."""
    if not field.no_data:
        return count(planes)
    lines = planes.reshape(len(planes), -1, planes.shape[-1])
    valid = is_valid(lines, field.fill_number)
    missing = tuple([int(band.size - np.count_nonzero(band)) for band in valid])
    sums, squares = zip(*map(exact_sums, np.where(valid, lines, lines.dtype.type(0))), strict=True)
    return MaskedStatistics(planes[0].size, sums, squares, missing)


def _statistics(numbers: int, bands: Iterable[tuple[int, int]]) -> PictureStatistics:
    sums, squares = zip(*bands, strict=True)
    return PictureStatistics(numbers, sums, squares)


KIND = PictureKind
