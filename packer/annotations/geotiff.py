"""Read where the pixels of a GeoTIFF are on the ground: a few tags of its first directory, and no pixel."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair

_SCALE, _TIEPOINT, _MATRIX, _KEYS = 33550, 33922, 34264, 34735
_RASTER_TYPE, _GEOGRAPHIC, _PROJECTED = 1025, 2048, 3072
_IS_POINT, _USER_DEFINED = 2, 32767
_FORMS = {3: ("H", 2), 12: ("d", 8)}
"""The types of numbers that these tags have: the letter of `struct`, and the bytes."""
_MOST_TAGS, _MOST_NUMBERS = 4096, 4096


@dataclass(frozen=True)
class Ground:
    """The affine map from pixels to the ground, in the order of GDAL, and the EPSG code of its coordinates."""

    affine: tuple[float, float, float, float, float, float]
    epsg: int | None
    is_projected: bool

    def to_pixels(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return points (N, 2) of the ground as x and y in pixels. The sums are as GDAL adds."""
        left, xx, xy, top, yx, yy = self.affine
        x, y = points.T
        with np.errstate(over="ignore", invalid="ignore"):  # the caller refuses what is not finite
            if xy == yx == 0:
                return np.stack([-left / xx + x * (1 / xx), -top / yy + y * (1 / yy)], 1)
            inverse = 1 / (xx * yy - xy * yx)
            across = (xy * top - left * yy) * inverse + x * (yy * inverse) + y * (-xy * inverse)
            down = (-xx * top + left * yx) * inverse + x * (-yx * inverse) + y * (xx * inverse)
            return np.stack([across, down], 1)


def ground_of(data: bytes) -> Ground:
    """Read the tags of a GeoTIFF."""
    try:
        tags = _tags(data)
    except (struct.error, OverflowError):
        raise BadPair("is a TIFF whose tags are damaged") from None
    keys = tags.get(_KEYS, ())
    geo_keys = {key: value for key, where, _, value in zip(*(iter(keys[4:]),) * 4, strict=False) if where == 0}
    left, xx, xy, top, yx, yy = _affine(tags)
    if geo_keys.get(_RASTER_TYPE) == _IS_POINT:  # the tie is the centre of a pixel
        left, top = left - (xx + xy) / 2, top - (yx + yy) / 2
    if not all(map(math.isfinite, (left, xx, xy, top, yx, yy))) or xx * yy - xy * yx == 0:
        raise BadPair("is a GeoTIFF whose pixels have no area on the ground")
    code = geo_keys.get(_PROJECTED, geo_keys.get(_GEOGRAPHIC))
    epsg = code if code and code != _USER_DEFINED else None
    return Ground((left, xx, xy, top, yx, yy), epsg, _PROJECTED in geo_keys)


def _affine(tags: dict[int, tuple[Any, ...]]) -> tuple[float, ...]:
    scale, tie, matrix = (tags.get(tag, ()) for tag in (_SCALE, _TIEPOINT, _MATRIX))
    if len(scale) >= 2 and len(tie) == 6:
        column, row, _, x, y, _ = tie
        return x - column * scale[0], scale[0], 0.0, y + row * scale[1], 0.0, -scale[1]
    if len(matrix) == 16:
        return matrix[3], matrix[0], matrix[1], matrix[7], matrix[4], matrix[5]
    raise BadPair("is not a GeoTIFF: it has neither a scale with one tie point nor a matrix")


def _tags(data: bytes) -> dict[int, tuple[Any, ...]]:
    """Return the numbers of the tags that are needed, from the first directory of a TIFF or BigTIFF."""
    order = {b"II": "<", b"MM": ">"}.get(data[:2])
    magic = struct.unpack_from(f"{order}H", data, 2)[0] if order else 0
    if magic not in (42, 43):
        raise BadPair("is not a TIFF, so there is no map from its pixels to the ground")
    big = magic == 43
    start = struct.unpack_from(f"{order}Q" if big else f"{order}I", data, 8 if big else 4)[0]
    count = struct.unpack_from(f"{order}Q" if big else f"{order}H", data, start)[0]
    entry, first = (f"{order}HHQ", start + 8) if big else (f"{order}HHI", start + 2)
    size, inline = (20, 8) if big else (12, 4)
    tags: dict[int, tuple[Any, ...]] = {}
    for index in range(min(count, _MOST_TAGS)):
        at = first + index * size
        tag, kind, numbers = struct.unpack_from(entry, data, at)
        if tag in (_SCALE, _TIEPOINT, _MATRIX, _KEYS) and kind in _FORMS and numbers <= _MOST_NUMBERS:
            letter, width = _FORMS[kind]
            value = at + size - inline
            if numbers * width > inline:
                value = struct.unpack_from(f"{order}Q" if big else f"{order}I", data, value)[0]
            tags[tag] = struct.unpack_from(f"{order}{numbers}{letter}", data, value)
    return tags
