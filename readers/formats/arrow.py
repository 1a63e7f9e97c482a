"""Arrow: one uncompressed IPC file; pyarrow tells where its buffers lie and is closed before any data is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from readers.contract.errors import DamagedError
from readers.contract.fields import KEY, Field
from readers.formats.shard import Column, Keys, Shard, ShardFacts, damage_at

SUFFIX = ".arrow"
_DTYPES = {"uint8": "|u1", "uint16": "<u2", "halffloat": "<f2", "float": "<f4"}


def open_shard(stem: Path, facts: ShardFacts) -> Shard:
    """The shard whose file begins with `stem`."""
    path = stem.with_name(stem.name + SUFFIX)
    with damage_at(path, pa.ArrowException, KeyError), pa.memory_map(str(path)) as source:
        base = source.read_buffer(source.size()).address
        file = pa.ipc.open_file(source)
        batches = [file.get_batch(number) for number in range(file.num_record_batches)]
        rows = [batch.num_rows for batch in batches]
        if sum(rows) != facts.rows or len(set(rows[:-1])) > 1 or rows[-1] > rows[0]:
            raise DamagedError(f"{path}: expected {facts.rows} rows in equal batches, found {rows}")
        columns = {field.name: _column(path, field, batches, base) for field in facts.fields}
        del batches, file
    return Shard(path, facts, columns, keys=lambda: _keys(path))


def _column(path: Path, field: Field, batches: list[Any], base: int) -> Column:
    kind = batches[0].schema.field(field.name).type
    if not isinstance(kind, pa.FixedShapeTensorType) or kind.permutation is not None:
        raise DamagedError(f"{path}: {field.name!r} is {kind}, expected a plain fixed_shape_tensor")
    starts = []
    for batch in batches:
        values = batch.column(field.name).storage.values
        if values.null_count or values.offset:
            raise DamagedError(f"{path}: {field.name!r} has nulls or an offset")
        starts.append(values.buffers()[1].address - base)
    dtype = np.dtype(_DTYPES.get(str(kind.value_type), "V1"))
    return Column(path, dtype, tuple(kind.shape), np.array(starts, np.int64), batches[0].num_rows)


def _keys(path: Path) -> Keys:
    """Keys are text of any length in Arrow, so they are read rather than mapped; few ever ask for them."""
    with damage_at(path, pa.ArrowException, KeyError), pa.memory_map(str(path)) as source:
        column = pa.ipc.open_file(source).read_all().column(KEY)
        column.validate(full=True)
        if column.type != pa.string() or column.null_count:
            raise DamagedError(f"{path}: the keys are {column.type}, expected text")
        return np.array([key.encode() for key in column.to_pylist()], np.bytes_)
