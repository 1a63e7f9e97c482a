"""An opened shard: its columns as places in memory-mapped files, whatever the format."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import DamagedError
from readers.contract.fields import KEY, Field

Keys = NDArray[np.bytes_]


@dataclass(frozen=True)
class ShardFacts:
    """What the pack says a shard must hold; an opener believes its files only where they agree."""

    rows: int
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Column:
    """A stored column: runs of `run_rows` rows that follow each other, each run beginning at one of `starts`."""

    path: Path
    row_dtype: np.dtype[Any]
    row_shape: tuple[int, ...]
    starts: NDArray[np.int64]
    run_rows: int

    @property
    def row_bytes(self) -> int:
        return self.row_dtype.itemsize * int(np.prod(self.row_shape, dtype=np.int64))

    def places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where in the file each of these rows begins."""
        runs, steps = np.divmod(rows, self.run_rows)
        return np.asarray(self.starts[runs] + steps * self.row_bytes)


def whole_column(path: Path, dtype: Any, shape: tuple[int, ...], start: int) -> Column:
    """A column whose rows all follow each other from `start`; `shape` counts the rows first."""
    return Column(path, np.dtype(dtype), shape[1:], np.array([start], np.int64), max(1, shape[0]))


class Shard:
    """The columns of one shard. Files are mapped when first read; nothing that leaves here is a view of a map."""

    def __init__(
        self, path: Path, facts: ShardFacts, columns: Mapping[str, Column], keys: Callable[[], Keys] | None = None
    ) -> None:
        self.path = path
        self.facts = facts
        self._columns = columns
        self._load_keys = keys
        self._keys: Keys | None = None
        self._maps: dict[Path, NDArray[np.uint8]] = {}
        for field in facts.fields:
            self._check(field)

    def read(self, name: str, rows: Sequence[int], out: NDArray[Any], slots: Sequence[int]) -> None:
        """Copy rows of a column into `out`: the n-th of `rows` into `out[slots[n]]`."""
        column = self._columns[name]
        data = self._map(column.path)
        size = column.row_bytes
        flat = out.reshape(len(out), -1).view(np.uint8)
        starts = column.places(np.asarray(rows, np.int64)).tolist()
        for slot, start in zip(slots, starts, strict=True):
            flat[slot] = data[start : start + size]

    def key(self, row: int) -> str:
        """The key of a row."""
        if self._keys is None:
            keys = self._load_keys() if self._load_keys is not None else self._stored_keys()
            if len(keys) != self.facts.rows:
                raise DamagedError(f"{self.path}: {len(keys)} keys for {self.facts.rows} rows")
            self._keys = keys
        return bytes(self._keys[row]).decode(errors="replace")

    def _stored_keys(self) -> Keys:
        column = self._columns[KEY]
        if column.row_dtype.kind != "S" or column.row_shape or not self._counts(column):
            raise DamagedError(f"{column.path}: its keys are not {self.facts.rows} texts")
        keys = np.empty(self.facts.rows, column.row_dtype)
        every = range(self.facts.rows)
        self.read(KEY, every, keys, every)
        return keys

    def _check(self, field: Field) -> None:
        column = self._columns[field.name]
        if (column.row_dtype, column.row_shape) != (np.dtype(field.dtype), field.shape) or not self._counts(column):
            raise DamagedError(
                f"{column.path}: the pack says {self.facts.rows} rows of {field.dtype} {field.shape} for "
                f"{field.name!r}, the file has {len(column.starts)} runs of {column.run_rows} rows of "
                f"{column.row_dtype.str} {column.row_shape}"
            )

    def _counts(self, column: Column) -> bool:
        """Whether a column has as many rows as it should; of several runs the last may be shorter."""
        runs = len(column.starts)
        if runs == 1:
            return column.run_rows == self.facts.rows
        return (runs - 1) * column.run_rows < self.facts.rows <= runs * column.run_rows

    def _map(self, path: Path) -> NDArray[np.uint8]:
        if path not in self._maps:
            data = map_file(path)
            for column in self._columns.values():
                if column.path == path:
                    _check_bounds(column, self.facts.rows, len(data))
            self._maps[path] = data
        return self._maps[path]


def _check_bounds(column: Column, rows: int, size: int) -> None:
    """No row may begin before the file or end after it: reading past a map kills the process."""
    runs = np.clip(rows - np.arange(len(column.starts)) * column.run_rows, 0, column.run_rows)
    if (column.starts < 0).any() or (column.starts + runs * column.row_bytes > size).any():
        raise DamagedError(f"{column.path}: {size} bytes are too few for its {rows} rows; was it cut short?")


def map_file(path: Path) -> NDArray[np.uint8]:
    """The bytes of a file, mapped read-only; the map lives as long as the array."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size == 0:
            return np.empty(0, np.uint8)
        if sys.version_info >= (3, 13):
            mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ, trackfd=False)
        else:
            mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    return np.frombuffer(mapped, np.uint8)


@contextmanager
def damage_at(path: Path, *kinds: type[Exception]) -> Iterator[None]:
    """Turn what a format's library raises about a broken file into our error, in one place."""
    caught: tuple[type[Exception], ...] = (OSError, *kinds)
    try:
        yield
    except caught as error:
        raise DamagedError(f"{path}: cannot be opened ({error})") from error
