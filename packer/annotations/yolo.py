"""YOLO: `labels/*.txt`, a line for each object: its class, and the points of its outline as shares of the size.

An outline is painted as `polygon2mask` of Ultralytics paints it at the size of the picture. A hole that its converters
join to the outline by a bridge is a hole, and the bridge is as wide as OpenCV draws a line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from packer.annotations.annotation import AnnotatedPicture, Annotation, Mask
from packer.annotations.opencv_polygon import PAINTER, fill
from packer.annotations.picture_format import PictureFormat
from packer.annotations.yolo_lines import BOX, TOLERANCE, lines_of, numbers_of
from packer.annotations.yolo_points import doubt_about
from packer.classes.load import PROPOSED_TABLES
from packer.classes.yaml_names import has_names, names_of
from packer.errors import BadPair
from readers.contract.tiles import Size

NAME = "yolo"
RULE = f"yolo 1, {PAINTER}"
SUFFIX = ".txt"
LISTS = (*PROPOSED_TABLES, "classes.txt")
"""Files that name the classes."""
OTHER_LISTS = (".yaml", ".yml")
"""Suffixes of other files that name them, such as coco8-seg.yaml."""


@dataclass(frozen=True, eq=False)
class YoloPolygon:
    """An outline whose points are shares of the width and of the height, in the precision of Ultralytics."""

    points: NDArray[np.float32]

    def paint(self, size: Size) -> Mask:
        return fill(size, (self.points * np.array(size[::-1], np.float32)).astype(np.int64))


def knows(data: bytes) -> bool:
    """Check that each line has a class and at least two points or a box. An empty file could be anything."""
    try:
        lines = [numbers_of(line) for line in lines_of(data)]
    except BadPair:
        return False
    return bool(lines) and all(_is_plausible(numbers) for numbers in lines)


def read(data: bytes, names: Sequence[str]) -> AnnotatedPicture:
    """Return the objects of a picture. Without names the classes are called `class_0`, `class_1` and so on."""
    annotations, lost = [], Counter[str]()
    for number, line in enumerate(lines_of(data), 1):
        try:
            annotation = _annotation(numbers_of(line), names)
        except BadPair as error:
            raise BadPair(f"object {number}: {error}") from None
        if annotation is None:
            lost["with a box and no outline"] += 1
        else:
            annotations.append(annotation)
    if lost and not annotations:
        boxes = lost.total()
        raise BadPair(f"has {boxes} {'box' if boxes == 1 else 'boxes'} and no outline; a label needs outlines")
    return AnnotatedPicture(tuple(annotations), lost=lost)


def _is_plausible(numbers: NDArray[np.float64]) -> bool:
    count = len(numbers)
    return (
        (count == BOX or (count >= 7 and count % 2 == 1)) and numbers[0] >= 0 and numbers[0] % 1 == 0 and _fits(numbers)
    )


def _fits(numbers: NDArray[np.float64]) -> bool:
    """Check that the box of an outline, or the box, is in the picture as far as Ultralytics wants it to."""
    box = numbers[1:]
    if len(numbers) != BOX:
        points = box.reshape(-1, 2)
        low, high = points.min(0), points.max(0)
        box = np.concatenate([(low + high) / 2, high - low])
    return bool(box.min() >= -TOLERANCE and box.max() <= 1 + TOLERANCE)


def _annotation(numbers: NDArray[np.float64], names: Sequence[str]) -> Annotation | None:
    """Return the object of a line; None if it has a box instead of an outline."""
    category = _category(float(numbers[0]), names)
    if len(numbers) != BOX and (len(numbers) < 7 or len(numbers) % 2 == 0):
        raise BadPair(f"has {len(numbers)} numbers; expected a class and at least three points of two numbers")
    if not _fits(numbers):
        raise BadPair("has coordinates outside of 0 to 1; expected shares of the width and height")
    if len(numbers) == BOX:
        return None
    return Annotation(category, (YoloPolygon(numbers[1:].reshape(-1, 2).astype(np.float32)),))


def _category(number: float, names: Sequence[str]) -> str:
    if number < 0 or number % 1:
        raise BadPair(f"has the class {number:g}; expected a whole number from 0 on")
    if names and number >= len(names):
        raise BadPair(f"has the class {number:.0f}, and the list has {len(names)} names, 0 to {len(names) - 1}")
    return names[int(number)] if names else f"class_{int(number)}"


FORMAT = PictureFormat(
    name=NAME,
    rule=RULE,
    knows=knows,
    read=read,
    lists=LISTS,
    other_lists=OTHER_LISTS,
    has_names=has_names,
    names_of=names_of,
    doubt_about=doubt_about,
)
