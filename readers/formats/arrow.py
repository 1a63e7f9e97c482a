"""Arrow: one uncompressed IPC file. pyarrow reports where its buffers lie, and is closed before data is read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from readers.contract.errors import DamagedError
from readers.contract.fields import KEY, SIZE, Field
from readers.formats.column import Column, ShardFacts, damage_at
from readers.formats.shard import Keys, Shard
from readers.formats.varying_size import RowSizes, native_column

SUFFIX = ".arrow"
SIZE_KIND = pa.list_(pa.uint32(), 2)
_RAISED = pa.ArrowException, LookupError, ValueError, TypeError, OverflowError
_DTYPES = {"uint8": "|u1", "uint16": "<u2", "halffloat": "<f2", "float": "<f4"}


def paths(stem: Path, facts: ShardFacts) -> list[Path]:
    """Return the files of the shard."""
    return [stem.with_name(stem.name + SUFFIX)]


def open_shard(stem: Path, facts: ShardFacts) -> Shard:
    """Open the shard whose file begins with `stem`."""
    (path,) = paths(stem, facts)
    with damage_at(path, *_RAISED), pa.memory_map(str(path)) as source:
        base = source.read_buffer(source.size()).address
        file = pa.ipc.open_file(source)
        if not file.schema.equals(_schema(facts)) or file.num_record_batches > facts.rows:
            found = f"{file.num_record_batches} batches of {_schema_text(file.schema)}"
            raise DamagedError(f"{path}: found {found}, expected {_schema_text(_schema(facts))}")
        batches = [file.get_batch(number) for number in range(file.num_record_batches)]
        rows = [batch.num_rows for batch in batches]
        if sum(rows) != facts.rows or 0 in rows or not (facts.native or _equal(rows)):
            raise DamagedError(f"{path}: expected {facts.rows} rows in equal batches, found {rows}")
        if facts.native:
            sizes = _sizes(path, facts, batches)
            columns = {field.name: _native_column(path, field, batches, base, sizes) for field in facts.fields}
        else:
            sizes = RowSizes.fixed(facts)
            columns = {field.name: _column(path, field, batches, base) for field in facts.fields}
        del batches, file
    return Shard(path, facts, columns, sizes, keys=lambda: _keys(path))


def _equal(rows: Sequence[int]) -> bool:
    """Return whether all batches have the same number of rows; the last may have fewer."""
    return len(set(rows[:-1])) <= 1 and rows[-1] <= rows[0]


def _column(path: Path, field: Field, batches: Sequence[Any], base: int) -> Column:
    kind = batches[0].schema.field(field.name).type
    if not isinstance(kind, pa.FixedShapeTensorType) or kind.permutation is not None:
        raise DamagedError(f"{path}: {field.name!r} is {kind}, expected a plain fixed_shape_tensor")
    starts = []
    for batch in batches:
        values = batch.column(field.name).storage.values
        if values.null_count or values.offset:
            raise DamagedError(f"{path}: {field.name!r} has nulls or an offset")
        starts.append(_address(path, values) - base)
    return Column(path, _dtype(kind.value_type), tuple(kind.shape), np.array(starts, np.int64), batches[0].num_rows)


def _sizes(path: Path, facts: ShardFacts, batches: Sequence[Any]) -> RowSizes:
    """Return the sizes of native rows, in memory of their own."""
    parts = [_plain(path, SIZE, batch, SIZE_KIND) for batch in batches]
    return RowSizes.checked(path, np.concatenate([part.flatten().to_numpy() for part in parts]).reshape(-1, 2), facts)


def _native_column(path: Path, field: Field, batches: Sequence[Any], base: int, sizes: RowSizes) -> Column:
    """Return the column of a native field. The length of each list must follow from the row's size."""
    kind = batches[0].schema.field(field.name).type
    if not isinstance(kind, pa.LargeListType) or _dtype(kind.value_type) != np.dtype(field.dtype):
        raise DamagedError(f"{path}: {field.name!r} is {kind}, expected a large_list of {field.dtype}")
    starts, lengths = [], []
    for batch in batches:
        rows = _plain(path, field.name, batch, kind)
        ends = rows.offsets.to_numpy() * np.dtype(field.dtype).itemsize
        starts.append(_address(path, rows.values) - base + ends[:-1])
        lengths.append(np.diff(ends))
    if not np.array_equal(np.concatenate(lengths), sizes.bytes(field)):
        raise DamagedError(f"{path}: the rows of {field.name!r} do not have the lengths that follow from their sizes")
    return native_column(path, field, np.concatenate(starts), sizes)


def _plain(path: Path, name: str, batch: Any, kind: pa.DataType) -> Any:
    """Return a column of lists, if it lies within its buffers and has no nulls and no offset."""
    column = batch.column(name)
    column.validate(full=True)
    if column.type != kind or column.null_count or column.offset or column.values.null_count or column.values.offset:
        raise DamagedError(f"{path}: {name!r} is {column.type}, expected {kind} without nulls or an offset")
    return column


def _address(path: Path, values: Any) -> int:
    """Return the address of an array's numbers. `Column` checks that it lies within the file."""
    buffer = values.buffers()[1]
    if buffer is None:
        raise DamagedError(f"{path}: a column has no buffer")
    return int(buffer.address)


def _schema(facts: ShardFacts) -> pa.Schema:
    """Return the schema that the shard must have. Others are refused before a batch or a dictionary is read."""
    fields = [(field.name, _kind(field)) for field in facts.fields]
    return pa.schema([*fields, *([(SIZE, SIZE_KIND)] if facts.native else []), (KEY, pa.string())])


def _kind(field: Field) -> pa.DataType:
    numbers = pa.from_numpy_dtype(np.dtype(field.dtype))
    return pa.large_list(numbers) if field.native else pa.fixed_shape_tensor(numbers, field.shape)


def _schema_text(schema: pa.Schema) -> str:
    return ", ".join(f"{column.name}: {column.type}" for column in schema)[:300]


def _dtype(kind: pa.DataType) -> np.dtype[Any]:
    return np.dtype(_DTYPES.get(str(kind), "V1"))


def _keys(path: Path) -> Keys:
    """Read the keys: in Arrow they are strings of any length, which cannot be mapped as rows."""
    with damage_at(path, *_RAISED), pa.memory_map(str(path)) as source:
        column = pa.ipc.open_file(source).read_all().column(KEY)
        column.validate(full=True)
        if column.type != pa.string() or column.null_count:
            raise DamagedError(f"{path}: the keys are {column.type}, expected strings")
        return [key.encode() for key in column.to_pylist()]
