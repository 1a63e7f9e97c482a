"""Arrow: one uncompressed IPC file of fixed_shape_tensor columns, or of lists, in record batches of a bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from packer.publish.direct_file import DirectFile
from packer.shards.formats import ShardArrays, row_lengths
from readers.contract.fields import END, KEY, SIZE, Field
from readers.formats.arrow import SUFFIX

BATCH_BYTES = 16 << 20
"""The size of a record batch, or one row if that is larger. Other readers need this much memory at a time."""


def write(stem: Path, arrays: ShardArrays, fields: Sequence[Field]) -> dict[Path, str]:
    """Write one file. If rows have one size, all batches but the last have the same number of rows."""
    path = stem.with_name(stem.name + SUFFIX)
    native, sides = [SIZE] if SIZE in arrays else [], len(fields[0].sides)
    kinds = {field.name: _kind(field, arrays[field.name]) for field in fields}
    schema = pa.schema([*kinds.items(), *((name, pa.list_(pa.uint32(), sides)) for name in native), (KEY, pa.string())])
    with DirectFile(path) as data, pa.PythonFile(data, "w") as sink, pa.ipc.new_file(sink, schema) as file:
        for part in _batches(_row_bytes(arrays, fields)):
            columns = [_column(field, arrays, part) for field in fields]
            sizes = [pa.FixedSizeListArray.from_arrays(_numbers(arrays[name][part]), sides) for name in native]
            keys = _strings(arrays[KEY][part].tolist())
            file.write_batch(pa.record_batch([*columns, *sizes, keys], schema=schema))
    return {path: data.digest}


def tool() -> str:
    return f"arrow {pa.__version__}"


def _row_bytes(arrays: ShardArrays, fields: Sequence[Field]) -> list[int]:
    lengths: list[int] = np.sum([row_lengths(arrays, field) for field in fields], 0).tolist()
    return lengths


def _batches(row_bytes: Sequence[int]) -> Iterator[slice]:
    """Yield the rows of each batch: as many as fit, at least one."""
    start = held = 0
    for row, size in enumerate(row_bytes):
        if row > start and held + size > BATCH_BYTES:
            yield slice(start, row)
            start, held = row, 0
        held += size
    yield slice(start, len(row_bytes))


def _tensor_kind(array: NDArray[Any]) -> pa.DataType:
    return pa.fixed_shape_tensor(pa.from_numpy_dtype(array.dtype), array.shape[1:])


def _kind(field: Field, array: NDArray[Any]) -> pa.DataType:
    if field.is_encoded:
        return pa.large_binary()
    return pa.large_list(pa.from_numpy_dtype(array.dtype)) if field.flat else _tensor_kind(array)


def _column(field: Field, arrays: ShardArrays, part: slice) -> pa.Array:
    """Return these rows of a field as a column, without a copy."""
    if not field.flat:
        return _tensors(arrays[field.name][part])
    offsets = np.array([0, *arrays[END.format(field.name)].tolist()][part.start : part.stop + 1], np.int64)
    values = arrays[field.name][offsets[0] : offsets[-1]]
    offsets -= offsets[0]
    if field.is_encoded:
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(values)]
        return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
    return pa.LargeListArray.from_arrays(_numbers(offsets), _numbers(values))


def _tensors(array: NDArray[Any]) -> pa.ExtensionArray:
    """Return rows of one size as a column, without a copy."""
    kind = _tensor_kind(array)
    return pa.ExtensionArray.from_storage(
        kind, pa.FixedSizeListArray.from_arrays(_numbers(array), type=kind.storage_type)
    )


def _numbers(array: NDArray[Any]) -> pa.Array:
    """Return an Arrow array without a copy. `pa.array` would import pandas if installed: 0.4 s in every worker."""
    return pa.Array.from_buffers(pa.from_numpy_dtype(array.dtype), array.size, [None, pa.py_buffer(array)])


def _strings(texts: Sequence[bytes]) -> pa.StringArray:
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), pa.py_buffer(b"".join(texts)))
