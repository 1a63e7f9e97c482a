"""`Place`: where the pixels of a row are in the world. A receipt has the places of its rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import RequestError
from readers.contract.json_entry import Entry

GEO, NIFTI = "geo", "nifti"
NUMBERS = {GEO: (6,), NIFTI: (9, 12)}
"""The count of numbers of a transform: of a map; of a slice and of a volume."""
MOST_NO_DATA = 40
"""The characters of a number that means no data, as a file writes it."""
MOST_KEYS = 1 << 12
Transform = tuple[float, ...]


class System(NamedTuple):
    """The coordinates of the world. `geo`: the coordinate system of a map. `nifti`: x to the right, y to the front and
    z up, in mm."""

    kind: str
    crs: str = ""
    """The code of a coordinate system, such as `EPSG:32633`; empty if it has none."""
    keys: tuple[int, ...] = ()
    """The GeoKeyDirectory of a GeoTIFF, which says all that is known of the coordinate system."""
    numbers: tuple[float, ...] = ()
    """Its GeoDoubleParams."""
    text: str = ""
    """Its GeoAsciiParams."""


@dataclass(frozen=True)
class Place:
    """The place of the pixels of a stored row in the world.

    `transform` has a line for each coordinate of the world: a number for each side of the row, the last side first, and
    one to add. A map has x and y of the top left corner of the pixel at (column, row), as rasterio's `Affine` has. A
    scan has x, y and z of the centre of the voxel at (column, row, slice), or of the pixel of a slice, as nibabel's
    `affine` has.
    """

    system: System
    transform: Transform
    no_data: str = ""
    """The number that the file names for pixels without data, as the file writes it."""

    @property
    def kind(self) -> str:
        """`geo` or `nifti`."""
        return self.system.kind

    @property
    def crs(self) -> str:
        """The code of the coordinate system of a map, such as `EPSG:32633`; empty if it has none."""
        return self.system.crs

    @property
    def nodata(self) -> float | None:
        """The number for pixels without data; None if the file names none."""
        try:
            return float(self.no_data)
        except ValueError:
            return None

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The lines of the transform."""
        return np.array(self.transform, np.float64).reshape(2 if self.kind == GEO else 3, -1)

    @property
    def affine(self) -> NDArray[np.float64]:
        """The transform as a square matrix: (3, 3) for a map, (4, 4) for a volume. A slice has only one in space."""
        matrix = self.matrix
        if matrix.shape[1] != len(matrix) + 1:
            raise RequestError("a slice of a volume has no affine of its own; take its `matrix`")
        return np.vstack([matrix, [0.0] * len(matrix) + [1.0]])

    @property
    def spacing(self) -> tuple[float, ...]:
        """The distance from a pixel to the next along each side of the row: (row, column) or (slice, row, column)."""
        steps = np.sqrt((self.matrix[:, :-1] ** 2).sum(0))
        return tuple(steps[::-1].tolist())

    def at(self, *index: float) -> tuple[float, ...]:
        """Return the point at an index of the row: `at(row, column)` or `at(slice, row, column)`.

        It is the centre of a voxel, and the top left corner of a pixel of a map; `at(row + 0.5, column + 0.5)` is its
        centre.
        """
        matrix = self.matrix
        if len(index) != matrix.shape[1] - 1:
            raise RequestError(f"expected {matrix.shape[1] - 1} numbers, one for each side, found {len(index)}")
        return tuple((matrix @ np.array([*index[::-1], 1.0])).tolist())

    def part(self, start: Sequence[float], step: Sequence[float] = ()) -> Place:
        """Return the place of a part of the row that begins at `start`, with a pixel for each `step` along each side.

        Steps other than 1 are pixels of another size: their corners stay on the corners of this row.
        """
        matrix = self.matrix
        steps = np.array(tuple(step)[::-1] or (1.0,) * len(start), np.float64)
        begin = np.array(tuple(start)[::-1], np.float64)
        if self.kind == NIFTI:  # centres: the first pixel's corner is half a pixel before
            begin = begin + (steps - 1) / 2
        moved = np.hstack([matrix[:, :-1] * steps, matrix[:, :-1] @ begin[:, None] + matrix[:, -1:]])
        return Place(self.system, tuple(moved.ravel().tolist()), self.no_data)


def places_json(places: Sequence[Place | None]) -> dict[str, Any]:
    """Return the places of the rows of a receipt. Each system is written once."""
    systems = list(dict.fromkeys(place.system for place in places if place is not None))
    numbers = {system: number for number, system in enumerate(systems)}
    rows = [[] if place is None else [numbers[place.system], place.no_data, *place.transform] for place in places]
    return {"systems": [system._asdict() for system in systems], "rows": rows}


def read_places(entry: Entry) -> tuple[Place | None, ...]:
    """Take the places of the rows of a receipt."""
    systems, rows = [_system(system) for system in entry.entries("systems")], entry.lists("rows")
    entry.close()
    if entry.problems:
        return ()
    for number, row in enumerate(rows):
        if row and not _is_place(row, systems):
            entry.problem(f"rows.{number}", "expected the number of a system, a text, and the numbers of a transform")
            return ()
    return tuple(Place(systems[row[0]], tuple(map(float, row[2:])), row[1]) if row else None for row in rows)


def _system(entry: Entry) -> System:
    system = System(
        entry.choice("kind", tuple(NUMBERS)),
        entry.text("crs"),
        entry.wholes("keys"),
        entry.numbers("numbers"),
        entry.text("text"),
    )
    entry.close()
    if max(len(system.crs), len(system.keys), len(system.numbers), len(system.text)) > MOST_KEYS:
        entry.problem("", f"expected at most {MOST_KEYS} keys, numbers and characters")
    if max(system.keys, default=0) >= 1 << 16:
        entry.problem("keys", "expected numbers below 2^16")
    return system


def _is_place(row: list[Any], systems: Sequence[System]) -> bool:
    if len(row) < 3 or type(row[0]) is not int or not 0 <= row[0] < len(systems) or not isinstance(row[1], str):
        return False
    numbers = row[2:]
    return (
        len(row[1]) <= MOST_NO_DATA
        and row[1].isprintable()
        and len(numbers) in NUMBERS[systems[row[0]].kind]
        and all(type(number) in (int, float) and math.isfinite(number) for number in numbers)
    )
