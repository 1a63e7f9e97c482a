"""An opened shard: its columns as places in memory-mapped files, whatever the format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import DamagedError
from readers.contract.fields import KEY, Field
from readers.formats.column import Column, ShardFacts, damage_at, load_texts, map_file
from readers.formats.page_cache import absent, let_go, resident, want
from readers.formats.varying_size import Sizes

SMALL = 16 << 10
"""Rows of fewer bytes are copied together where they can be: the calls cost more than the copies."""

Keys = Sequence[bytes]


class Shard:
    """The columns of one shard. Files are mapped when first read; only `pixels` gives a view of a map away."""

    def __init__(
        self,
        path: Path,
        facts: ShardFacts,
        columns: Mapping[str, Column],
        sizes: Sizes,
        keys: Callable[[], Keys] | None = None,
    ) -> None:
        self.path = path
        self.facts = facts
        self._columns = columns
        self._sizes = sizes
        self._load_keys = keys
        self._keys: Keys | None = None
        self._maps: dict[Path, NDArray[np.uint8]] = {}
        for field in facts.fields:
            self._check(field)
        for one in {column.path for column in columns.values()}:
            with damage_at(one):
                self._check_bounds(one, one.stat().st_size)

    def read(self, name: str, rows: Sequence[int], out: NDArray[Any], slots: Sequence[int]) -> None:
        """Copy rows of a column that is not native into `out`: the n-th of `rows` into `out[slots[n]]`."""
        column = self._columns[name]
        data = self._map(column.path)
        size = column.row_bytes
        flat = out.reshape(len(out), -1).view(np.uint8)
        begin, first = column.begin, slots[0]
        if size < SMALL and begin is not None and slots[-1] - first == len(slots) - 1:
            run = data[begin : begin + column.run_rows * size].reshape(column.run_rows, size)
            places = np.asarray(rows, np.int64)
            np.take(run, places, 0, out=flat[first : first + len(slots)], mode="clip")  # "raise" would copy twice
            return
        for slot, start in zip(slots, column.starts_of(rows), strict=True):
            flat[slot] = data[start : start + size]

    def pixels(self, field: Field, row: int) -> NDArray[Any]:
        """One row of a field, native or not, as it lies in the map: to be copied from, and not to be kept."""
        column = self._columns[field.name]
        shape = field.row_shape(*self.size(row))
        ((start, stop),) = self._spans(field, [row])
        return self._map(column.path)[start:stop].view(column.row_dtype).reshape(shape)

    def row(self, field: Field, row: int) -> NDArray[Any]:
        """One row of a field, native or not, in memory of its own."""
        return self.pixels(field, row).copy()

    def want(self, fields: Sequence[Field], rows: Sequence[int]) -> None:
        """Have these rows read from the disk before they are needed; what a row is made of comes and goes together."""
        first = self._columns[fields[0].name]
        missing = absent(first.path, self._map(first.path), first.starts_of(rows))
        for field in fields if missing else ():
            path = self._columns[field.name].path
            want(self._map(path), self._spans(field, [rows[number] for number in missing]))

    def resident(self, field: Field, rows: Sequence[int]) -> tuple[int, int] | None:
        """How many pages of these rows are in memory, and how many there are; None where the kernel does not tell."""
        path = self._columns[field.name].path
        return resident(path, self._map(path), self._spans(field, rows))

    def let_go(self, fields: Sequence[Field], rows: Sequence[int]) -> None:
        """These rows are not needed again soon."""
        for field in fields:
            path = self._columns[field.name].path
            let_go(path, self._map(path), self._spans(field, rows))

    def _spans(self, field: Field, rows: Sequence[int]) -> list[tuple[int, int]]:
        """Where in their file rows of a field begin and end."""
        column = self._columns[field.name]
        starts = column.starts_of(rows)
        if column.lengths is None:
            return [(start, start + column.row_bytes) for start in starts]
        lengths = column.lengths[np.asarray(rows, np.int64)].tolist()
        return [(start, start + length) for start, length in zip(starts, lengths, strict=True)]

    def size(self, row: int) -> tuple[int, int]:
        """Height and width of a row."""
        return self._sizes[row]

    def key(self, row: int) -> str:
        """The key of a row."""
        if self._keys is None:
            keys = self._load_keys() if self._load_keys else load_texts(self._columns[KEY], self.facts.rows)
            if len(keys) != self.facts.rows:
                raise DamagedError(f"{self.path}: {len(keys)} keys for {self.facts.rows} rows")
            self._keys = keys
        return self._keys[row].decode(errors="replace")

    def _check(self, field: Field) -> None:
        column = self._columns[field.name]
        found = column.row_dtype, column.row_shape
        if found != (np.dtype(field.dtype), field.shape) or not column.holds(self.facts.rows):
            raise DamagedError(
                f"{column.path}: the pack says {self.facts.rows} rows of {field.dtype} {field.shape} for "
                f"{field.name!r}, the file has {len(column.starts)} runs of {column.run_rows} rows of "
                f"{column.row_dtype.str} {column.row_shape}"
            )

    def _map(self, path: Path) -> NDArray[np.uint8]:
        if path not in self._maps:
            data = map_file(path)
            self._check_bounds(path, len(data))
            self._maps[path] = data
        return self._maps[path]

    def _check_bounds(self, path: Path, size: int) -> None:
        """Before memory is taken for a row: it must be in the file."""
        for column in self._columns.values():
            if column.path == path:
                column.check_bounds(self.facts.rows, size)
