"""LabelMe: a JSON file for each picture. Shapes become pixels as `labelme.utils.shapes_to_label` makes them.

LabelMe 6.3.1 makes the same pixels. LabelMe 7.0 rounds the joints of linestrips. LabelMe 7.1 rounds the corners of
masks and cuts masks at the border of the picture. Here corners are cut to whole pixels, and a mask beyond the border is
refused.

The label of a shape is its category: LabelMe does not take `car-1` apart. Shapes of one label and one `group_id` are
one object. The picture within the file, `imageData`, is the image of the row only if `--image` names the JSON file.
"""

from __future__ import annotations

import base64
import io
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, __version__

from packer.annotations.annotation import AnnotatedPicture, Annotation, Mask, Shape
from packer.annotations.json_values import MOST_POINTS, parse_json, points_of, size_of, table_or_none, tables, text_of
from packer.annotations.picture_format import PictureFormat
from packer.annotations.pillow_polygon import PillowPolygon
from packer.annotations.pillow_shapes import POINT_RADIUS, Circle, Line, Rectangle
from packer.errors import BadPair
from readers.contract.tiles import Size

NAME = "labelme"
RULE = f"labelme 1, Pillow {__version__}"
LISTS = ("labels.txt", "class_names.txt")
"""Files with a category in each line, as `labelme2voc.py` reads them."""
_PNG = b"\x89PNG\r\n\x1a\n"
Points = NDArray[np.float64]


def knows(data: bytes) -> bool:
    """Check that a file has the keys of LabelMe."""
    if b'"shapes"' not in data or b'"imagePath"' not in data:
        return False
    return {"shapes", "imagePath"} <= (table_or_none(data) or {}).keys()


def read(data: bytes, names: Sequence[str] = ()) -> AnnotatedPicture:
    """Read the shapes of a picture. The later one covers the earlier one."""
    document = parse_json(data)
    annotations, lost = [], Counter[str]()
    for item in tables(document, "shapes"):
        shape = _shape(item)
        if isinstance(shape, str):
            lost[shape] += 1
        else:
            annotations.append(Annotation(text_of(item, "label"), (shape,), _group(item)))
    path = document.get("imagePath")
    return AnnotatedPicture(tuple(annotations), _size(document), path if isinstance(path, str) else None, lost)


def embedded(data: bytes) -> bytes:
    """Return the bytes of the picture within a file."""
    text = parse_json(data).get("imageData")
    if not isinstance(text, str) or not text:
        raise BadPair("has no imageData, and so no picture; put the picture next to it")
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise BadPair("has imageData that is not base 64") from None


def names_of(data: bytes) -> tuple[str, ...]:
    """Return the categories of a list in their order."""
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        raise BadPair("is not UTF-8") from None
    return tuple(dict.fromkeys(filter(None, map(str.strip, lines))))


@dataclass(frozen=True)
class BoxedMask:
    """A PNG in base 64, whose pixels are those from a corner to another one."""

    corners: Points
    text: str

    def paint(self, size: Size) -> Mask:
        (left, top), (right, bottom) = np.trunc(self.corners).astype(np.int64).tolist()
        if not (0 <= left <= right < size[1] and 0 <= top <= bottom < size[0]):
            raise BadPair(f"has a mask from ({left}, {top}) to ({right}, {bottom}), which is not inside the picture")
        return Mask(top, left, _decode(self.text, (bottom + 1 - top, right + 1 - left)))


def _shape(entry: dict[str, Any]) -> Shape | str:
    """Return the shape of an object, or the reason why LabelMe cannot paint it."""
    kind = entry.get("shape_type") or "polygon"
    points = points_of(entry.get("points"))
    if kind == "mask":
        mask = entry.get("mask")
        return BoxedMask(points, mask) if len(points) == 2 and isinstance(mask, str) else "with a mask without pixels"
    if not isinstance(kind, str) or kind not in _SHAPES:
        return f"of the unknown kind {str(kind)[:40]!r}"
    least, most, make = _SHAPES[kind]
    if not least <= len(points) <= most:
        return f"of the kind {kind} with {len(points)} points"
    return make(points)


_SHAPES: dict[str, tuple[int, int, Callable[[Points], Shape]]] = {
    "polygon": (3, MOST_POINTS, PillowPolygon),
    "oriented_rectangle": (4, 4, PillowPolygon),
    "rectangle": (2, 2, lambda points: Rectangle(*points.tolist())),
    "circle": (2, 2, lambda points: Circle.through(*points.tolist())),
    "line": (2, 2, lambda points: Line(points.tolist())),
    "linestrip": (2, MOST_POINTS, lambda points: Line(points.tolist())),
    "point": (1, 1, lambda points: Circle(points[0].tolist(), POINT_RADIUS)),
}
"""The fewest and the most points of each kind, and its shape."""


def _group(entry: dict[str, Any]) -> str | None:
    group = entry.get("group_id")
    if group is not None and type(group) not in (int, str):
        raise BadPair("has a group_id that is neither a number nor a text")
    return None if group is None else str(group)


def _size(document: dict[str, Any]) -> Size | None:
    """Return the size that the file gives the picture. Files of old versions give none."""
    keys = "imageHeight", "imageWidth"
    return None if all(document.get(key) is None for key in keys) else size_of(document, *keys)


def _decode(text: str, size: Size) -> NDArray[np.bool_]:
    """Decode a PNG. It must have the size that its corners span, so nothing larger is ever unpacked."""
    try:
        data = base64.b64decode(text, validate=True)
        width, height = struct.unpack(">II", data[16:24])
    except (ValueError, struct.error):
        raise BadPair("has a mask that is not a PNG in base 64") from None
    if not data.startswith(_PNG) or (height, width) != size:
        raise BadPair(f"has a mask of {height}x{width}, whose corners span {size[0]}x{size[1]} (height x width)")
    if height * width > (Image.MAX_IMAGE_PIXELS or 0):
        raise BadPair(f"has a mask of {height}x{width} pixels, which is too large")
    try:
        with Image.open(io.BytesIO(data), formats=("PNG",)) as picture:
            pixels = np.asarray(picture)
    except (OSError, SyntaxError, ValueError, struct.error):
        raise BadPair("has a mask that is a damaged PNG") from None
    if pixels.ndim != 2:
        raise BadPair("has a mask in colour")
    return pixels.astype(np.bool_)


FORMAT = PictureFormat(name=NAME, rule=RULE, knows=knows, read=read, lists=LISTS, names_of=names_of, embedded=embedded)
