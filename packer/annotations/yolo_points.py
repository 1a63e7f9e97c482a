"""Doubt that files of YOLO have outlines: lines of keypoints and of oriented boxes consist of a class and points, too.

Outlines of a real set have different numbers of points. If every object has four, they may be oriented boxes. If every
object has the same number, and its points lie in the box that its first four numbers would be, they may be keypoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from packer.annotations.yolo_lines import BOX, TOLERANCE, lines_of, numbers_of
from packer.errors import BadPair

Numbers = NDArray[np.float64]
QUADRILATERAL = 9
"""The numbers of an object with four points."""
FEWEST = 2
"""One object alone proves nothing."""
VISIBLE = (0, 1, 2)
"""The third number of a keypoint: it is not labelled, hidden, or visible."""


def doubt_about(files: Iterable[bytes]) -> str:
    """Return what the objects of some files could be instead of outlines; an empty text if they are outlines."""
    objects = [numbers for data in files for numbers in _objects(data) if len(numbers) != BOX]
    if len(objects) < FEWEST or len(set(map(len, objects))) > 1:
        return ""
    if are_keypoints(objects):
        return (
            f"boxes with {_points(objects)}: every object has {len(objects[0])} numbers, and its points are in its box"
        )
    if len(objects[0]) == QUADRILATERAL:
        return "oriented boxes: every object has exactly four points"
    return ""


def are_keypoints(objects: Sequence[Numbers]) -> bool:
    """Return whether every object could be a class, a box, and points in that box."""
    return any(all(_has_points_in_box(numbers, step) for numbers in objects) for step in (2, 3))


def _points(objects: Sequence[Numbers]) -> str:
    step = 2 if all(_has_points_in_box(numbers, 2) for numbers in objects) else 3
    count = (len(objects[0]) - BOX) // step
    return f"{count} keypoint{'s' * (count != 1)}"


def _objects(data: bytes) -> list[Numbers]:
    try:
        return [numbers_of(line) for line in lines_of(data)]
    except BadPair:  # a build says why
        return []


def _has_points_in_box(numbers: Numbers, step: int) -> bool:
    """Check for points of two numbers, or of three if they say whether they are visible. One that is not is 0 0."""
    if len(numbers) <= BOX or (len(numbers) - BOX) % step:
        return False
    centre, size, points = numbers[1:3], numbers[3:BOX], numbers[BOX:].reshape(-1, step)
    if size.min() <= 0 or (step == 3 and not np.isin(points[:, 2], VISIBLE).all()):
        return False
    low, high = centre - size / 2 - TOLERANCE, centre + size / 2 + TOLERANCE
    seen = points[points[:, :2].any(axis=1), :2]
    is_inside = low.min() >= -2 * TOLERANCE and high.max() <= 1 + 2 * TOLERANCE
    return bool(is_inside and len(seen) and (seen >= low).all() and (seen <= high).all())
