"""Polygons by the plain rule: a pixel is inside if its centre is, by even and odd crossings. GDAL paints so, too."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from packer.annotations.annotation import NOTHING, Mask
from packer.errors import BadPair
from readers.contract.kernels import kernel
from readers.contract.tiles import Size

KERNEL = kernel("packer.annotations.even_odd_kernel")
MOST_CROSSINGS = 200_000_000
"""The most crossings of edges and rows of a polygon: they take some seconds."""
_AT_ONCE = 1 << 20

Points = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EvenOddPolygon:
    """Rings (N, 2) of x and y; a ring inside of another is a hole. Pixel (0, 0) has its centre at 0.5, 0.5.

    A centre exactly on the border is inside if the polygon is below it or to its left.
    """

    rings: tuple[Points, ...]

    def paint(self, size: Size) -> Mask:
        rings = [ring for ring in self.rings if len(ring)]
        if not rings:
            return NOTHING
        points = rings[0] if len(rings) == 1 else np.concatenate(rings)
        (low_x, low_y), (high_x, high_y) = points.min(0).tolist(), points.max(0).tolist()
        left, top = math.floor(max(low_x, 0)), math.floor(max(low_y, 0))
        right, bottom = math.ceil(min(high_x, size[1])), math.ceil(min(high_y, size[0]))
        if left >= right or top >= bottom:
            return NOTHING
        edges = np.empty((len(points), 4), np.float64)
        first = 0
        for ring in rings:
            last = first + len(ring)
            edges[first, :2], edges[first + 1 : last, :2], edges[first:last, 2:] = ring[-1], ring[:-1], ring
            first = last
        inside = np.zeros((bottom - top, right - left), np.uint8)
        if KERNEL is None:
            _by_numpy(edges, inside, top, left)
        else:
            _by_kernel(edges, inside, top, left)
        return Mask(top, left, inside.view(np.bool_))


def _by_kernel(edges: Points, inside: NDArray[np.uint8], top: int, left: int) -> None:
    assert KERNEL is not None
    _check(len(edges), KERNEL.paint(edges.view(np.int64), inside, top, left, MOST_CROSSINGS))


def _by_numpy(edges: Points, inside: NDArray[np.uint8], top: int, left: int) -> None:
    """Flip each pixel of a window of zeros that has an odd number of edges to its left."""
    height, width = inside.shape
    edges = edges[edges[:, 1] != edges[:, 3]]
    downward = np.where((edges[:, 1] < edges[:, 3])[:, None], edges, edges[:, [2, 3, 0, 1]])
    crossed = np.zeros((height, width + 1), np.uint8)
    for rows, columns in _crossings(downward, top, top + height):
        right_of = np.clip(columns - left, 0, width).astype(np.int64)
        np.bitwise_xor.at(crossed.reshape(-1), (rows - top) * (width + 1) + right_of, 1)
    np.bitwise_xor.accumulate(crossed[:, :-1], axis=1, out=inside)


def _check(edges: int, crossings: int) -> None:
    if crossings > MOST_CROSSINGS:
        raise BadPair(f"has a polygon whose {edges} edges cross {crossings} rows; it would take minutes to paint")


def _crossings(edges: NDArray[np.float64], top: int, bottom: int) -> Iterator[tuple[NDArray[np.int64], Points]]:
    """Yield rows, and the first column to the right of where an edge crosses the middle of the row."""
    first = np.clip(np.ceil(edges[:, 1] - 0.5), top, bottom).astype(np.int64)
    counts = np.clip(np.ceil(edges[:, 3] - 0.5), top, bottom).astype(np.int64) - first
    edges, first, counts = edges[counts > 0], first[counts > 0], counts[counts > 0]
    behind = np.cumsum(counts)
    _check(len(edges), int(behind[-1]) if len(behind) else 0)
    start = 0
    while start < len(edges):
        reached = behind[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(behind, reached + _AT_ONCE, "right")))
        count = counts[start:end]
        edge = np.repeat(np.arange(start, end), count)
        rows = first[edge] + np.arange(len(edge)) - np.repeat(behind[start:end] - count - reached, count)
        x1, y1, x2, y2 = edges[edge].T
        yield rows, np.floor((rows + 0.5 - y1) * (x2 - x1) / (y2 - y1) + x1 + 0.5)
        start = end
