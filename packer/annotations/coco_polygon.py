"""A polygon as pycocotools paints it: its outline on a grid of five points a pixel, and pixels between its crossings.

pycocotools draws every point of the outline, from vertex to vertex, and keeps the steps that cross the middle of a
column of pixels. Only these are computed here, so the size of the picture bounds the work, and not the length of the
outline.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.annotations.annotation import Mask
from packer.annotations.run_lengths import EMPTY, Runs, mask_of_edges
from packer.errors import BadPair
from readers.contract.kernels import kernel
from readers.contract.tiles import Size

KERNEL = kernel("packer.annotations.outline_kernel")
SCALE = 5
LARGEST = 2e8
"""The largest coordinate: five times as much must fit into 31 bits, as in pycocotools."""
MOST_POINTS = 1_000_000
MOST_CROSSINGS = 1 << 26
"""The most crossings of an outline with columns. Half a million edges may cross a whole picture of usual size."""
TOGETHER = 1 << 20
"""Crossings that are computed together."""


@dataclass(frozen=True, eq=False)
class CocoPolygon:
    """A ring of points (x, y). pycocotools unites the rings of an object, also a ring inside another ring."""

    points: NDArray[np.float64]

    def paint(self, size: Size) -> Mask:
        if not len(self.points):
            return EMPTY
        grid = (SCALE * self.points + 0.5).astype(np.int64)
        return _by_numpy(grid, size) if KERNEL is None else _by_kernel(KERNEL, grid, size)


def coco_polygon(ring: object) -> CocoPolygon:
    """Return the polygon of a list [x, y, x, y, …]. Raise BadPair if it is another."""
    if not isinstance(ring, list) or not {float, int}.issuperset(map(type, ring)):
        raise BadPair("has an outline that is not a list of numbers")
    if len(ring) % 2:
        raise BadPair(f"has an outline of {len(ring)} numbers; a point has two")
    if len(ring) > 2 * MOST_POINTS:
        raise BadPair(f"has an outline of {len(ring) // 2} points; {MOST_POINTS} are read at most")
    try:
        points = np.array(ring, np.float64).reshape(-1, 2)
    except OverflowError:
        points = np.full((1, 2), np.inf)
    return polygon_of(points)


def polygon_of(points: NDArray[np.float64]) -> CocoPolygon:
    """Return the polygon of points (x, y). Raise BadPair if one is too far away, or not a number."""
    if not np.abs(points).max(initial=0) <= LARGEST:  # also if it is not a number
        raise BadPair(f"has an outline with a coordinate beyond {LARGEST:.0f}")
    return CocoPolygon(points)


def _by_numpy(grid: Runs, size: Size) -> Mask:
    edges = _Edges(grid, np.roll(grid, -1, axis=0), size)
    _check(int(edges.counts.sum()))
    if edges.counts.sum() <= TOGETHER:
        return mask_of_edges(np.sort(edges.crossings(slice(None))), size[0])
    return mask_of_edges(_in_parts(edges), size[0])


def _by_kernel(module: Any, grid: Runs, size: Size) -> Mask:
    """Paint in the smallest window that has all crossings."""
    (left, first), (right, last) = grid.min(0).tolist(), grid.max(0).tolist()
    left, right = max((left + 2) // SCALE, 0), min((right - 3) // SCALE, size[1] - 1)
    top, bottom = (math.ceil(min(max((step + 0.5) / SCALE - 0.5, 0), size[0])) for step in (first, last))
    if right < left or bottom <= top:
        return EMPTY
    inside = np.zeros((bottom - top, right - left + 1), np.uint8)
    _check(module.paint(grid, inside, top, left, size[0], MOST_CROSSINGS))
    return Mask(top, left, inside.view(np.bool_))


def _check(crossings: int) -> None:
    if crossings > MOST_CROSSINGS:
        raise BadPair(f"has an outline that crosses columns {crossings} times; {MOST_CROSSINGS} are read at most")


class _Edges:
    """The edges of an outline from each point to the next, and how many columns of pixels each crosses."""

    def __init__(self, start: Any, end: Any, size: Size) -> None:
        length = np.abs(end - start)
        self._height = size[0]
        self._is_flat = length[:, 0] >= length[:, 1]
        """Drawn with a point for each step to the right, otherwise with one for each step down."""
        first, last = np.minimum(start[:, 0], end[:, 0]), np.maximum(start[:, 0], end[:, 0])
        self._column = np.maximum((first + 2) // SCALE, 0)
        self.counts = np.maximum(np.minimum((last - 3) // SCALE, size[1] - 1) - self._column + 1, 0)
        # An edge is drawn from the end at which the axis that it follows is smaller.
        along = np.where(self._is_flat, start[:, 0] > end[:, 0], start[:, 1] > end[:, 1])
        self._x, self._y = np.where(along[:, None], end, start).T
        self._to_x, self._to_y = np.where(along[:, None], start, end).T

    def crossings(self, chosen: slice) -> Runs:
        """Return the pixels at which these edges cross the middle of a column, counted column by column."""
        counts = self.counts[chosen]
        edge = np.repeat(np.arange(len(self.counts))[chosen], counts)
        nth = np.arange(len(edge)) - np.repeat(np.cumsum(counts) - counts, counts)
        column = self._column[edge] + nth
        step = SCALE * column + 2  # the middle of the column is between this step and the next
        is_flat, height = self._is_flat[edge], self._height
        row = np.empty(len(edge), np.int64)
        for flat, rows in ((True, self._rows_of_flat), (False, self._rows_of_steep)):
            here = np.flatnonzero(is_flat == flat)
            if len(here):
                row[here] = rows(edge[here], step[here])
        return np.asarray(column * height + np.ceil(np.clip((row + 0.5) / SCALE - 0.5, 0, height)), np.int64)

    def _rows_of_flat(self, edge: Runs, step: Runs) -> Runs:
        x, y = self._x[edge], self._y[edge]
        slope = (self._to_y[edge] - y) / (self._to_x[edge] - x)
        done = step - x
        rows = y + slope * done + 0.5, y + slope * (done + 1) + 0.5
        return np.asarray(np.minimum(rows[0].astype(np.int64), rows[1].astype(np.int64)))

    def _rows_of_steep(self, edge: Runs, step: Runs) -> Runs:
        """Find the last point that lies before the middle: guess it, and step on while the next one does, too."""
        x, y = self._x[edge], self._y[edge]
        slope = (self._to_x[edge] - x) / (self._to_y[edge] - y)
        done = np.floor((step + 0.5 - x) / slope) - 1
        for _ in range(3):
            done += ((x + slope * done + 0.5) < step + 1) == (slope > 0)
        return np.asarray(y + done - 1, np.int64)


def _in_parts(edges: _Edges) -> Runs:
    """Return the sorted crossings of very many. Two at one pixel are none."""
    crossings = np.zeros(0, np.int64)
    ends = np.cumsum(edges.counts)
    first = 0
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + TOGETHER, "right")))
        pixels, times = np.unique(np.concatenate([crossings, edges.crossings(slice(first, last))]), return_counts=True)
        crossings = pixels[times % 2 == 1]
        first = last
    return crossings
