"""Shapes that LabelMe paints with Pillow, besides polygons: rectangles, circles, lines and points.

Pillow drops the fractions of coordinates, towards zero, before it draws. So do these shapes, and they shift whole
numbers then: rows only, because Pillow rounds the columns of a wide line as floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from PIL import ImageDraw

from packer.annotations.annotation import NOTHING, Mask
from packer.annotations.pillow_picture import drawn
from packer.errors import BadPair
from readers.contract.tiles import Size

LINE_WIDTH, POINT_RADIUS = 10, 5
"""The shapes of LabelMe."""
FARTHEST = 1 << 20
"""The largest coordinate: Pillow computes with numbers that are exact up to it."""
MOST_RADIUS = 1 << 14
"""Pillow before 12.3 never ends where the numbers of a larger circle overflow, whose rows it counts outside, too."""
Point = Sequence[float]


@dataclass(frozen=True)
class Rectangle:
    """A rectangle between two corners."""

    first: Point
    second: Point

    def paint(self, size: Size) -> Mask:
        corners = list(zip(*map(sorted, zip(self.first, self.second, strict=True)), strict=True))
        return _drawn(size, corners, 0, lambda draw, points: draw.rectangle(points, outline=1, fill=1))


@dataclass(frozen=True)
class Circle:
    """A filled circle."""

    centre: Point
    radius: float

    @classmethod
    def through(cls, centre: Point, point: Point) -> Circle:
        """Return the circle around a centre on which a point lies."""
        return cls(centre, math.sqrt((centre[0] - point[0]) ** 2 + (centre[1] - point[1]) ** 2))

    def paint(self, size: Size) -> Mask:
        (x, y), radius = self.centre, self.radius
        if radius > MOST_RADIUS:
            raise BadPair(f"has a circle with a radius of more than {MOST_RADIUS} pixels")
        corners = (x - radius, y - radius), (x + radius, y + radius)
        return _drawn(size, corners, 0, lambda draw, points: draw.ellipse(points, outline=1, fill=1))


@dataclass(frozen=True)
class Line:
    """A line through all points, as wide as LabelMe draws it."""

    points: Sequence[Point]

    def paint(self, size: Size) -> Mask:
        return _drawn(size, self.points, LINE_WIDTH, lambda draw, points: draw.line(points, fill=1, width=LINE_WIDTH))


def _drawn(size: Size, points: Sequence[Point], margin: int, draw: Callable[[ImageDraw.ImageDraw, Any], None]) -> Mask:
    """Draw on the rows that the points span, and the columns from the left of the picture to the last of them."""
    if not all(abs(x) <= FARTHEST and abs(y) <= FARTHEST for x, y in points):
        raise BadPair(f"has a point that is more than {FARTHEST} pixels away")
    whole = [(int(x), int(y)) for x, y in points]
    columns, rows = [x for x, _ in whole], [y for _, y in whole]
    top, bottom = max(0, min(rows) - margin), min(size[0], max(rows) + margin + 1)
    left, right = max(0, min(columns) - margin), min(size[1], max(columns) + margin + 1)
    if top >= bottom or left >= right:
        return NOTHING
    moved = [(x, y - top) for x, y in whole]
    return Mask(top, left, drawn(bottom - top, right, lambda picture: draw(picture, moved))[:, left:])
