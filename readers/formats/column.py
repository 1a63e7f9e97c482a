"""`Column`: a stored column as positions in a mapped file. Each format finds its columns, and `Shard` reads them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import DamagedError, ReadError
from readers.contract.fields import Field
from readers.formats.contents import contents

_PLAIN = re.compile(r"[|<][iufS][1-9][0-9]{0,8}")


@dataclass(frozen=True)
class ShardFacts:
    """The rows and fields that a shard must have according to the pack; other shards are refused.

    Only the fields named in `only` are read, by default all: columns of others are neither opened nor checked.
    """

    rows: int
    fields: tuple[Field, ...]
    only: tuple[str, ...] | None = None

    @property
    def read(self) -> tuple[Field, ...]:
        """The fields that are read."""
        return tuple(field for field in self.fields if self.only is None or field.name in self.only)

    @property
    def native(self) -> bool:
        """True if each row has a size of its own."""
        return any(field.native for field in self.fields)

    @property
    def sides(self) -> int:
        """The number of sides of a row: 3 of volumes."""
        return len(self.fields[0].sides)


@dataclass(frozen=True)
class Column:
    """A stored column: runs of `run_rows` consecutive rows. The runs begin at `starts`.

    Rows of a flat column are runs of one row each; `lengths` are their sizes in bytes.
    """

    path: Path
    row_dtype: np.dtype[Any]
    row_shape: tuple[int | None, ...]
    starts: NDArray[np.int64]
    run_rows: int
    lengths: NDArray[np.int64] | None = None

    @cached_property
    def begin(self) -> int | None:
        """The start of the first row, if all others follow it."""
        return int(self.starts[0]) if len(self.starts) == 1 and self.lengths is None else None

    @cached_property
    def row_bytes(self) -> int:
        """The bytes of every row of a column that is not flat."""
        return self.row_dtype.itemsize * math.prod(side for side in self.row_shape if side is not None)

    def offsets(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where in the file each of these rows begins."""
        if self.lengths is not None:
            return np.asarray(self.starts[rows])
        runs, steps = np.divmod(rows, self.run_rows)
        return np.asarray(self.starts[runs] + steps * self.row_bytes)

    def starts_of(self, rows: Sequence[int]) -> list[int]:
        """Return where each of a few rows begins, as plain numbers."""
        begin, size = self.begin, self.row_bytes
        if begin is not None:
            return [begin + row * size for row in rows]
        starts: list[int] = self.offsets(np.asarray(rows, np.int64)).tolist()
        return starts

    def holds(self, rows: int) -> bool:
        """Return whether the column has this many rows; the last of several runs may be shorter."""
        runs = len(self.starts)
        if runs == 1:
            return self.run_rows == rows
        return (runs - 1) * self.run_rows < rows <= runs * self.run_rows

    def check_bounds(self, rows: int, size: int) -> None:
        """Refuse rows that begin before the file or end after it: reading past a map kills the process."""
        if not self._is_within(rows, size):
            raise DamagedError(f"{self.path}: {size} bytes are too few for its {rows} rows; was it cut short?")

    def _is_within(self, rows: int, size: int) -> bool:
        lengths = self.lengths
        needed = rows * self.row_bytes if lengths is None else int(lengths.sum())
        if needed > size:  # the products below might overflow
            return False
        if lengths is None:
            if self.begin is not None:
                return 0 <= self.begin <= size - needed
            lengths = np.clip(rows - np.arange(len(self.starts)) * self.run_rows, 0, self.run_rows) * self.row_bytes
        return bool((self.starts >= 0).all() and (self.starts <= size - lengths).all())


def plain_dtype(text: str) -> np.dtype[Any]:
    """Return the dtype of plain numbers or byte strings with this name; numpy would also accept names of objects."""
    if not _PLAIN.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a dtype of plain numbers")
    return np.dtype(text)


def whole_column(path: Path, dtype: Any, shape: tuple[int, ...], start: int) -> Column:
    """Return a column whose rows follow each other from `start`; `shape` begins with the number of rows."""
    if not shape:
        raise ValueError("expected rows, found a single number")
    return Column(path, np.dtype(dtype), shape[1:], np.array([start], np.int64), max(1, shape[0]))


def load(column: Column, rows: int, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return all rows of a small column in memory of their own, if it has this dtype and row shape."""
    if (column.row_dtype, column.row_shape) != (np.dtype(dtype), shape) or not column.holds(rows):
        raise DamagedError(
            f"{column.path}: expected {rows} rows of {dtype} {shape}, "
            f"found rows of {column.row_dtype.str} {column.row_shape}"
        )
    return np.frombuffer(_read_all(column, rows), dtype).reshape(rows, *shape)


def load_texts(column: Column, rows: int) -> list[bytes]:
    """Return all rows of a column of byte strings."""
    if column.row_dtype.kind != "S" or column.row_shape or not column.holds(rows):
        raise DamagedError(f"{column.path}: expected {rows} keys as byte strings")
    texts: list[bytes] = np.frombuffer(_read_all(column, rows), column.row_dtype).tolist()
    return texts


def _read_all(column: Column, rows: int) -> bytes:
    """Return all rows of a column that is not flat."""
    size = column.row_bytes
    with damage_at(column.path, ValueError, OverflowError), contents(column.path) as data:
        column.check_bounds(rows, len(data))  # before memory is allocated for them
        runs = zip(column.starts.tolist(), range(0, rows, column.run_rows), strict=True)
        return b"".join(data[start : start + min(column.run_rows, rows - first) * size] for start, first in runs)


class MissingError(DamagedError):
    """A file of the pack is missing. `Pack` knows why."""


@contextmanager
def damage_at(path: Path, *kinds: type[Exception]) -> Iterator[None]:
    """Raise DamagedError for errors that a format's library raises about a broken file."""
    caught: tuple[type[Exception], ...] = (OSError, MemoryError, *kinds)
    try:
        yield
    except ReadError:
        raise
    except FileNotFoundError as error:
        raise MissingError(f"{path}: is missing") from error
    except caught as error:
        raise DamagedError(f"{path}: cannot be opened ({error})") from error
