"""`Shard`: an opened shard of any format, read as columns of memory-mapped files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import DamagedError
from readers.contract.fields import KEY, Field, Sides
from readers.contract.kernels import kernel
from readers.contract.mapped import map_file
from readers.contract.slices import spans_of_lines
from readers.contract.tile_grid import Area, index_of, shape_of
from readers.formats.column import Column, MissingError, ShardFacts, damage_at, load_texts
from readers.formats.contents import read_spans
from readers.formats.page_cache import absent, drop, prefetch, resident
from readers.formats.row_sizes import RowSizes
from readers.formats.tiled_rows import check_tiles, grid_of, spans_of_tiles, unpack_part, unpack_row

KERNEL = kernel("readers.formats.gather_kernel")
SMALL = 16 << 10
"""Smaller rows are copied together where possible: the calls cost more than the copies."""

Keys = Sequence[bytes]


class Shard:
    """The columns of one shard that are read. Files are mapped when first used; only `pixels` gives a view of a map.

    Where the file system refuses maps, rows are read into memory of their own, and then taken as if it were the map.
    """

    def __init__(
        self,
        path: Path,
        facts: ShardFacts,
        columns: Mapping[str, Column],
        sizes: RowSizes,
        keys: Callable[[], Keys] | None = None,
    ) -> None:
        self.path = path
        self.facts = facts
        self._columns = columns
        self._sizes = sizes
        self._load_keys = keys
        self._keys: Keys | None = None
        self._maps: dict[Path, NDArray[np.uint8] | None] = {}
        self.explain: Callable[[MissingError], DamagedError] = lambda missing: missing
        """Returns the error to raise where a file of the shard has been deleted since it was opened."""
        for field in facts.read:
            self._check(field)
        for file in {column.path for column in columns.values()}:
            with damage_at(file):
                self._check_bounds(file, file.stat().st_size)

    def has(self, name: str) -> bool:
        """Return whether the shard has the column, and it is read."""
        return name in self._columns

    def located(self, name: str, rows: Sequence[int]) -> tuple[NDArray[np.uint8], list[int]]:
        """Return memory with these rows of a column, its mapped file, and where in it each of them begins."""
        column = self._columns[name]
        data = self._map(column.path)
        if data is None:
            return self._read(column, rows)
        return data, column.starts_of(rows)

    def position(self, name: str, row: int) -> tuple[Path, int, int]:
        """Return the file of a row of a column, and where in it the row begins and ends."""
        column = self._columns[name]
        ((start, stop),) = self._spans(column, [row])
        return column.path, start, stop

    def copy(self, name: str, rows: Sequence[int], flat: NDArray[np.uint8], targets: Sequence[int]) -> None:
        """Copy rows of a column as bytes: the n-th of `rows` into `flat[targets[n]]`, where targets ascend."""
        column = self._columns[name]
        size, begin, first = column.row_bytes, column.begin, targets[0]
        data, starts = self.located(name, rows)
        mapped = data is self._maps[column.path]
        if mapped and size < SMALL and begin is not None and targets[-1] - first == len(targets) - 1:
            run = data[begin : begin + column.run_rows * size].reshape(column.run_rows, size)
            indices = np.asarray(rows, np.int64)
            np.take(run, indices, 0, out=flat[first : first + len(targets)], mode="clip")  # "raise" would copy twice
            return
        for target, start in zip(targets, starts, strict=True):
            flat[target] = data[start : start + size]

    def pixels(self, field: Field, row: int) -> NDArray[Any]:
        """Return one row of a field, native or not: a view of the map, or an encoded row unpacked. Copy from it, do not
        keep it."""
        return self.numbers(field, row, self.stored(field, row))

    def stored(self, field: Field, row: int) -> NDArray[np.uint8]:
        """Return a view of the stored bytes of a row in the map: copy from it, do not keep it."""
        column = self._columns[field.name]
        data = self._map(column.path)
        if data is None:
            return self.read_stored(field, row)
        ((start, stop),) = self._spans(column, [row])
        return data[start:stop]

    def numbers(self, field: Field, row: int, stored: NDArray[np.uint8]) -> NDArray[Any]:
        """Return the numbers of a row whose stored bytes these are."""
        shape = field.row_shape(*self.size(row))
        if not field.is_encoded:
            return stored.view(field.dtype).reshape(shape)
        with self.naming(row):
            if field.is_tiled:
                check_tiles(field, stored, shape)
            numbers = np.empty(shape, field.dtype)
            unpack_row(field, stored, numbers)
        return numbers

    def unpack(self, field: Field, row: int, out: NDArray[Any]) -> None:
        """Write an encoded row into a contiguous array of its shape."""
        with self.naming(row):
            unpack_row(field, self.stored(field, row), out)

    def window(self, field: Field, row: int, part: Area) -> NDArray[Any]:
        """Return a part of a row of a field. In a row in tiles, only the tiles that it touches are read; in a JPEG row
        with restart markers, only what it touches is decoded. A part of a raw row is a view of the map: copy from it,
        do not keep it."""
        if not (field.is_tiled or field.is_jpeg):
            return self.pixels(field, row)[index_of(part)]
        with self.naming(row):
            out = np.empty((*field.planes, *shape_of(part)), field.dtype)
        self.unpack_window(field, row, part, out)
        return out

    def unpack_window(self, field: Field, row: int, part: Area, out: NDArray[Any]) -> None:
        """Write a part of a row in tiles, or of a JPEG row, into an array of its shape."""
        with self.naming(row):
            unpack_part(field, self.stored(field, row), field.row_shape(*self.size(row)), part, out)

    @contextmanager
    def naming(self, row: int) -> Iterator[None]:
        """Put the name of a row before the message of damage in it."""
        try:
            yield
        except MemoryError:
            raise DamagedError(f"{self.path}: the row {self.key(row)!r} has more numbers than fit in memory") from None
        except DamagedError as error:
            raise DamagedError(f"{self.path}: the row {self.key(row)!r}: {error}") from None

    def row(self, field: Field, row: int) -> NDArray[Any]:
        """Return one row of a field, native or not, in memory of its own."""
        return self.pixels(field, row).copy()

    def read(self, field: Field, row: int) -> NDArray[Any]:
        """Return one row of a field as `row` does, but read it: a map of a file that was cut short ends the process."""
        return self.numbers(field, row, self.read_stored(field, row))

    def read_stored(self, field: Field, row: int) -> NDArray[np.uint8]:
        """Return the stored bytes of a row in memory of their own."""
        return self._read(self._columns[field.name], [row])[0]

    def _read(self, column: Column, rows: Sequence[int]) -> tuple[NDArray[np.uint8], list[int]]:
        """Return these rows of a column in memory of their own, and where in it each begins."""
        try:
            with damage_at(column.path):
                return read_spans(column.path, self._spans(column, rows))
        except MissingError as missing:
            raise self.explain(missing) from missing

    def prefetch_parts(self, field: Field, parts: Sequence[tuple[int, Area]]) -> None:
        """Ask the kernel to read the tiles that parts of rows touch from the disk, if they are mapped. Their tables are
        read at once."""
        column, spans = self._columns[field.name], self._spans_of_parts(field, parts)
        data = self._map(column.path)
        if data is not None:
            missing = absent(column.path, data, [start for start, _ in spans])
            prefetch(data, [spans[number] for number in missing])

    def drop_parts(self, field: Field, parts: Sequence[tuple[int, Area]]) -> None:
        """Remove the tiles that parts of rows touch from the page cache."""
        column = self._columns[field.name]
        data = self._map(column.path)
        if data is not None:
            drop(column.path, data, self._spans_of_parts(field, parts))

    def _spans_of_parts(self, field: Field, parts: Sequence[tuple[int, Area]]) -> list[tuple[int, int]]:
        """Return where in the file the tiles, or the lines of raw volumes, begin and end that parts of rows touch."""
        column, touched = self._columns[field.name], list[tuple[int, int]]()
        for (row, part), (begin, end) in zip(parts, self._spans(column, [row for row, _ in parts]), strict=True):
            shape = field.row_shape(*self.size(row))
            if not field.is_tiled:
                spans = spans_of_lines(shape, part, np.dtype(field.dtype).itemsize)
                touched += ((begin + start, begin + stop) for start, stop in spans)
                continue
            grid = grid_of(field, shape)
            read = partial(_read_from, column.path, begin)
            touched += ((begin + start, begin + stop) for start, stop in spans_of_tiles(grid, part, end - begin, read))
        return touched

    def prefetch(self, fields: Sequence[Field], rows: Sequence[int]) -> None:
        """Ask the kernel to read these rows from the disk, if they are mapped. Only the first field is looked up in
        memory."""
        present = [field for field in fields if self.has(field.name)]
        missing = self._absent(present[0], rows) if present else []
        for field in present if missing else ():
            column = self._columns[field.name]
            data = self._map(column.path)
            if data is not None:
                prefetch(data, self._spans(column, [rows[number] for number in missing]))

    def _absent(self, field: Field, rows: Sequence[int]) -> list[int]:
        """Return the indices of the rows that are not in memory."""
        column = self._columns[field.name]
        data = self._map(column.path)
        return [] if data is None else absent(column.path, data, column.starts_of(rows))

    def resident(self, field: Field, rows: Sequence[int]) -> tuple[int, int] | None:
        """Return how many pages of these rows are in memory, and how many there are; None if not reported."""
        column = self._columns[field.name]
        data = self._map(column.path)
        return None if data is None else resident(column.path, data, self._spans(column, rows))

    def drop(self, fields: Sequence[Field], rows: Sequence[int]) -> None:
        """Remove these rows from the page cache: they are not needed again soon."""
        for field in filter(lambda field: self.has(field.name), fields):
            column = self._columns[field.name]
            data = self._map(column.path)
            if data is not None:
                drop(column.path, data, self._spans(column, rows))

    @staticmethod
    def _spans(column: Column, rows: Sequence[int]) -> list[tuple[int, int]]:
        """Return where rows of a column begin and end in their file."""
        starts = column.starts_of(rows)
        if column.lengths is None:
            return [(start, start + column.row_bytes) for start in starts]
        lengths = column.lengths[np.asarray(rows, np.int64)].tolist()
        return [(start, start + length) for start, length in zip(starts, lengths, strict=True)]

    def size(self, row: int) -> Sides:
        """Return the sides of a row."""
        return self._sizes[row]

    def key(self, row: int) -> str:
        """Return the key of a row."""
        if self._keys is None:
            try:
                keys = self._load_keys() if self._load_keys else load_texts(self._columns[KEY], self.facts.rows)
            except MissingError as missing:
                raise self.explain(missing) from missing
            if len(keys) != self.facts.rows:
                raise DamagedError(f"{self.path}: {len(keys)} keys for {self.facts.rows} rows")
            self._keys = keys
        return self._keys[row].decode(errors="replace")

    def _check(self, field: Field) -> None:
        column = self._columns[field.name]
        form = column.row_dtype, column.row_shape
        if form != (np.dtype(field.stored_dtype), field.stored_shape) or not column.holds(self.facts.rows):
            raise DamagedError(
                f"{column.path}: expected {self.facts.rows} rows of {field.stored_dtype} {field.stored_shape} for "
                f"{field.name!r}, found {len(column.starts)} runs of {column.run_rows} rows of "
                f"{column.row_dtype.str} {column.row_shape}"
            )

    def _map(self, path: Path) -> NDArray[np.uint8] | None:
        """Return the mapped file; None if its file system refuses maps."""
        if path not in self._maps:
            try:
                with damage_at(path, ValueError, OverflowError):
                    data = map_file(path)
            except MissingError as missing:
                raise self.explain(missing) from missing
            if data is not None:
                self._check_bounds(path, len(data))
            self._maps[path] = data
        return self._maps[path]

    def _check_bounds(self, path: Path, size: int) -> None:
        """Check that every row is inside the file, before memory is allocated for one."""
        for column in self._columns.values():
            if column.path == path:
                column.check_bounds(self.facts.rows, size)


def _read_from(path: Path, begin: int, start: int, stop: int) -> NDArray[np.uint8]:
    """Return bytes of a row that begins at `begin`. From a map, other threads would wait for the disk, too."""
    return read_spans(path, [(begin + start, begin + stop)])[0]


def gather(name: str, groups: Sequence[tuple[Shard, list[int], list[int]]], out: NDArray[Any]) -> None:
    """Copy rows of a column that is not native out of several shards.

    A group is a shard, ascending indices in `out`, and the rows of the shard that go there.
    """
    flat = out.reshape(len(out), -1).view(np.uint8)
    if KERNEL is not None:
        KERNEL.gather([(*shard.located(name, rows), targets) for shard, targets, rows in groups], flat)
        return
    for shard, targets, rows in groups:
        shard.copy(name, rows, flat, targets)
