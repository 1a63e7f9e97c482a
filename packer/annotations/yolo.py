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
from packer.annotations.json_values import MOST_BYTES, MOST_POINTS
from packer.annotations.opencv_polygon import PAINTER, fill
from packer.annotations.yaml_names import has_names, names_of
from packer.errors import BadPair
from readers.contract.tiles import Size

NAME = "yolo"
RULE = f"yolo 1, {PAINTER}"
SUFFIX = ".txt"
LISTS = ("data.yaml", "data.yml", "dataset.yaml", "dataset.yml", "classes.txt")
"""Files that name the classes."""
OTHER_LISTS = (".yaml", ".yml")
"""Suffixes of other files that name them, such as coco8-seg.yaml."""
BOX = 5
"""The numbers of a line that has a box: class, centre, width and height."""
TOLERANCE = 0.01
"""The share of the size by which the box of an outline may lie outside. Ultralytics allows as much."""
MOST_LINE = 16 << 20
"""The most bytes of a line."""

__all__ = ["LISTS", "NAME", "OTHER_LISTS", "RULE", "SUFFIX", "has_names", "knows", "names_of", "read"]


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
            found = _annotation(numbers_of(line), names)
        except BadPair as error:
            raise BadPair(f"object {number}: {error}") from None
        if found is None:
            lost["with a box and no outline"] += 1
        else:
            annotations.append(found)
    if lost and not annotations:
        boxes = lost.total()
        raise BadPair(f"has {boxes} {'box' if boxes == 1 else 'boxes'} and no outline; a label needs outlines")
    return AnnotatedPicture(tuple(annotations), lost=lost)


def lines_of(data: bytes) -> list[str]:
    """Return the lines of a file that are not empty."""
    if len(data) > MOST_BYTES:
        raise BadPair(f"is larger than {MOST_BYTES >> 20} MiB, too large for the annotations of one picture")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadPair("is not text in UTF-8") from None
    return [line for line in text.splitlines() if line.strip()]


def numbers_of(line: str) -> NDArray[np.float64]:
    """Return the numbers of a line."""
    fields = line.split(maxsplit=2 * MOST_POINTS + 1) if len(line) <= MOST_LINE else ()
    if len(fields) > 2 * MOST_POINTS + 1 or len(line) > MOST_LINE:
        raise BadPair(f"has more than {MOST_POINTS} points")
    try:
        numbers = np.array(list(map(float, fields)), np.float64)
    except ValueError:
        raise BadPair(f"expected a class and coordinates, found {line[:40]!r}") from None
    if not np.isfinite(numbers).all():
        raise BadPair("has a number that is not finite")
    return numbers


def _is_plausible(numbers: NDArray[np.float64]) -> bool:
    count = len(numbers)
    return (
        (count == BOX or (count >= 7 and count % 2 == 1)) and numbers[0] >= 0 and numbers[0] % 1 == 0 and _fits(numbers)
    )


def _fits(numbers: NDArray[np.float64]) -> bool:
    """Check that the box of an outline, or the box, lies in the picture as far as Ultralytics wants it to."""
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
