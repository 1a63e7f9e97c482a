"""CVAT for images 1.1: XML with an <image> for each picture, painted as the export "Segmentation mask" paints it.

That export turns polygons and boxes into masks with pycocotools, ellipses with OpenCV, and lays them on each other by
z_order. If two are equal, the one with a group is on top, by its number, and turned boxes are on top of the others. It
gives a group the label and z_order of its largest shape. Here each shape keeps its own, and shapes of one label and
group are one object.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from xml.etree.ElementTree import Element

import cv2
import numpy as np

from packer.annotations.annotation import NOTHING, AnnotatedPicture, Annotation, Mask, Shape
from packer.annotations.coco_polygon import MOST_POINTS, coco_polygon, polygon_of
from packer.annotations.opencv_polygon import FARTHEST, PAINTER
from packer.annotations.picture_format import AnnotationFormat
from packer.annotations.xml_elements import parse_xml
from packer.errors import BadPair
from readers.contract.tiles import Size

NAME = "cvat"
RULE = f"cvat 1, {PAINTER}"
MOST_RUN = 1 << 31
_NOT_PAINTED = ("polyline", "points", "skeleton", "cuboid")


@dataclass(frozen=True, eq=False)
class RowRuns:
    """Runs of pixels outside, inside, outside … of a window, row by row."""

    window: tuple[int, int, int, int]
    """Top, left, height and width."""
    counts: np.ndarray[tuple[int], np.dtype[np.int64]]

    def paint(self, size: Size) -> Mask:
        top, left, height, width = self.window
        if top < 0 or left < 0 or top + height > size[0] or left + width > size[1]:
            raise BadPair(f"has a mask from ({left}, {top}) of {height}x{width}, which is not inside the picture")
        return Mask(top, left, np.repeat(np.arange(len(self.counts)) % 2 == 1, self.counts).reshape(height, width))


@dataclass(frozen=True)
class CvatEllipse:
    """An ellipse as OpenCV fills it, with its centre and radii in whole pixels."""

    x: int
    y: int
    across: int
    down: int
    degrees: float

    def paint(self, size: Size) -> Mask:
        reach = max(self.across, self.down) + 1
        if max(abs(self.x), abs(self.y), reach) > FARTHEST:
            raise BadPair(f"has an ellipse beyond {FARTHEST}")
        top, bottom = max(self.y - reach, 0), min(self.y + reach + 1, size[0])
        left, right = max(self.x - reach, 0), min(self.x + reach + 1, size[1])
        if top >= bottom or left >= right:
            return NOTHING
        picture = np.zeros((bottom - top, right - left), np.uint8)
        centre, axes = (self.x - left, self.y - top), (self.across, self.down)
        cv2.ellipse(picture, centre, axes, self.degrees, 0, 360, 1, thickness=-1)
        return Mask(top, left, picture.view(np.bool_))


def read(data: bytes) -> AnnotatedPicture:
    """Return the objects of an <image>."""
    image = parse_xml(data)
    if image.tag != "image" or not image.get("name"):
        raise BadPair("is not an <image> of CVAT with a name")
    objects, lost = [], Counter[str]()
    for number, element in enumerate(image, 1):
        if element.tag in _NOT_PAINTED:
            lost[f"of the kind {element.tag!r}, which the export of CVAT does not paint"] += 1
        elif element.tag in _SHAPES:
            try:
                objects.append((_height_of(element), _annotation(element)))
            except BadPair as error:
                raise BadPair(f"shape {number}: {error}") from None
    objects.sort(key=lambda pair: pair[0])
    size = _whole(image, "height"), _whole(image, "width")
    if min(size) < 1:
        raise BadPair("has a size that is not positive")
    name, subset = image.get("name"), image.get("subset")
    longer = f"{subset}/{name}" if subset else None
    return AnnotatedPicture(tuple(annotation for _, annotation in objects), size, name, lost, longer_name=longer)


def _annotation(element: Element) -> Annotation:
    label, group = element.get("label"), element.get("group_id", "0")
    if not label:
        raise BadPair(f"has a <{element.tag}> without a label")
    return Annotation(label, (_SHAPES[element.tag](element),), None if group == "0" else group)


def _height_of(element: Element) -> tuple[int, int, bool]:
    """Return what decides which shape is on top."""
    turned = element.tag == "box" and _number(element, "rotation", "0") != 0
    return _whole(element, "z_order", "0"), _whole(element, "group_id", "0"), turned


def _number(element: Element, name: str, default: str = "") -> float:
    text = element.get(name, default)
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise BadPair(f"has {name}={text[:40]!r}, which is not a finite number")
    return number


def _whole(element: Element, name: str, default: str = "") -> int:
    number = _number(element, name, default)
    if number % 1 or abs(number) >= MOST_RUN:
        raise BadPair(f"has {name}={element.get(name, '')[:40]!r}, which is not a whole number")
    return int(number)


def _polygon(element: Element) -> Shape:
    text = element.get("points", "")
    if text.count(";") >= MOST_POINTS:
        raise BadPair(f"has a polygon of more than {MOST_POINTS} points")
    try:
        if {pair.count(",") for pair in text.split(";")} != {1}:
            raise ValueError
        return _rounded(map(float, text.replace(";", ",").split(",")))
    except ValueError:
        raise BadPair(f"has points {text[:40]!r}; expected x,y;x,y") from None


def _rounded(numbers: Iterable[float]) -> Shape:
    """Return a polygon whose coordinates have two digits behind the point, as the export rounds them."""
    values = np.fromiter(numbers, np.float64)
    if not (np.abs(values) <= FARTHEST).all():
        raise BadPair(f"has a coordinate beyond {FARTHEST}, or that is not a number")
    return polygon_of(np.round(values, 2).reshape(-1, 2))


def _box(element: Element) -> Shape:
    left, top, right, bottom = (_number(element, name) for name in ("xtl", "ytl", "xbr", "ybr"))
    angle = math.radians(_number(element, "rotation", "0"))
    if not angle:
        right, bottom = left + (right - left), top + (bottom - top)  # as the export computes them, with its rounding
        return coco_polygon([left, top, right, top, right, bottom, left, bottom])
    x, y = left + (right - left) / 2, top + (bottom - top) / 2
    cos, sin = math.cos(angle), math.sin(angle)
    corners = ((left, top), (right, top), (right, bottom), (left, bottom))
    turned = ((x + cos * (a - x) - sin * (b - y), y + sin * (a - x) + cos * (b - y)) for a, b in corners)
    return _rounded(chain.from_iterable(turned))


def _ellipse(element: Element) -> Shape:
    x, y, across, down = (round(_number(element, name)) for name in ("cx", "cy", "rx", "ry"))
    if across < 0 or down < 0:
        raise BadPair("has an ellipse with a negative radius")
    return CvatEllipse(x, y, across, down, _number(element, "rotation", "0"))


def _mask(element: Element) -> Shape:
    top, left, height, width = (_whole(element, name) for name in ("top", "left", "height", "width"))
    try:
        counts = np.array([int(count) for count in element.get("rle", "").split(",")], np.int64)
    except (ValueError, OverflowError):
        raise BadPair(f"has run lengths {element.get('rle', '')[:40]!r} that are not whole numbers") from None
    if min(height, width) < 1 or counts.min() < 0 or counts.max() > MOST_RUN or counts.sum() != height * width:
        raise BadPair(f"has run lengths of {counts.sum()} pixels, and a mask of {height}x{width}")
    return RowRuns((top, left, height, width), counts)


_SHAPES: dict[str, Callable[[Element], Shape]] = {"polygon": _polygon, "box": _box, "ellipse": _ellipse, "mask": _mask}


FORMAT = AnnotationFormat(name=NAME, rule=RULE)
