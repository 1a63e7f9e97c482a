"""Polygons that OpenCV fills: their pixels are those that `cv2.fillPoly` of the installed version draws."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.annotations.annotation import NOTHING, Mask
from packer.errors import BadPair
from readers.contract.tiles import Size

PAINTER = f"OpenCV {cv2.__version__}"
"""The library and its version, for the rules of formats."""
FARTHEST = 1 << 20
"""The largest coordinate. OpenCV steps through the rows above the picture, too."""
MOST_STEPS = 20_000_000_000
"""OpenCV sorts the edges of each row by exchanging neighbours. This number of comparisons takes seconds."""
MOST_LENGTH = 2_000_000_000
"""The most pixels of a line or an outline, which OpenCV draws one by one."""
Ring = NDArray[np.int64]
"""(N, 2): x and y in whole pixels."""


def fill(size: Size, ring: Ring, holes: Sequence[Ring] = ()) -> Mask:
    """Return the pixels inside a ring and on its outline, without those inside holes and on their outlines.

    A ring that crosses itself is filled by the even-odd rule, and so are the holes together.
    """
    if not len(ring):
        return NOTHING
    points = np.concatenate([ring, *holes]) if holes else ring
    if (frame := _window(size, points)) is None:
        return NOTHING
    left, top, picture = frame
    for colour, rings in ((1, [ring]), (0, [hole for hole in holes if len(hole)])):
        if rings:
            moved = [(corners - (left, top)).astype(np.int32) for corners in rings]
            _check_steps(moved, len(picture))
            for outline in moved:
                _check_length(outline, picture.shape)
            cv2.fillPoly(picture, moved, colour)
    return Mask(top, left, picture.view(np.bool_))


def line(size: Size, points: Ring) -> Mask:
    """Return the pixels of a line through points, one pixel wide."""
    if not len(points):
        return NOTHING
    if (frame := _window(size, points)) is None:
        return NOTHING
    left, top, picture = frame
    moved = (points - (left, top)).astype(np.int32)
    _check_length(moved, picture.shape)
    cv2.polylines(picture, [moved], isClosed=False, color=1, thickness=1)
    return Mask(top, left, picture.view(np.bool_))


def _window(size: Size, points: Ring) -> tuple[int, int, NDArray[np.uint8]] | None:
    """Return the left and top of the window of points, and an empty picture of it; None if it is outside."""
    low, high = points.min(0).tolist(), points.max(0).tolist()
    if min(low) < -FARTHEST or max(high) > FARTHEST:
        raise BadPair(f"has a coordinate beyond {FARTHEST}")
    left, top = max(low[0], 0), max(low[1], 0)
    right, bottom = min(high[0] + 1, size[1]), min(high[1] + 1, size[0])
    if left >= right or top >= bottom:
        return None
    return left, top, np.zeros((bottom - top, right - left), np.uint8)


def _check_steps(rings: Sequence[NDArray[np.int32]], height: int) -> None:
    """Refuse rings that would keep OpenCV busy for minutes."""
    if height * sum(map(len, rings)) ** 2 <= MOST_STEPS:
        return
    change = np.zeros(height + 1, np.int64)
    for ring in rings:
        first = np.clip(ring[:, 1], 0, height)
        last = np.roll(first, -1)
        np.add.at(change, np.minimum(first, last), 1)
        np.add.at(change, np.maximum(first, last), -1)
    edges = np.cumsum(change)
    if int((edges * edges).sum()) > MOST_STEPS:
        raise BadPair(f"has a polygon of {sum(map(len, rings))} points that would take minutes to paint")


def _check_length(points: NDArray[np.int32], size: tuple[int, ...]) -> None:
    """Refuse a long line, which would keep OpenCV busy for minutes."""
    if len(points) * max(size) <= MOST_LENGTH:
        return
    inside = np.clip(points, 0, size[::-1])
    if int(np.abs(np.diff(inside, axis=0)).max(1, initial=0).sum()) > MOST_LENGTH:
        raise BadPair(f"has a line of {len(points)} points that would take minutes to paint")
