"""LMDB: one environment file; a value per row with the fields back to back, and a record of their offsets."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import lmdb
import numpy as np
from numpy.typing import NDArray

from packer.shards.formats import ShardArrays, as_os_error, row_lengths
from readers.contract import giant
from readers.contract.fields import KEY, SIZE, Field
from readers.contract.files import blake3_of
from readers.formats.lmdb import LAYOUT_KEY, SUFFIX, ValuePart, begins_and_end, flat_layout, row_key

Lengths = NDArray[np.int64]
MOST_VALUE = 2**32 - 1
HEAD = ""
"""Stands for the size of a row and the lengths of its fields, which a value begins with if a field is flat."""


@dataclass(frozen=True)
class _Column:
    """The bytes of a column; of each row its start and length in them, and its offset in the value of the row."""

    data: NDArray[np.uint8]
    rows: list[tuple[int, int, int]]

    @classmethod
    def of(cls, array: NDArray[Any], lengths: Lengths, begins: Lengths) -> _Column:
        starts = np.cumsum(lengths) - lengths
        rows = zip(starts.tolist(), lengths.tolist(), begins.tolist(), strict=True)
        return cls(array.reshape(-1).view(np.uint8), list(rows))


def write(stem: Path, arrays: ShardArrays, fields: Sequence[Field]) -> dict[Path, str]:
    """Write one file. Its map size is computed from the values, so it never fills up and is never guessed."""
    path = stem.with_name(stem.name + SUFFIX)
    parts = _parts(arrays, fields)
    *begins, ends = begins_and_end([lengths for _, lengths in parts.values()])
    columns = [_Column.of(*part, begin) for part, begin in zip(parts.values(), begins, strict=True)]
    if HEAD in parts:
        layout = flat_layout(fields, arrays[KEY].dtype)
    else:
        layout = {
            name: ValuePart(int(begin[0]), array.dtype, array.shape[1:])
            for (name, (array, _)), begin in zip(parts.items(), begins, strict=True)
        }
    # writemap: values are written to the pages of the file, so a shard is not in memory twice.
    options: dict[str, Any] = {"subdir": False, "lock": False, "sync": False, "writemap": True}
    with as_os_error(lmdb.Error), lmdb.open(str(path), map_size=map_size(ends.tolist()), **options) as environment:
        with path.open("r+b") as file:
            _reserve(file)
        with environment.begin(write=True) as transaction:
            for row, value in enumerate(_values(columns, ends, _memory(stem, int(ends.max())))):
                transaction.put(row_key(row), value.data, append=True)
            record = {name: part.to_json() for name, part in layout.items()}
            transaction.put(LAYOUT_KEY, json.dumps(record).encode(), append=True)
        used = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
    os.truncate(path, used)
    return {path: blake3_of(path)}


def map_size(value_bytes: Sequence[int]) -> int:
    """Return an upper bound of the file size: whole pages for each value, leaves and branches for keys, and 64 more."""
    page = os.sysconf("SC_PAGE_SIZE")
    value_pages = sum(-(-(count + 16) // page) for count in value_bytes)
    return (value_pages + len(value_bytes) // 8 + 64) * page


def _reserve(file: BinaryIO) -> None:
    """Reserve the blocks of a file that is mapped: writing to a map on a full disk would kill the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size)


def tool() -> str:
    return "lmdb " + ".".join(map(str, lmdb.version()))


def _parts(arrays: ShardArrays, fields: Sequence[Field]) -> dict[str, tuple[NDArray[Any], Lengths]]:
    """Return the parts of a value in order, with the bytes of each in each row."""
    rows = len(arrays[KEY])
    parts = {field.name: (arrays[field.name], row_lengths(arrays, field)) for field in fields}
    lengths = [length for _, length in parts.values()]
    parts[KEY] = arrays[KEY], np.full(rows, arrays[KEY].itemsize)
    if not any(field.flat for field in fields):
        return parts
    sizes = arrays[SIZE] if SIZE in arrays else np.full((rows, len(fields[0].sides)), fields[0].size, "<u4")
    head = np.hstack([sizes.view(np.uint8), np.stack(lengths, 1).astype("<u8").view(np.uint8)])
    return {HEAD: (head, np.full(rows, head.shape[1])), **parts}


def _memory(stem: Path, size: int) -> NDArray[np.uint8]:
    """Return memory for a value: of a file without a name if it is large, so that the kernel can take it back."""
    if size > MOST_VALUE:
        raise OSError(f"a row has {size:,} bytes, and a value of LMDB at most {MOST_VALUE:,}; take another --format")
    if size <= giant.GIANT:
        return np.empty(size, np.uint8)
    path = stem.with_name(stem.name + ".value")
    with path.open("x+b") as file:
        path.unlink()
        file.truncate(size)
        _reserve(file)
        return np.frombuffer(mmap.mmap(file.fileno(), size), np.uint8)


def _values(columns: Sequence[_Column], ends: Lengths, value: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
    """Yield the value of each row, always in the same memory: use it before taking the next one."""
    for row, end in enumerate(ends.tolist()):
        written = 0
        for column in columns:
            start, length, begin = column.rows[row]
            value[written:begin] = 0
            written = begin + length
            value[begin:written] = column.data[start : start + length]
        yield value[:end]
