"""Cut a polygon with holes at the border of its picture, exactly: the corners are fractions until they are rounded."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from readers.contract.tiles import Size

Rings = Sequence[NDArray[np.int64]]
Point: TypeAlias = "tuple[Fraction | int, Fraction | int]"
Path: TypeAlias = "list[Point]"
MOST_POINTS = 1000
"""Every edge is compared with every other one."""


def cut_rings(exterior: NDArray[np.int64], holes: Rings, size: Size) -> list[tuple[NDArray[np.int64], Rings]] | None:
    """Return the parts of a polygon within the centres of the outer pixels, each with its holes, in whole numbers.

    None: it crosses or touches itself, or has too many points, so that it is not clear what is inside.
    """
    rings = [_without_repeated([(x, y) for x, y in ring.tolist()]) for ring in (exterior, *holes)]
    if not _is_simple(rings):
        return None
    paths: list[Path] = [_turned(path, number > 0) for number, path in enumerate(rings)]
    for axis, sign in product((0, 1), (1, -1)):
        clipped = _clipped(paths, axis, sign, size)
        if clipped is None:
            return None
        paths = clipped
    outer = [path for path in paths if _area(path) > 0]
    inner = [path for path in paths if _area(path) < 0]
    return [(_whole(path), [_whole(hole) for hole in inner if _contains(path, _free(hole, size))]) for path in outer]


def _clipped(paths: Sequence[Path], axis: int, sign: int, size: Size) -> list[Path] | None:
    """Cut rings at one side of the picture. None: the pieces do not fit together."""
    border = 0 if sign > 0 else size[1 - axis] - 1
    whole, chains = list[Path](), list[Path]()
    for path in paths:
        heights = [sign * (point[axis] - border) for point in path]
        if min(heights) > 0 or (min(heights) == 0 and _touches(path, size) == 1):
            whole.append(path)
        elif max(heights) > 0:
            chains += _chains(path, heights)
    every = ((number, end) for number in range(len(chains)) for end in (0, -1))
    ends = sorted(every, key=lambda chain_end: (chains[chain_end[0]][chain_end[1]][1 - axis], chain_end))
    partners = dict(zip((*ends[::2], *ends[1::2]), (*ends[1::2], *ends[::2]), strict=True))
    left = set(range(len(chains)))
    while left:
        first = number = min(left)
        joined: Path = []
        while number in left:
            left.remove(number)
            joined += chains[number]
            number, end = partners[number, -1]
            if end != 0:
                return None
        if number != first:
            return None
        whole.append(joined)
    return whole


def _touches(path: Path, size: Size) -> int:
    """Return how many points of a ring are on the border. A hole with one of them is still a hole."""
    return sum(_is_on_border(point, size) for point in path)


def _free(hole: Path, size: Size) -> Point:
    """Return a point of a hole that is not on the border."""
    return next((point for point in hole if not _is_on_border(point, size)), hole[0])


def _is_on_border(point: Point, size: Size) -> bool:
    return point[0] in (0, size[1] - 1) or point[1] in (0, size[0] - 1)


def _chains(path: Path, heights: Sequence[Fraction | int]) -> list[Path]:
    """Return the parts of a ring that are inside, each from the point where it enters to that where it leaves."""
    start = next(index for index, height in enumerate(heights) if height <= 0)
    chains, chain = list[Path](), list[Point]()
    for step in range(len(path)):
        now, then = (start + step) % len(path), (start + step + 1) % len(path)
        if (heights[now] <= 0) != (heights[then] <= 0):
            chain.append(_crossing(path[now], path[then], heights[now], heights[then]))
            if heights[then] <= 0:
                chains.append(chain)
                chain = []
        if heights[then] > 0:
            chain.append(path[then])
    return chains


def _crossing(start: Point, end: Point, height: Fraction | int, after: Fraction | int) -> Point:
    share = Fraction(height) / (height - after)
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


def _without_repeated(points: Path) -> Path:
    return [point for before, point in zip([points[-1], *points], points, strict=False) if before != point]


def _turned(path: Path, is_hole: bool) -> Path:
    """Return a ring in the direction of an exterior, or of a hole."""
    return path if (_area(path) < 0) == is_hole else path[::-1]


def _area(path: Path) -> Fraction | int:
    """Return twice the area of a ring; negative if it turns left in a picture."""
    pairs = zip(path, [*path[1:], path[0]], strict=True)
    return sum(x * below - after * y for (x, y), (after, below) in pairs)


def _whole(path: Path) -> NDArray[np.int64]:
    return np.array([(round(x), round(y)) for x, y in path], np.int64)


def _contains(path: Path, point: Point) -> bool:
    """Return whether a ring contains a point."""
    inside = False
    for (x, y), (after, below) in zip(path, [*path[1:], path[0]], strict=True):
        if (y > point[1]) != (below > point[1]):
            inside ^= point[0] < x + Fraction(point[1] - y) / (below - y) * (after - x)
    return inside


def _is_simple(rings: Sequence[Path]) -> bool:
    """Check that no edge meets another one but its neighbours, and that holes are inside."""
    points = [point for ring in rings for point in ring]
    if len(points) > MOST_POINTS or min(map(len, rings)) < 3 or len(set(points)) < len(points):
        return False
    if not all(_contains(rings[0], hole[0]) for hole in rings[1:]):
        return False
    starts = np.array(points, np.int64)
    ends = np.array([point for ring in rings for point in [*ring[1:], ring[0]]], np.int64)
    before = _side(starts, ends, starts[:, None]), _side(starts, ends, ends[:, None])
    crosses = (before[0] * before[1] <= 0) & (before[0] * before[1] <= 0).T
    low, high = np.minimum(starts, ends), np.maximum(starts, ends)
    crosses &= ((low <= high[:, None]) & (high >= low[:, None])).all(-1)
    np.fill_diagonal(crosses, False)
    shared = (starts == ends[:, None]).all(-1)
    is_spike = (before[1].T == 0) & shared & (((ends - starts) * (starts - ends)[:, None]).sum(-1) > 0)
    return not (crosses & ~shared & ~shared.T).any() and not is_spike.any()


def _side(starts: NDArray[np.int64], ends: NDArray[np.int64], points: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each point (rows) on which side of each edge (columns) it is: -1, 0 or 1."""
    across, along = ends - starts, points - starts
    sides: NDArray[np.int64] = np.sign(across[:, 0] * along[..., 1] - across[:, 1] * along[..., 0])
    return sides
