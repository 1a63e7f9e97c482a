"""Polygons that Pillow fills: their pixels are those that `ImageDraw.polygon` of the installed version paints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from packer.annotations.annotation import NOTHING, Mask
from packer.annotations.pillow_picture import drawn
from packer.errors import BadPair
from readers.contract.tiles import Size

MOST_STEPS = 4_000_000_000
"""Pillow compares each row with each edge, and edges that end in one row. This number of comparisons takes seconds."""


@dataclass(frozen=True, eq=False)
class PillowPolygon:
    """A polygon as `ImageDraw.polygon` fills it. Points are cut to whole numbers, borders are inside."""

    points: NDArray[np.float64]
    """(N, 2): x and y. Two points are a line; a shape of fewer is an error in Pillow."""

    def paint(self, size: Size) -> Mask:
        ring = self.points.astype(np.int64).ravel().tolist()
        columns, rows = ring[::2], ring[1::2]
        left, top = max(min(columns), 0), max(min(rows), 0)
        right, bottom = min(max(columns) + 1, size[1]), min(max(rows) + 1, size[0])
        if left >= right or top >= bottom:
            return NOTHING
        moved = [row - top for row in rows]
        _check_steps(moved, bottom - top)
        ring[1::2] = moved  # rows may be shifted; columns may not, because Pillow rounds sums of floats with them
        return Mask(top, left, drawn(bottom - top, right, lambda draw: draw.polygon(ring, fill=1))[:, left:])


def _check_steps(rows: list[int], height: int) -> None:
    """Refuse a polygon that would keep Pillow busy for minutes."""
    if len(rows) * (height + 2 * len(rows)) <= MOST_STEPS:
        return
    inside = np.array(rows)
    ends = np.bincount(inside[(inside >= 0) & (inside < height)], minlength=1)
    if len(rows) * height + 2 * int((ends * ends).sum()) > MOST_STEPS:
        raise BadPair(f"has a polygon of {len(rows)} points that would take minutes to paint")
