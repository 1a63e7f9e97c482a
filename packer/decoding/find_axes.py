"""Find the axes of a volume that go along the axes of another, or in named directions."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from packer.decoding.grid import Grid, compared, matrix_of, other_corner, turned
from packer.decoding.turn import UNTURNED, Turn
from packer.errors import BadPair

_LETTERS = ("LR", "PA", "IS")
"""The directions of x, y and z: to the left, the back and the feet, and against these."""


@lru_cache(maxsize=1024)
def axes_like(grid: Grid | None, other: Grid | None) -> Turn:
    """Return the axes of the second volume that make its grid the grid of the first.

    If none do, it is not turned. A volume without a place is not turned either.
    """
    matrices = None if grid is None or other is None else compared(grid, other)
    if grid is None or other is None or matrices is None or other_corner(*matrices, grid.sides) is None:
        return UNTURNED
    axes = _parallel(*matrices)
    if axes is None or axes.of(other.sides) != grid.sides:
        return UNTURNED
    theirs = compared(grid, turned(other, axes))
    return axes if theirs is not None and other_corner(*theirs, grid.sides) is None else UNTURNED


def _parallel(first: NDArray[np.float64], second: NDArray[np.float64]) -> Turn | None:
    """Return the axes of the second volume that go along the axes of the first; None if none do."""
    try:
        steps = np.rint(np.linalg.solve(first[:, :-1], second[:, :-1]))
    except np.linalg.LinAlgError:
        return None
    if (np.abs(steps).sum(0) != 1).any() or (np.abs(steps).sum(1) != 1).any():
        return None
    return Turn(tuple(np.abs(steps).argmax(1).tolist()), tuple((steps.sum(1) < 0).tolist()))


@lru_cache(maxsize=1024)
def axes_toward(grid: Grid | None, code: str) -> Turn:
    """Return the axes of a volume that are nearest to directions such as `RAS`, by the rule of nibabel.

    Raise BadPair if its header does not say where its axes point.
    """
    directions = None if grid is None or not grid.transform else _directions(matrix_of(grid.transform)[:, :-1])
    if directions is None:
        raise BadPair(f"has no three directions in its header, so --orient {code} cannot turn it; write its affine")
    order = tuple(directions.order.index(_coordinate(letter)) for letter in code)
    goes_up = [letter in "RAS" for letter in code]
    return Turn(order, tuple(directions.backwards[axis] == up for axis, up in zip(order, goes_up, strict=True)))


def _coordinate(letter: str) -> int:
    """Return the number of the coordinate of a direction."""
    return next(world for world, pair in enumerate(_LETTERS) if letter in pair)


def _directions(steps: NDArray[np.float64]) -> Turn | None:
    """Return for each axis the coordinate of the world that it is nearest to, and whether it goes backwards along it.

    None if the axes do not span the space.
    """
    lengths = np.sqrt((steps**2).sum(0))
    if not lengths.all():  # the smallest numbers have no square
        return None
    left, sizes, right = np.linalg.svd(steps / lengths)
    if not sizes.min() > sizes.max() * len(steps) * np.finfo(np.float64).eps:
        return None
    rotation = left @ right  # the nearest one without shears
    order, backwards = [0, 0, 0], [False, False, False]
    for axis in np.argsort(np.min(-(rotation**2), axis=0), kind="stable").tolist():
        world = int(np.abs(rotation[:, axis]).argmax())
        order[axis], backwards[axis] = world, bool(rotation[world, axis] < 0)
        rotation[world] = 0
    return Turn(tuple(order), tuple(backwards))
