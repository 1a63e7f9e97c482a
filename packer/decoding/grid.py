"""`Grid`: where the pixels of a file are in the world, as its header says. An image and its label should agree."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from packer.decoding.rules import CHECK
from packer.decoding.turn import Turn
from packer.errors import BadPair
from readers.contract.place import GEO, NIFTI, System

NOISE = 0.1
"""A corner of two pictures may differ by this part of a pixel: transforms are rounded when a file is written."""
MOST = 1e15
"""No number of a transform is larger: such a header is damaged, and says nothing."""
GridTransform = tuple[float, ...]
EXIF = {
    2: Turn((0, 1), (True, False)),
    3: Turn((0, 1), (True, True)),
    4: Turn((0, 1), (False, True)),
    5: Turn((1, 0), (False, False)),
    6: Turn((1, 0), (True, False)),
    7: Turn((1, 0), (True, True)),
    8: Turn((1, 0), (False, True)),
}
"""The axes of a file as the sides of the upright picture, for each orientation of EXIF."""


class Grid(NamedTuple):
    """The transforms of a header by their names, the one that counts first, and the coordinate system.

    A transform has the rows of a matrix: the rows of two or three coordinates, each with a number for each axis of the
    file and one to add. `sides` are the pixels along these axes.
    """

    sides: tuple[int, ...]
    transforms: tuple[tuple[str, GridTransform], ...] = ()
    system: System = System(GEO)
    assumed: GridTransform = ()
    """The transform that libraries assume if the header names none. It is not compared."""

    @property
    def transform(self) -> GridTransform:
        """The transform that counts; empty if the header says nothing."""
        return next((numbers for _, numbers in self.transforms), self.assumed)


@lru_cache(maxsize=1024)
def turned(grid: Grid, axes: Turn) -> Grid:
    """Return the grid of a row that has the axes of its file as these sides."""
    last = [side - (grid.system.kind == NIFTI) for side in grid.sides]  # of maps a pixel is named by its corner
    steps = [-1.0 if back else 1.0 for back in axes.backwards]
    starts = [side if back else 0.0 for side, back in zip(axes.of(last), axes.backwards, strict=True)]

    def moved(numbers: GridTransform) -> GridTransform:
        if not numbers:
            return ()
        matrix = matrix_of(numbers)
        linear, offset = matrix[:, list(axes.order)], matrix[:, -1]
        rows = np.column_stack([linear * steps, offset + linear @ starts]) + 0.0  # no zero is negative
        return tuple(rows.ravel().tolist())

    transforms = tuple((name, moved(numbers)) for name, numbers in grid.transforms)
    return Grid(axes.of(grid.sides), transforms, grid.system, moved(grid.assumed))


def finer(grid: Grid, factors: tuple[int, int]) -> Grid:
    """Return the grid of a picture whose lines and columns are repeated as often as these factors say."""
    down, right = factors
    transforms = tuple(
        (name, tuple(number / (right, down, 1)[index % 3] for index, number in enumerate(numbers)))
        for name, numbers in grid.transforms
    )
    return grid._replace(sides=(grid.sides[0] * right, grid.sides[1] * down), transforms=transforms)


def check_place(elsewhere: str, place: str) -> None:
    """Refuse a row with a field at another place, which these words describe, unless places are ignored."""
    if elsewhere and place == CHECK:
        raise BadPair(f"{elsewhere}; bring one to the grid of the other, or pack them nevertheless: --place ignore")


def other_place(image: str, grid: Grid | None, label: str, other: Grid | None, noun: str) -> str:
    """Return in words where two files are, if their headers name other places. A file without a place is at any."""
    if grid is None or other is None:
        return ""
    mine, theirs = grid.system.crs, other.system.crs
    if mine and theirs and mine != theirs:
        return f"{image} is in {mine}, its {noun} {label} in {theirs}"
    matrices = compared(grid, other)
    corner = None if matrices is None else other_corner(*matrices, grid.sides)
    if corner is None:
        return ""
    index, at, other_at = corner
    return f"{image} has its pixel {index} at {at}, its {noun} {label} at {other_at}, by their headers"


def usable(rows: GridTransform, axes: int) -> bool:
    """Return whether a transform has finite numbers, and no axis along which all pixels are at one point."""
    if not rows or not (np.abs(rows) < MOST).all():
        return False
    return bool((np.reshape(rows, (-1, axes + 1))[:, :axes] != 0).any(0).all())


def compared(grid: Grid, other: Grid) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the transforms of two files that are compared: two of one name, or else the ones that count."""
    ours, others = dict(grid.transforms), dict(other.transforms)
    if not ours or not others or len(grid.sides) != len(other.sides):
        return None
    shared = next((name for name in ours if name in others), None)
    first, second = (grid.transform, other.transform) if shared is None else (ours[shared], others[shared])
    return matrix_of(first), matrix_of(second)


def matrix_of(rows: GridTransform) -> NDArray[np.float64]:
    """Return a transform as rows of coordinates."""
    return np.reshape(np.array(rows, np.float64), (3, 4) if len(rows) == 12 else (2, 3))


def other_corner(
    first: NDArray[np.float64], second: NDArray[np.float64], sides: tuple[int, ...]
) -> tuple[str, str, str] | None:
    """Return the first corner that is at two points, and both; None if all are nearly at the same."""
    pixel = min(np.sqrt((matrix[:, :-1] ** 2).sum(0)).min() for matrix in (first, second))
    for corner in product(*((0, side - 1) for side in sides)):
        here, theirs = (matrix @ np.array([*corner, 1.0]) for matrix in (first, second))
        if np.abs(here - theirs).max() > NOISE * pixel:
            return str(corner), _text(here), _text(theirs)
    return None


def _text(point: NDArray[np.float64]) -> str:
    return f"({', '.join(f'{number:.10g}' for number in point.tolist())})"
