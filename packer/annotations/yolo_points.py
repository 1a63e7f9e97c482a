"""Doubt that files of YOLO have outlines: lines of keypoints and of oriented boxes consist of a class and points, too.

Outlines of a real set have different numbers of points. If every object has four, they may be oriented boxes. If every
object has the same number, and nearly all points are in the box that its first four numbers would be, they may be
keypoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from packer.annotations.yolo_lines import BOX, TOLERANCE, lines_of, numbers_of
from packer.errors import BadPair, counted

Numbers = NDArray[np.float64]
QUADRILATERAL = 9
"""The numbers of an object with four points."""
FEWEST = 2
"""One object alone proves nothing."""
VISIBLE = (0, 1, 2)
"""The third number of a keypoint: it is not labelled, hidden, or visible."""
IN_BOX = 0.9
"""The least share of keypoints in their boxes. People mark some outside."""


def doubt_about(files: Iterable[bytes]) -> str:
    """Return what the objects of some files could be instead of outlines; an empty text if they are outlines."""
    objects = [numbers for data in files for numbers in _objects(data) if len(numbers) != BOX]
    if len(objects) < FEWEST or len(set(map(len, objects))) > 1:
        return ""
    if are_keypoints(objects):
        numbers = f"every object has {len(objects[0])} numbers"
        return f"boxes with {_points(objects)}: {numbers}, and the points are in the boxes"
    if len(objects[0]) == QUADRILATERAL:
        return "oriented boxes: every object has exactly four points"
    return ""


def are_keypoints(objects: Sequence[Numbers]) -> bool:
    """Return whether every object could be a class, a box, and points that are nearly all in their box."""
    return any(_have_points_in_boxes(objects, step) for step in (2, 3))


def _points(objects: Sequence[Numbers]) -> str:
    return counted((len(objects[0]) - BOX) // (2 if _have_points_in_boxes(objects, 2) else 3), "keypoint")


def _have_points_in_boxes(objects: Sequence[Numbers], step: int) -> bool:
    inside = [_points_in_box(numbers, step) for numbers in objects]
    measured = [flags for flags in inside if flags is not None and flags.size]
    return len(measured) == len(objects) and bool(np.concatenate(measured).mean() >= IN_BOX)


def _objects(data: bytes) -> list[Numbers]:
    try:
        return [numbers_of(line) for line in lines_of(data)]
    except BadPair:  # a build says why
        return []


def _points_in_box(numbers: Numbers, step: int) -> NDArray[np.bool_] | None:
    """Return for each point that is labelled whether it is in the box. None: the object has no box and points.

    A point has two numbers, or three if they say whether it is visible. A point that is not labelled is 0 0.
    """
    if len(numbers) <= BOX or (len(numbers) - BOX) % step:
        return None
    centre, size, points = numbers[1:3], numbers[3:BOX], numbers[BOX:].reshape(-1, step)
    if size.min() <= 0 or (step == 3 and not np.isin(points[:, 2], VISIBLE).all()):
        return None
    low, high = centre - size / 2 - TOLERANCE, centre + size / 2 + TOLERANCE
    if low.min() < -2 * TOLERANCE or high.max() > 1 + 2 * TOLERANCE:
        return None
    labelled = points[points[:, :2].any(axis=1), :2]
    return np.asarray(((labelled >= low) & (labelled <= high)).all(axis=1))
