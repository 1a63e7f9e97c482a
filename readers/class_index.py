"""`ClassIndex`: which rows of a pack have which class, and in which cells, as the packer has counted them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readers.contract.cells import MOST_CELLS_BYTES, CellFacts, ClassCells, cells_path, check_digest, is_counted
from readers.contract.errors import RequestError
from readers.contract.fields import LABEL, Field
from readers.contract.files import plain_file
from readers.contract.kernels import kernel
from readers.contract.mapped import map_file
from readers.formats.column import MissingError, damage_at
from readers.pack import Pack
from readers.permutation import Numbers
from readers.row_ranges import RowRanges

KERNEL = kernel("readers.contract.cells_kernel")
MOST_OPEN = 512
"""Files of cells that are mapped at the same time."""
MOST_NAMED = 20


class CellsOfRow(NamedTuple):
    """A row of a shard, and the cells of that shard."""

    cells: ClassCells
    row: int

    @property
    def classes(self) -> NDArray[np.uint16]:
        """The classes that occur in the row."""
        return self.cells.classes[self.cells.pairs(self.row)]

    @property
    def has_foreground(self) -> bool:
        """True if the row has a class besides class 0."""
        classes = self.classes
        return len(classes) > 0 and int(classes[-1]) > 0

    def of_class(self, number: int) -> tuple[NDArray[np.uint32], NDArray[np.uint16]]:
        """Return the cells of the row that have a class, and its pixels in each."""
        pairs = self.cells.pairs(self.row)
        entries = self.cells.entries(pairs.start + int(self.cells.classes[pairs].searchsorted(number)))
        return self.cells.cells[entries], self.cells.counts[entries]

    def largest(self, weights: NDArray[np.uint32]) -> tuple[int, int]:
        """Return the weighted pixels of the class that has most, and of all classes, by weights of the cells."""
        pairs, ends = self.cells.pairs(self.row), self.cells.pair_ends
        if pairs.start == pairs.stop:
            return 0, 0
        first = int(ends[pairs.start - 1]) if pairs.start else 0
        entries = slice(first, int(ends[pairs.stop - 1]))
        cells, counts = self.cells.cells[entries], self.cells.counts[entries]
        if KERNEL is not None:
            largest: tuple[int, int] = KERNEL.largest(cells, counts, ends[pairs].view("<i8"), weights, first)
            return largest
        pixels = counts * weights.astype(np.uint64).take(cells, mode="clip")
        starts = np.concatenate([[0], ends[pairs.start : pairs.stop - 1].astype(np.int64) - first])
        sums = np.add.reduceat(pixels, starts)
        return int(sums.max()), int(sums.sum())


class ClassRows(NamedTuple):
    """The rows of a data set that have a class."""

    rows: NDArray[np.uint32] | Numbers
    """In the pack; 4 bytes for each if that is enough."""
    ends: NDArray[np.uint64]
    """For each row the pixels of the class in this row and all before it."""

    def at(self, pixels: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Return the places of the rows that have these of all pixels."""
        return self.ends.searchsorted(pixels, "right")


class ClassIndex:
    """The cells of one field of a pack. Files are mapped when first used. Threads may share it."""

    def __init__(self, pack: Pack, field: Field) -> None:
        self.pack, self.field = pack, field
        self.cells = lru_cache(MOST_OPEN)(self._checked)
        """The cells of a shard, by its number; None if its rows lack the field."""

    @classmethod
    def of(cls, pack: Pack) -> ClassIndex:
        """Return the index of the label of a pack: the field `label`, or else the first one with exclusive classes."""
        fields = {field.name: field for field in pack.manifest.fields if is_counted(field)}
        if not fields:
            raise RequestError(f"{pack.name}: no field gives each pixel one class")
        return cls(pack, fields.get(LABEL) or next(iter(fields.values())))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the classes."""
        assert self.field.classes is not None, "the kind has a table"
        return tuple(self.field.classes.names)

    def number(self, name: str | int) -> int:
        """Return the number of a class that a user named."""
        if isinstance(name, str) and name in self.names:
            return self.names.index(name)
        if isinstance(name, int) and not isinstance(name, bool) and 0 <= name < len(self.names):
            return name
        listed = ", ".join(map(repr, self.names[:MOST_NAMED])) + (", …" if len(self.names) > MOST_NAMED else "")
        raise RequestError(f"{self.pack.name}: there is no class {name!r}: expected a number, or one of {listed}")

    def of_row(self, row: int) -> CellsOfRow | None:
        """Return the cells of a row of the pack; None if it lacks the field."""
        shard, inside = self.pack.table.locate(row)
        cells = self.cells(shard)
        return None if cells is None else CellsOfRow(cells, inside)

    def of_rows(self, rows: Sequence[int]) -> list[CellsOfRow | None]:
        """Return the same for many rows."""
        located = ((self.cells(shard), row) for shard, row in self.pack.table.locate_all(rows))
        return [None if cells is None else CellsOfRow(cells, row) for cells, row in located]

    def rows(self, ranges: RowRanges, classes: Collection[int]) -> dict[int, ClassRows]:
        """Return the rows of a data set that have each of these classes."""
        rows, numbers, pixels = self._pairs(ranges, np.array(sorted(classes), np.uint16))
        order = np.argsort(numbers, kind="stable")
        rows, numbers, pixels = rows[order], numbers[order], pixels[order]
        ends = {number: numbers.searchsorted(number, "right") for number in classes}
        starts = {number: numbers.searchsorted(number, "left") for number in classes}
        return {
            number: ClassRows(rows[starts[number] : ends[number]], np.cumsum(pixels[starts[number] : ends[number]]))
            for number in classes
        }

    def pairs(self, ranges: RowRanges) -> tuple[NDArray[Any], NDArray[np.uint16]]:
        """Return all pairs of a row of a data set and a class that occurs in it."""
        rows, classes, _ = self._pairs(ranges, np.arange(len(self.names), dtype=np.uint16))
        return rows, classes

    def _pairs(
        self, ranges: RowRanges, numbers: NDArray[np.uint16]
    ) -> tuple[NDArray[Any], NDArray[np.uint16], NDArray[np.uint64]]:
        """Return the rows, the classes and the pixels of the pairs of these classes."""
        dtype = np.uint32 if self.pack.manifest.rows < 1 << 32 else np.int64
        parts = [(np.zeros(0, dtype), np.zeros(0, np.uint16), np.zeros(0, np.uint64))]
        for part in ranges.ranges:
            first, last = self.pack.table.shards_at([part.start, part.stop - 1])
            for shard in range(first, last + 1):
                cells, before = self._opened(shard), self.pack.table.rows_before(shard)
                if cells is None:
                    continue
                ends = cells.row_ends.astype(np.int64)
                rows = np.repeat(np.arange(before, before + len(ends)), np.diff(ends, prepend=0))
                mine = (rows >= part.start) & (rows < part.stop) & np.isin(cells.classes, numbers)
                parts.append((rows[mine].astype(dtype), cells.classes[mine], cells.pixels[mine]))
        rows, classes, pixels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return rows, classes, pixels

    def _checked(self, shard: int) -> ClassCells | None:
        cells = self._opened(shard)
        if cells is not None:
            cells.check_cells(self._path(shard))
        return cells

    def _path(self, shard: int) -> Path:
        return cells_path(self.pack.root, self.pack.stem(shard).name, self.field.name)

    def _opened(self, shard: int) -> ClassCells | None:
        """Open the cells of a shard, and check all but the cells."""
        if self.field not in self.pack.fields_of(shard) or not self.pack.table.rows(shard):
            return None
        path = self._path(shard)
        try:
            with damage_at(path):
                content = self._content(path)
        except MissingError as error:
            raise RequestError(
                f"{self.pack.name}: its classes were not counted when it was built; packer index {self.pack.name} "
                f"does it now ({path.name} is missing)"
            ) from error
        return ClassCells.of_bytes(content, path, CellFacts.of(self.field, self.pack.table.rows(shard)))

    def _content(self, path: Path) -> NDArray[np.uint8]:
        """Return a file, mapped; of a pack in a store, its bytes."""
        if self.pack.cached is not None:
            data = self.pack.cached.read(path.relative_to(self.pack.root).as_posix(), MOST_CELLS_BYTES)
            check_digest(data, path)
            return np.frombuffer(data, np.uint8)
        mapped = map_file(plain_file(self.pack.root, path))
        return np.fromfile(path, np.uint8) if mapped is None else mapped
