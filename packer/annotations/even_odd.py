"""Polygons by the plain rule: a pixel is inside if its centre is, by even and odd crossings. GDAL paints so, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.annotations.annotation import NOTHING, Mask
from packer.errors import BadPair
from readers.contract.tiles import Size

MOST_CROSSINGS = 200_000_000
"""The most crossings of edges and rows of a polygon: they take some seconds."""
_AT_ONCE = 1 << 20

Points = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EvenOddPolygon:
    """Rings (N, 2) of x and y; a ring inside of another is a hole. Pixel (0, 0) has its centre at 0.5, 0.5.

    A centre exactly on the border is inside if the polygon lies below or to the left of it.
    """

    rings: tuple[Points, ...]

    def paint(self, size: Size) -> Mask:
        rings = [ring for ring in self.rings if len(ring)]
        if not rings:
            return NOTHING
        low, high = np.min([ring.min(0) for ring in rings], 0), np.max([ring.max(0) for ring in rings], 0)
        left, top = np.floor(np.maximum(low, 0)).astype(int)
        right, bottom = np.ceil(np.minimum(high, size[::-1])).astype(int)
        if left >= right or top >= bottom:
            return NOTHING
        window = (int(top), int(left), int(bottom - top), int(right - left))
        return Mask(window[0], window[1], _inside(rings, *window))


def _inside(rings: list[Points], top: int, left: int, height: int, width: int) -> NDArray[np.bool_]:
    """Return for each pixel of a window whether an odd number of edges lies to its left."""
    edges = np.concatenate([np.concatenate([np.roll(ring, 1, 0), ring], 1) for ring in rings])
    edges = edges[edges[:, 1] != edges[:, 3]]
    downward = np.where((edges[:, 1] < edges[:, 3])[:, None], edges, edges[:, [2, 3, 0, 1]])
    crossed = np.zeros((height, width + 1), np.uint8)
    for rows, columns in _crossings(downward, top, top + height):
        right_of = np.clip(columns - left, 0, width).astype(np.int64)
        np.bitwise_xor.at(crossed.reshape(-1), (rows - top) * (width + 1) + right_of, 1)
    inside: NDArray[Any] = np.bitwise_xor.accumulate(crossed[:, :-1], axis=1)
    return inside.view(np.bool_)


def _crossings(edges: NDArray[np.float64], top: int, bottom: int) -> Iterator[tuple[NDArray[np.int64], Points]]:
    """Yield rows, and the first column to the right of where an edge crosses the middle of the row."""
    first = np.clip(np.ceil(edges[:, 1] - 0.5), top, bottom).astype(np.int64)
    counts = np.clip(np.ceil(edges[:, 3] - 0.5), top, bottom).astype(np.int64) - first
    edges, first, counts = edges[counts > 0], first[counts > 0], counts[counts > 0]
    behind = np.cumsum(counts)
    if len(behind) and behind[-1] > MOST_CROSSINGS:
        raise BadPair(f"has a polygon whose {len(edges)} edges cross {behind[-1]} rows; it would take minutes to paint")
    start = 0
    while start < len(edges):
        reached = behind[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(behind, reached + _AT_ONCE, "right")))
        count = counts[start:end]
        each = np.repeat(np.arange(start, end), count)
        rows = first[each] + np.arange(len(each)) - np.repeat(behind[start:end] - count - reached, count)
        x1, y1, x2, y2 = edges[each].T
        yield rows, np.floor((rows + 0.5 - y1) * (x2 - x1) / (y2 - y1) + x1 + 0.5)
        start = end
