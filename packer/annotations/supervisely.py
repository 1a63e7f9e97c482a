"""Supervisely: `ds/ann/PICTURE.json`. Figures are painted as `draw` of its SDK draws them: whole pixels, rounded down.

A polygon and its holes are cut at the border of the picture and filled by OpenCV. A rectangle has its last row and
column; a line is one pixel wide.
"""

from __future__ import annotations

import zlib
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.annotations.annotation import NOTHING, AnnotatedPicture, Annotation, Mask, Shape
from packer.annotations.cut_rings import cut_rings
from packer.annotations.json_values import parse_json, points_of, size_of, table_or_none, tables, text_of
from packer.annotations.opencv_polygon import PAINTER, Ring, fill, line
from packer.annotations.picture_format import PictureFormat
from packer.annotations.png_pixels import PNG, png_pixels
from packer.errors import BadPair
from readers.contract.tiles import Size

NAME = "supervisely"
RULE = f"supervisely 2, {PAINTER}"
LISTS = ("meta.json",)
"""The file that names the classes."""
_SPARE = 1 << 16
"""Bytes of a PNG that are not pixels: its palette and headers."""


@dataclass(frozen=True, eq=False)
class Outline:
    """A polygon without its holes."""

    exterior: Ring
    interior: tuple[Ring, ...]

    def paint(self, size: Size) -> Mask:
        return fill(size, self.exterior, self.interior)


@dataclass(frozen=True)
class Box:
    """The pixels from a corner to another one, both inside."""

    top: int
    left: int
    bottom: int
    right: int

    def paint(self, size: Size) -> Mask:
        top, left = max(self.top, 0), max(self.left, 0)
        bottom, right = min(self.bottom + 1, size[0]), min(self.right + 1, size[1])
        if top >= bottom or left >= right:
            return NOTHING
        return Mask(top, left, np.ones((bottom - top, right - left), np.bool_))


@dataclass(frozen=True, eq=False)
class PlainLine:
    """A line through points, one pixel wide."""

    points: Ring

    def paint(self, size: Size) -> Mask:
        return line(size, self.points)


@dataclass(frozen=True)
class CodedBitmap:
    """A PNG in base 64, usually compressed once more, whose first pixel is at `origin`."""

    text: str
    origin: tuple[int, int]
    """x and y."""

    def paint(self, size: Size) -> Mask:
        inside, (left, top) = _inside(_png(self.text, size), size), self.origin
        inside = inside[max(-top, 0) : max(size[0] - top, 0), max(-left, 0) : max(size[1] - left, 0)]
        return Mask(max(top, 0), max(left, 0), inside) if inside.size else NOTHING


def knows(data: bytes) -> bool:
    """Check that a file has the size of a picture and objects with the title of a class."""
    document = table_or_none(data) if b'"objects"' in data and b'"size"' in data else None
    if document is None or not isinstance(document.get("size"), dict):
        return False
    objects = document.get("objects")
    return isinstance(objects, list) and all(isinstance(item, dict) and "classTitle" in item for item in objects)


def read(data: bytes, names: Sequence[str] = ()) -> AnnotatedPicture:
    """Return the figures of a picture. The later one covers the earlier one. Figures of one instance are one object."""
    document = parse_json(data)
    sides = document.get("size")
    size = size_of(sides if isinstance(sides, dict) else {}, "height", "width")
    annotations, lost = [], Counter[str]()
    for number, item in enumerate(tables(document, "objects"), 1):
        kind = str(item.get("geometryType") or item.get("shape") or ("bitmap" if item.get("bitmap") else ""))[:40]
        if kind not in _SHAPES:
            lost[f"of the kind {kind!r}, which has no outline"] += 1
            continue
        try:
            shapes, instance = _SHAPES[kind](item), item.get("instance")
            name = instance if isinstance(instance, str) and instance else None
            annotations.append(Annotation(text_of(item, "classTitle"), _cut(shapes, size), name))
        except BadPair as error:
            raise BadPair(f"object {number}: {error}") from None
    return AnnotatedPicture(tuple(annotations), size, lost=lost)


def names_of(data: bytes) -> tuple[str, ...]:
    """Return the classes of a meta.json in their order."""
    return tuple(text_of(item, "title") for item in tables(parse_json(data), "classes"))


def _pixels(values: Any) -> Ring:
    """Return points as whole pixels, rounded down."""
    return np.floor(points_of(values)).astype(np.int64)


def _rings(entry: Any) -> tuple[Ring, tuple[Ring, ...]]:
    """Return the exterior and the interior of an entry."""
    points = entry if isinstance(entry, dict) else {}
    interior = points.get("interior") or []
    if not isinstance(interior, list):
        raise BadPair("has an interior that is not a list")
    return _pixels(points.get("exterior")), tuple(map(_pixels, interior))


def _outline(entry: Any) -> Outline:
    exterior, interior = _rings(entry)
    if not len(exterior) or not all(map(len, interior)):
        raise BadPair("has a ring without points")
    return Outline(exterior, interior)


def _cut(shapes: tuple[Shape, ...], size: Size) -> tuple[Shape, ...]:
    """Return the parts of polygons within the picture. Polygons that cross themselves stay unchanged."""
    outlines = [shape for shape in shapes if isinstance(shape, Outline)]
    if all(((outline.exterior >= 0) & (outline.exterior < size[::-1])).all() for outline in outlines):
        return shapes
    parts = [cut_rings(outline.exterior, outline.interior, size) for outline in outlines]
    if None in parts:
        return shapes
    return tuple(Outline(exterior, tuple(holes)) for cut in parts for exterior, holes in cut or ())


def _polygon(item: dict[str, Any]) -> tuple[Shape, ...]:
    return (_outline(item.get("points")),)


def _parts(item: dict[str, Any]) -> tuple[Shape, ...]:
    parts = item.get("parts")
    if not isinstance(parts, list):
        raise BadPair("has no list of parts")
    return tuple(map(_outline, parts))


def _rectangle(item: dict[str, Any]) -> tuple[Shape, ...]:
    corners, _ = _rings(item.get("points"))
    if len(corners) != 2:
        raise BadPair(f"has a rectangle of {len(corners)} corners; expected 2")
    (left, top), (right, bottom) = corners.min(0).tolist(), corners.max(0).tolist()
    return (Box(top, left, bottom, right),)


def _polyline(item: dict[str, Any]) -> tuple[Shape, ...]:
    points, _ = _rings(item.get("points"))
    return (PlainLine(points),)


def _bitmap(item: dict[str, Any]) -> tuple[Shape, ...]:
    bitmap = item.get("bitmap")
    table = bitmap if isinstance(bitmap, dict) else {}
    origin = _pixels([table.get("origin")])
    x, y = origin[0].tolist()
    return (CodedBitmap(text_of(table, "data"), (x, y)),)


_SHAPES: dict[str, Callable[[dict[str, Any]], tuple[Shape, ...]]] = {
    "polygon": _polygon,
    "multipolygon": _parts,
    "rectangle": _rectangle,
    "line": _polyline,
    "bitmap": _bitmap,
}
"""The shapes of each kind of figure."""


def _png(text: str, size: Size) -> bytes:
    """Return the PNG in a text, unpacked to no more bytes than a picture of this size can have."""
    try:
        packed = b64decode(text, validate=True)
        if packed.startswith(PNG):
            return packed
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(packed, 5 * size[0] * size[1] + _SPARE)
    except (ValueError, zlib.error):
        raise BadPair("has a bitmap that is not a compressed PNG in base 64") from None
    if not unpacking.eof:
        raise BadPair("has a bitmap that is cut off, or larger than its picture")
    return data


def _inside(data: bytes, size: Size) -> NDArray[np.bool_]:
    """Return the pixels of a PNG that are not transparent, or not black if it is grey."""
    pixels = png_pixels(data, size)
    return np.asarray((pixels if pixels.ndim == 2 else pixels[..., 3]) != 0)


FORMAT = PictureFormat(name=NAME, rule=RULE, knows=knows, read=read, lists=LISTS, names_of=names_of)
