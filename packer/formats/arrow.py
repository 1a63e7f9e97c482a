"""Arrow: one uncompressed IPC file of fixed_shape_tensor columns, in record batches of a bounded size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from packer.formats import Arrays
from readers.contract.fields import KEY
from readers.formats.arrow import SUFFIX

BATCH_BYTES = 16 << 20
"""What a foreign reader needs in memory at a time: a batch is about this large, or one row."""


def write(stem: Path, arrays: Arrays) -> list[Path]:
    """One file; every batch but the last has the same number of rows."""
    path = stem.with_name(stem.name + SUFFIX)
    tensors = {name: array for name, array in arrays.items() if name != KEY}
    rows = len(arrays[KEY])
    batch_rows = max(1, BATCH_BYTES * rows // sum(array.nbytes for array in tensors.values()))
    schema = pa.schema([(name, _kind(array)) for name, array in tensors.items()] + [(KEY, pa.string())])
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as file:
        for start in range(0, rows, batch_rows):
            part = slice(start, start + batch_rows)
            columns = [_tensor(array[part]) for array in tensors.values()]
            keys = pa.array([key.decode() for key in arrays[KEY][part].tolist()], pa.string())
            file.write_batch(pa.record_batch([*columns, keys], schema=schema))
    return [path]


def tool() -> str:
    return f"arrow {pa.__version__}"


def _kind(array: NDArray[Any]) -> pa.DataType:
    return pa.fixed_shape_tensor(pa.from_numpy_dtype(array.dtype), array.shape[1:])


def _tensor(array: NDArray[Any]) -> pa.ExtensionArray:
    """The rows as a column, without a copy."""
    kind = _kind(array)
    return pa.ExtensionArray.from_storage(
        kind, pa.FixedSizeListArray.from_arrays(array.reshape(-1), type=kind.storage_type)
    )
