"""`ClassCells`: which rows of a shard have which class, and in which cells: a mapped file for each shard and label.

FORMAT.md has the layout. Everything in it can be counted again: a pack without these files is whole.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.count_cells import CELL, CELL_PIXELS, RowCells
from readers.contract.errors import DamagedError
from readers.contract.fields import Field
from readers.contract.files import blake3
from readers.contract.kinds import CLASSES
from readers.contract.manifest import CELLS

SUFFIX = ".cells"
MOST_CELLS_BYTES = 1 << 32
"""A file has 6 bytes for each class of each cell of a shard."""
MAGIC, VERSION = b"segcells", 1
_HEAD = struct.Struct("<8sIIQQQ4I32s8x")
DIGEST_BYTES = 32
HEAD_BYTES = _HEAD.size + DIGEST_BYTES
_ARRAYS = (
    ("row_ends", "<u8"),
    ("pixels", "<u8"),
    ("pair_ends", "<u8"),
    ("cells", "<u4"),
    ("counts", "<u2"),
    ("classes", "<u2"),
)


def cells_path(root: Path, stem: str, field: str) -> Path:
    """Return the path of the file of a field of a shard."""
    return root / CELLS / f"{stem}.{field}{SUFFIX}"


def names_of_cells(folder: Path, stem: str) -> list[str]:
    """Return the names of the files of a shard below a folder."""
    return [f"{CELLS}/{path.name}" for path in sorted((folder / CELLS).glob(cells_path(Path(), stem, "*").name))]


def is_counted(field: Field) -> bool:
    """Return whether a field has such files."""
    return field.kind == CLASSES


@dataclass(frozen=True)
class CellFacts:
    """The facts of a shard that its file must fit."""

    field: str
    rows: int
    classes: int
    sides: int

    @classmethod
    def of(cls, field: Field, rows: int) -> CellFacts:
        return cls(field.name, rows, len(field.classes or ()), len(field.sides))

    @property
    def cell(self) -> tuple[int, ...]:
        """The sides of a cell; pictures have a depth of 1."""
        return (1, *CELL[self.sides])[-3:]


@dataclass(frozen=True)
class ClassCells:
    """The pairs of a row and a class that occurs in it, row by row, and the cells of each pair."""

    row_ends: NDArray[np.uint64]
    """For each row the number of pairs of this row and all before it."""
    pixels: NDArray[np.uint64]
    """The pixels of each pair."""
    pair_ends: NDArray[np.uint64]
    """For each pair the number of cells of this pair and all before it."""
    cells: NDArray[np.uint32]
    """The number of each cell in its row."""
    counts: NDArray[np.uint16]
    """The pixels of the class in this cell."""
    classes: NDArray[np.uint16]
    """The class of each pair."""

    @classmethod
    def of_rows(cls, rows: Sequence[RowCells]) -> ClassCells:
        """Join the cells of the rows of a shard."""
        lengths = [len(row.cells) for row in rows]
        nothing = RowCells(np.zeros(0, np.uint16), np.zeros(0, np.uint32), np.zeros(0, np.uint16))
        classes, cells, counts = (np.concatenate(arrays) for arrays in zip(nothing, *rows, strict=True))
        numbers = np.repeat(np.arange(len(rows)), lengths)
        is_other = (classes[1:] != classes[:-1]) | (numbers[1:] != numbers[:-1])
        starts = np.flatnonzero(np.concatenate([np.ones(min(1, len(cells)), np.bool_), is_other]))
        pixels = np.add.reduceat(counts, starts, dtype=np.uint64) if len(starts) else np.zeros(0, np.uint64)
        row_ends = numbers[starts].searchsorted(np.arange(len(rows)), "right")
        pair_ends = np.append(starts[1:], len(cells))[: len(starts)]
        return cls(row_ends.astype("<u8"), pixels, pair_ends.astype("<u8"), cells, counts, classes[starts])

    def to_bytes(self, facts: CellFacts) -> bytes:
        """Return the content of the file."""
        arrays = b"".join(getattr(self, name).astype(dtype, copy=False).tobytes() for name, dtype in _ARRAYS)
        sizes = facts.rows, len(self.classes), len(self.cells)
        head = _HEAD.pack(MAGIC, VERSION, facts.classes, *sizes, *facts.cell, 0, facts.field.encode())
        return b"".join((head, blake3(head + arrays).digest(), arrays))

    @classmethod
    def of_bytes(cls, content: NDArray[np.uint8], path: object, facts: CellFacts) -> ClassCells:
        """Return the content of a file, and check all of it but the cells."""
        arrays = _arrays(content, path, facts)
        opened = cls(**arrays)
        if problem := opened._wrong_pairs(facts):
            raise _damaged(path, problem)
        return opened

    def _wrong_pairs(self, facts: CellFacts) -> str:
        """Return what is wrong with the pairs; nothing if they are as they must be."""
        lengths = _lengths(self.pair_ends)
        if not (_ascend(self.row_ends, len(self.classes)) and _ascend(self.pair_ends, len(self.cells), strictly=True)):
            return "its ends do not ascend to its numbers of pairs and cells"
        if len(self.classes) and int(self.classes.max()) >= facts.classes:
            return f"it has a class beyond the {facts.classes} of its field"
        if not _ascend_within(self.classes, self.row_ends):
            return "the classes of a row do not ascend"
        if (self.pixels < lengths).any() or (self.pixels > lengths * np.uint64(CELL_PIXELS)).any():
            return "a class has more or fewer pixels than its cells can have"
        return ""

    def check_cells(self, path: object) -> None:
        """Raise DamagedError if the cells are not as they must be."""
        starts = (self.pair_ends - _lengths(self.pair_ends)).astype(np.int64)
        sums = np.add.reduceat(self.counts, starts, dtype=np.uint64) if len(starts) else self.pixels
        if not _ascend_within(self.cells, self.pair_ends) or (sums != self.pixels).any() or not self.counts.all():
            raise _damaged(path, "the pixels of its cells do not sum up, or its cells do not ascend")

    def pairs(self, row: int) -> slice:
        """Return which pairs are of a row."""
        return slice(int(self.row_ends[row - 1]) if row else 0, int(self.row_ends[row]))

    def entries(self, pair: int) -> slice:
        """Return which cells are of a pair."""
        return slice(int(self.pair_ends[pair - 1]) if pair else 0, int(self.pair_ends[pair]))

    def row(self, row: int) -> RowCells:
        """Return the cells of a row."""
        pairs = self.pairs(row)
        ends = self.pair_ends[pairs].astype(np.int64)
        first = self.entries(pairs.start).start if len(ends) else 0
        inside = slice(first, int(ends[-1]) if len(ends) else 0)
        classes = np.repeat(self.classes[pairs], np.diff(ends, prepend=first))
        return RowCells(classes, self.cells[inside], self.counts[inside])


def check_digest(content: bytes | memoryview | NDArray[np.uint8], path: object) -> None:
    """Raise DamagedError if a file does not have its own BLAKE3."""
    data = memoryview(content)  # type: ignore[arg-type]
    digest = blake3(data[: _HEAD.size])
    digest.update(data[HEAD_BYTES:])
    if len(data) < HEAD_BYTES or digest.digest() != bytes(data[_HEAD.size : HEAD_BYTES]):
        raise _damaged(path, "its BLAKE3 is not the one in its head")


def _arrays(content: NDArray[np.uint8], path: object, facts: CellFacts) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file that has the size and the facts that are expected."""
    if len(content) < HEAD_BYTES:
        raise _damaged(path, f"it has {len(content)} bytes, and its head {HEAD_BYTES}")
    magic, version, classes, rows, pairs, entries, *cell, zero, name = _HEAD.unpack_from(content.data)
    if (magic, version, zero) != (MAGIC, VERSION, 0):
        raise _damaged(path, "it is not an index of version 1")
    stated = name.rstrip(b"\0"), rows, classes, tuple(cell)
    if stated != (facts.field.encode(), facts.rows, facts.classes, facts.cell):
        raise _damaged(path, "its field, rows, classes or cells do not fit the shard")
    lengths = dict(zip((name for name, _ in _ARRAYS), (rows, pairs, pairs, entries, entries, pairs), strict=True))
    size = HEAD_BYTES + sum(np.dtype(dtype).itemsize * lengths[name] for name, dtype in _ARRAYS)
    if size != len(content):
        raise _damaged(path, f"it has {len(content)} bytes, and its head says {size}")
    arrays, begin = dict[str, NDArray[Any]](), HEAD_BYTES
    for name, dtype in _ARRAYS:
        arrays[name] = np.frombuffer(content, dtype, lengths[name], begin)
        begin += arrays[name].nbytes
    return arrays


def _lengths(ends: NDArray[Any]) -> NDArray[np.uint64]:
    return np.diff(ends, prepend=ends.dtype.type(0))


def _ascend(ends: NDArray[Any], last: int, strictly: bool = False) -> bool:
    """Return whether ends ascend to the last one."""
    if not len(ends):
        return last == 0
    before = np.concatenate([np.zeros(1, ends.dtype), ends[:-1]])
    return int(ends[-1]) == last and bool((ends > before if strictly else ends >= before).all())


def _ascend_within(numbers: NDArray[Any], ends: NDArray[Any]) -> bool:
    """Return whether numbers ascend up to each end."""
    ascends = numbers[1:] > numbers[:-1]
    inner = ends[(ends > 0) & (ends < len(numbers))].astype(np.int64)
    ascends[inner - 1] = True
    return bool(ascends.all())


def _damaged(path: object, problem: str) -> DamagedError:
    return DamagedError(f"{path}: {problem}; packer index writes it again")
