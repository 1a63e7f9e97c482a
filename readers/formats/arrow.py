"""Arrow: one uncompressed IPC file; pyarrow tells where its buffers lie and is closed before any data is read."""

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
from readers.formats.varying_size import Sizes, native_column

SUFFIX = ".arrow"
SIZE_KIND = pa.list_(pa.uint32(), 2)
_RAISED = pa.ArrowException, LookupError, ValueError, TypeError, OverflowError
_DTYPES = {"uint8": "|u1", "uint16": "<u2", "halffloat": "<f2", "float": "<f4"}


def paths(stem: Path, facts: ShardFacts) -> list[Path]:
    """The files of the shard."""
    return [stem.with_name(stem.name + SUFFIX)]


def open_shard(stem: Path, facts: ShardFacts) -> Shard:
    """The shard whose file begins with `stem`."""
    (path,) = paths(stem, facts)
    with damage_at(path, *_RAISED), pa.memory_map(str(path)) as source:
        base = source.read_buffer(source.size()).address
        file = pa.ipc.open_file(source)
        if not file.schema.equals(_schema(facts)) or file.num_record_batches > facts.rows:
            found = f"{file.num_record_batches} batches of {_told(file.schema)}"
            raise DamagedError(f"{path}: found {found}, expected {_told(_schema(facts))}")
        batches = [file.get_batch(number) for number in range(file.num_record_batches)]
        rows = [batch.num_rows for batch in batches]
        if sum(rows) != facts.rows or 0 in rows or not (facts.native or _equal(rows)):
            raise DamagedError(f"{path}: expected {facts.rows} rows in equal batches, found {rows}")
        if facts.native:
            sizes = _sizes(path, facts, batches)
            columns = {field.name: _native_column(path, field, batches, base, sizes) for field in facts.fields}
        else:
            sizes = Sizes.fixed(facts)
            columns = {field.name: _column(path, field, batches, base) for field in facts.fields}
        del batches, file
    return Shard(path, facts, columns, sizes, keys=lambda: _keys(path))


def _equal(rows: Sequence[int]) -> bool:
    """Whether all batches have the same number of rows, but for the last, which may have fewer."""
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


def _sizes(path: Path, facts: ShardFacts, batches: Sequence[Any]) -> Sizes:
    """The sizes of native rows, in memory of their own."""
    parts = [_plain(path, SIZE, batch, SIZE_KIND) for batch in batches]
    return Sizes.checked(path, np.concatenate([part.flatten().to_numpy() for part in parts]).reshape(-1, 2), facts)


def _native_column(path: Path, field: Field, batches: Sequence[Any], base: int, sizes: Sizes) -> Column:
    """Rows of a list column: how long each is must be what its size gives."""
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
        raise DamagedError(f"{path}: the rows of {field.name!r} are not as long as their sizes give")
    return native_column(path, field, np.concatenate(starts), sizes)


def _plain(path: Path, name: str, batch: Any, kind: pa.DataType) -> Any:
    """A column of lists, if all that it says of itself lies within its buffers, without nulls or an offset."""
    column = batch.column(name)
    column.validate(full=True)
    if column.type != kind or column.null_count or column.offset or column.values.null_count or column.values.offset:
        raise DamagedError(f"{path}: {name!r} is {column.type}, expected {kind} without nulls or an offset")
    return column


def _address(path: Path, values: Any) -> int:
    """Where the numbers of an array lie in memory; whether that is within the file, `Column` checks."""
    buffer = values.buffers()[1]
    if buffer is None:
        raise DamagedError(f"{path}: a column has no buffer")
    return int(buffer.address)


def _schema(facts: ShardFacts) -> pa.Schema:
    """The only columns that such a shard has. Others are refused before a batch, or a dictionary, is read."""
    fields = [(field.name, _kind(field)) for field in facts.fields]
    return pa.schema([*fields, *([(SIZE, SIZE_KIND)] if facts.native else []), (KEY, pa.string())])


def _kind(field: Field) -> pa.DataType:
    numbers = pa.from_numpy_dtype(np.dtype(field.dtype))
    return pa.large_list(numbers) if field.native else pa.fixed_shape_tensor(numbers, field.shape)


def _told(schema: pa.Schema) -> str:
    return ", ".join(f"{one.name}: {one.type}" for one in schema)[:300]


def _dtype(kind: pa.DataType) -> np.dtype[Any]:
    return np.dtype(_DTYPES.get(str(kind), "V1"))


def _keys(path: Path) -> Keys:
    """Keys are text of any length in Arrow, so they are read rather than mapped; few ever ask for them."""
    with damage_at(path, *_RAISED), pa.memory_map(str(path)) as source:
        column = pa.ipc.open_file(source).read_all().column(KEY)
        column.validate(full=True)
        if column.type != pa.string() or column.null_count:
            raise DamagedError(f"{path}: the keys are {column.type}, expected text")
        return [key.encode() for key in column.to_pylist()]
