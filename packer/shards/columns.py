"""The columns of a shard while they are filled: one flat array per field, or the encoded rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from packer.recipe.shard_spec import ShardSpec
from packer.shards.formats import ShardArrays
from packer.shards.scratch import Scratch
from readers.contract.fields import END, KEY, SIZE, Field

ALIGNED = 4096
"""A page: a column begins with one, so that none is shared with the column before."""


Memory = Callable[[int], NDArray[np.uint8]]
"""A function that returns this number of bytes, with any content."""


def fresh(size: int) -> NDArray[np.uint8]:
    """Return new bytes."""
    return np.empty(size, np.uint8)


class RowMemory(Protocol):
    """Memory that rows are decoded into, and that takes the encoded ones."""

    def rows(self, index: int) -> list[NDArray[Any]]:
        """Return the arrays of a row, one per field, to be filled."""

    def put(self, index: int, field: Field, encoded: bytes | Path) -> None:
        """Take an encoded row, or the scratch file that holds it."""


class Columns:
    """Memory for all rows of a shard, allocated at once. At the end, gaps of rejected rows are closed."""

    def __init__(self, spec: ShardSpec, memory: Memory, scratch: Scratch) -> None:
        self._scratch = scratch
        self._pieces = spec.pieces
        self._size = spec.recipe.geometry.size
        nothing = (0,) * spec.recipe.sides
        self._sizes = [self._size or piece.size or nothing for piece in spec.pieces]
        self._fields = spec.fields
        starts = {field: self._starts(field) for field in spec.fields if not field.is_encoded}
        arrays = _cut(memory, [(field.dtype, ends[-1]) for field, ends in starts.items()])
        self._flat = {field: (flat, starts[field]) for field, flat in zip(starts, arrays, strict=True)}
        self._encoded: dict[Field, list[bytes | Path]] = {
            field: [b""] * len(spec.pieces) for field in spec.fields if field.is_encoded
        }

    @property
    def nbytes(self) -> int:
        """The size of all fields."""
        encoded = sum(_length(row) for rows in self._encoded.values() for row in rows)
        return encoded + sum(flat.nbytes for flat, _ in self._flat.values())

    def rows(self, index: int) -> list[NDArray[Any]]:
        """Return the arrays of a row, one per field, to be filled. Arrays of encoded fields are not kept."""
        arrays: list[NDArray[Any]] = []
        for field in self._fields:
            shape = field.row_shape(*self._sizes[index])
            if field.is_encoded:
                arrays.append(np.empty(shape, field.dtype))
                continue
            flat, starts = self._flat[field]
            arrays.append(flat[starts[index] : starts[index + 1]].reshape(shape))
        return arrays

    def put(self, index: int, field: Field, encoded: bytes | Path) -> None:
        """Take an encoded row, or the scratch file that holds it."""
        self._encoded[field][index] = encoded

    def kept(self, indices: Sequence[int]) -> ShardArrays:
        """Return the columns of these rows, for the writer of a storage format."""
        columns: dict[str, NDArray[Any]] = {}
        for field in self._fields:
            if field.is_encoded:
                rows = [self._encoded[field][index] for index in indices]
                ends = np.cumsum([_length(row) for row in rows]).astype("<u8")
                columns[field.name] = self._joined(field, rows)
                columns[END.format(field.name)] = ends
                continue
            flat, starts = self._flat[field]
            moved = _closed_up(flat, starts, indices)
            if self._size is not None:
                columns[field.name] = flat[: moved[-1]].reshape(len(indices), *field.row_shape(*self._size))
            else:
                columns[field.name] = flat[: moved[-1]]
                columns[END.format(field.name)] = np.array(moved[1:], "<u8")
        if self._size is None:
            columns[SIZE] = np.array([self._sizes[index] for index in indices], "<u4")
        columns[KEY] = np.array([self._pieces[index].key.encode() for index in indices], np.bytes_)
        return columns

    def _joined(self, field: Field, rows: Sequence[bytes | Path]) -> NDArray[np.uint8]:
        """Return encoded rows back to back."""
        parts = [row for row in rows if isinstance(row, bytes)]
        if len(parts) == len(rows):
            return np.frombuffer(b"".join(parts), np.uint8)
        return self._scratch.joined(field.name, rows)

    def _starts(self, field: Field) -> Sequence[int]:
        """Return the start of each row, and the end of the last."""
        if self._size is not None:
            numbers = math.prod(field.row_shape(*self._size))
            return range(0, numbers * len(self._sizes) + 1, numbers)
        starts = [0]
        for size in self._sizes:
            starts.append(starts[-1] + math.prod(field.row_shape(*size)))
        return starts


def _length(row: bytes | Path) -> int:
    return len(row) if isinstance(row, bytes) else row.stat().st_size


def _cut(memory: Memory, kinds: Sequence[tuple[str, int]]) -> list[NDArray[Any]]:
    """Cut arrays of these dtypes and lengths from one piece of memory, each at a boundary of ALIGNED bytes."""
    sizes = [np.dtype(dtype).itemsize * count for dtype, count in kinds]
    begins = [0, *itertools.accumulate(-(-size // ALIGNED) * ALIGNED for size in sizes)]
    block = memory(begins[-1])
    return [
        block[begin : begin + size].view(dtype) for begin, size, (dtype, _) in zip(begins, sizes, kinds, strict=False)
    ]


def _closed_up(flat: NDArray[Any], starts: Sequence[int], indices: Sequence[int]) -> Sequence[int]:
    """Move these rows to the front, in place. Return their starts, and the end of the last."""
    if len(indices) == len(starts) - 1:  # there are no gaps
        return starts
    moved = [0]
    for index in indices:
        count = starts[index + 1] - starts[index]
        if moved[-1] != starts[index]:
            flat[moved[-1] : moved[-1] + count] = flat[starts[index] : starts[index + 1]]
        moved.append(moved[-1] + count)
    return moved
