"""The tags of a GeoTIFF: where its pixels are, and the number that means no data. Nothing here decides a pixel."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping

from packer.decoding.grid import Grid, GridTransform, usable
from readers.contract.place import GEO, System
from readers.contract.plain_text import odd_character

SCALE, TIEPOINTS, MATRIX, KEYS, DOUBLES, TEXTS, NO_DATA = 33550, 33922, 34264, 34735, 34736, 34737, 42113
LETTERS = {
    **dict.fromkeys((SCALE, TIEPOINTS, MATRIX, DOUBLES), (12, "d")),
    **dict.fromkeys((TEXTS, NO_DATA), (2, "B")),
    KEYS: (3, "H"),
}
"""The type that each of these tags has, and the letter of its numbers."""
MOST_NUMBERS = 1 << 12
_MODEL, _RASTER, _GEOGRAPHIC, _PROJECTED = 1024, 1025, 2048, 3072
_SYSTEMS = {1: _PROJECTED, 2: _GEOGRAPHIC}
_POINT, _USER_DEFINED = 2, 32767
_MOST_TEXT = 40


def grid_of(tags: Mapping[int, bytes], order: str, sides: tuple[int, int]) -> Grid | None:
    """Return the place of a picture with these tags, width and height. None if they do not say it."""
    keys = _keys(_numbers(tags, order, KEYS))
    code = keys.get(_SYSTEMS.get(int(keys.get(_MODEL, 0)), 0), 0)
    crs = f"EPSG:{code}" if 0 < code < _USER_DEFINED else ""
    transform = _transform(tags, order, 0.5 if keys.get(_RASTER) == _POINT else 0.0)
    is_known = usable(transform, 2) and (crs != "" or not _is_plain(transform))
    if not crs and not is_known:
        return None
    return Grid(sides, (("transform", transform),) if is_known else (), _system(tags, order, crs))


def _system(tags: Mapping[int, bytes], order: str, crs: str) -> System:
    """Return the coordinate system by all that the file says of it."""
    keys, doubles = _numbers(tags, order, KEYS), _numbers(tags, order, DOUBLES)
    text = tags.get(TEXTS, b"").rstrip(b"\0").decode("ascii", "replace")
    if not all(map(math.isfinite, doubles)) or odd_character(text):
        return System(GEO, crs)
    return System(GEO, crs, tuple(map(int, keys)), doubles, text)


def no_data_of(tags: Mapping[int, bytes]) -> str:
    """Return the number that means no data, as the file writes it; an empty text if it names none."""
    text = tags.get(NO_DATA, b"").partition(b"\0")[0].decode("ascii", "replace").strip()
    return text if text.isprintable() and len(text) <= _MOST_TEXT else ""


def _transform(tags: Mapping[int, bytes], order: str, shift: float) -> GridTransform:
    """Return x and y of a column and a row: the corner of its pixel, although some files name its centre."""
    scale, points = _numbers(tags, order, SCALE), _numbers(tags, order, TIEPOINTS)
    matrix = _numbers(tags, order, MATRIX)
    if len(scale) >= 2 and 0 not in scale[:2] and len(points) >= 6:
        column, row, _, x, y = points[:5]
        down = -abs(scale[1])  # GDAL reads the sign of y so
        rows = (scale[0], 0.0, x - column * scale[0], 0.0, down, y - row * down)
    elif len(matrix) == 16:
        rows = (matrix[0], matrix[1], matrix[3], matrix[4], matrix[5], matrix[7])
    else:
        return ()
    a, b, x, c, d, y = rows
    return a, b, x - shift * (a + b), c, d, y - shift * (c + d)


def _is_plain(rows: GridTransform) -> bool:
    """Return whether a transform only counts pixels: programs write it for a picture that has no place."""
    a, b, x, c, d, y = rows
    return (a, b, c, abs(d), x, y) == (1, 0, 0, 1, 0, 0)


def _keys(numbers: tuple[float, ...]) -> dict[int, int]:
    """Return the numbers of a GeoKeyDirectory that are in the directory itself."""
    entries = [numbers[start : start + 4] for start in range(4, len(numbers) - 3, 4)]
    return {int(key): int(value) for key, at, count, value in entries if at == 0 and count == 1}


def _numbers(tags: Mapping[int, bytes], order: str, tag: int) -> tuple[float, ...]:
    letter, data = LETTERS[tag][1], tags.get(tag, b"")
    return struct.unpack(f"{order}{len(data) // struct.calcsize(letter)}{letter}", data)
