"""Arrow: one uncompressed IPC file. Its metadata is read by `arrow_metadata`, not by pyarrow, and then it is mapped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import DamagedError
from readers.contract.fields import KEY, SIZE, Field
from readers.formats.arrow_metadata import (
    LARGE_BINARY,
    TEXTS,
    ArrowColumn,
    Batch,
    fixed_size_list,
    large_list,
    numbers,
    read_batches,
)
from readers.formats.column import Column, ShardFacts, damage_at
from readers.formats.contents import Contents, contents
from readers.formats.flat_columns import checked_lengths, flat_column
from readers.formats.row_sizes import SIZE_DTYPE, RowSizes
from readers.formats.shard import Keys, Shard

SUFFIX = ".arrow"
_RAISED = LookupError, ValueError, TypeError, OverflowError, RecursionError


def paths(stem: Path, facts: ShardFacts) -> list[Path]:
    """Return the files of the shard."""
    return [stem.with_name(stem.name + SUFFIX)]


def open_shard(stem: Path, facts: ShardFacts) -> Shard:
    """Open the shard whose file begins with `stem`."""
    (path,) = paths(stem, facts)
    with damage_at(path, *_RAISED), contents(path) as data:
        batches = _batches(path, data, facts)
        sizes = _sizes(path, data, facts, batches) if facts.native else RowSizes.fixed(facts)
        columns = {
            field.name: _flat_column(path, data, field, batches, sizes) if field.flat else _column(path, field, batches)
            for field in facts.read
        }
    return Shard(path, facts, columns, sizes, keys=lambda: _keys(path, facts))


def _batches(path: Path, data: Contents, facts: ShardFacts) -> list[Batch]:
    """Return the record batches, whose buffers are all inside the file and have the expected number of values."""
    batches = read_batches(data, _columns(facts), facts.rows)
    rows = [batch.rows for batch in batches]
    if sum(rows) != facts.rows or not (any(field.flat for field in facts.fields) or _equal(rows)):
        raise DamagedError(f"{path}: expected {facts.rows} rows in equal batches, found {sum(rows)} in {len(rows)}")
    return batches


def _equal(rows: Sequence[int]) -> bool:
    """Return whether all batches have the same number of rows; the last may have fewer."""
    return len(set(rows[:-1])) <= 1 and rows[-1] <= rows[0]


def _columns(facts: ShardFacts) -> list[ArrowColumn]:
    """Return the columns that the shard must have."""
    columns = list(map(_field_column, facts.fields))
    if facts.native:
        columns.append(ArrowColumn(SIZE, fixed_size_list(numbers(SIZE_DTYPE), facts.sides)))
    return [*columns, ArrowColumn(KEY, TEXTS)]


def _field_column(field: Field) -> ArrowColumn:
    if field.is_encoded:
        return ArrowColumn(field.name, LARGE_BINARY)
    if field.flat:
        return ArrowColumn(field.name, large_list(numbers(field.dtype)))
    shape = tuple(side for side in field.shape if side is not None)
    return ArrowColumn(field.name, fixed_size_list(numbers(field.dtype), math.prod(shape)), shape)


def _column(path: Path, field: Field, batches: Sequence[Batch]) -> Column:
    starts = [batch.columns[field.name][0].start for batch in batches]
    return Column(path, np.dtype(field.dtype), field.shape, np.array(starts, np.int64), batches[0].rows)


def _sizes(path: Path, data: Contents, facts: ShardFacts, batches: Sequence[Batch]) -> RowSizes:
    """Return the sizes of native rows, in memory of their own."""
    parts = [_read(data, batch.columns[SIZE][0].start, facts.sides * batch.rows, SIZE_DTYPE) for batch in batches]
    return RowSizes.checked(path, np.concatenate(parts).reshape(-1, facts.sides), facts)


def _flat_column(path: Path, data: Contents, field: Field, batches: Sequence[Batch], sizes: RowSizes) -> Column:
    """Return the column of a flat field."""
    starts, lengths = [], []
    for batch in batches:
        offsets, values = batch.columns[field.name]
        most = values.length if field.is_encoded else values.values
        ends = _ends(data, offsets.start, batch.rows, "<i8", most) * np.dtype(field.stored_dtype).itemsize
        starts.append(values.start + ends[:-1])
        lengths.append(np.diff(ends))
    expected = checked_lengths(path, field, np.concatenate(lengths), sizes)
    return flat_column(path, field, np.concatenate(starts), expected)


def _keys(path: Path, facts: ShardFacts) -> Keys:
    """Read the keys: in Arrow they are strings of any length, which cannot be mapped as rows."""
    keys: list[bytes] = []
    with damage_at(path, *_RAISED), contents(path) as data:
        for batch in _batches(path, data, facts):
            offsets, texts = batch.columns[KEY]
            ends = _ends(data, offsets.start, batch.rows, "<i4", texts.length)
            whole = data[texts.start : texts.start + int(ends[-1])].tobytes()
            whole.decode()
            keys += [whole[start:stop] for start, stop in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
    return keys


def _ends(data: Contents, start: int, rows: int, dtype: str, most: int) -> NDArray[np.int64]:
    """Return where each list of a batch begins and, last, where the lists end: rising, from 0 to at most `most`."""
    ends = _read(data, start, rows + 1, dtype).astype(np.int64)
    if ends[0] < 0 or ends[-1] > most or (ends[1:] < ends[:-1]).any():
        raise ValueError("the lists of a record batch end before they begin, or beyond their values")
    return ends


def _read(data: Contents, start: int, count: int, dtype: str) -> NDArray[np.int64]:
    """Return numbers of the file, in memory of their own."""
    stop = start + count * np.dtype(dtype).itemsize
    return np.frombuffer(data[start:stop].tobytes(), dtype)
