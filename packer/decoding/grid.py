"""`Grid`: where the pixels of a file are in the world, as its header says. An image and its label must agree."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair
from readers.contract.place import GEO, System

NOISE = 0.1
"""A corner of two pictures may differ by this part of a pixel: transforms are rounded when a file is written."""
MOST = 1e15
"""No number of a transform is larger: such a header is damaged, and says nothing."""
GridTransform = tuple[float, ...]


_TURNED = {
    2: ((-1, 0, 1, 0), (0, 1, 0, 0)),
    3: ((-1, 0, 1, 0), (0, -1, 0, 1)),
    4: ((1, 0, 0, 0), (0, -1, 0, 1)),
    5: ((0, 1, 0, 0), (1, 0, 0, 0)),
    6: ((0, 1, 0, 0), (-1, 0, 0, 1)),
    7: ((0, -1, 1, 0), (-1, 0, 0, 1)),
    8: ((0, -1, 1, 0), (1, 0, 0, 0)),
}
"""For each orientation of EXIF the column and the row of the file: by the upright column and row, and the file's width
and height to add."""


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


def turned(grid: Grid, orientation: int) -> Grid:
    """Return the grid of the upright picture, if the file has it turned as EXIF says."""
    if orientation not in _TURNED:
        return grid
    width, height = grid.sides
    column, row = _TURNED[orientation]
    transforms = []
    for name, numbers in grid.transforms:
        lines: list[float] = []
        for a, b, offset in np.reshape(np.array(numbers), (2, 3)).tolist():
            lines.append(a * column[0] + b * row[0])
            lines.append(a * column[1] + b * row[1])
            lines.append(offset + a * (column[2] * width + column[3] * height) + b * (row[2] * width + row[3] * height))
        transforms.append((name, tuple(lines)))
    sides = (height, width) if orientation > 4 else (width, height)
    return grid._replace(sides=sides, transforms=tuple(transforms))


def finer(grid: Grid, factors: tuple[int, int]) -> Grid:
    """Return the grid of a picture whose lines and columns are repeated as often as these factors say."""
    down, right = factors
    transforms = tuple(
        (name, tuple(number / (right, down, 1)[index % 3] for index, number in enumerate(numbers)))
        for name, numbers in grid.transforms
    )
    return grid._replace(sides=(grid.sides[0] * right, grid.sides[1] * down), transforms=transforms)


def check_same_grid(image: str, grid: Grid | None, label: str, other: Grid | None, noun: str) -> None:
    """Refuse two files whose headers say that their pixels are at other places. A file without a place is at any."""
    if grid is None or other is None:
        return
    mine, theirs = grid.system.crs, other.system.crs
    if mine and theirs and mine != theirs:
        raise BadPair(f"{image} is in {mine}, its {noun} {label} in {theirs}; bring one to the grid of the other")
    ours, others = dict(grid.transforms), dict(other.transforms)
    if not ours or not others or len(grid.sides) != len(other.sides):
        return
    shared = next((name for name in ours if name in others), None)
    if shared is None:
        first, second = grid.transform, other.transform
    else:
        first, second = ours[shared], others[shared]
    corner = _other_corner(_matrix(first), _matrix(second), grid.sides)
    if corner is not None:
        index, at, other_at = corner
        raise BadPair(
            f"{image} has its pixel {index} at {at}, its {noun} {label} at {other_at}, by their headers; bring one to "
            "the grid of the other, or remove the place that is wrong"
        )


def usable(rows: GridTransform, axes: int) -> bool:
    """Return whether a transform has finite numbers, and no axis along which all pixels are at one point."""
    if not rows or not (np.abs(rows) < MOST).all():
        return False
    return bool((np.reshape(rows, (-1, axes + 1))[:, :axes] != 0).any(0).all())


def _matrix(rows: GridTransform) -> NDArray[np.float64]:
    return np.reshape(np.array(rows, np.float64), (3, 4) if len(rows) == 12 else (2, 3))


def _other_corner(
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
