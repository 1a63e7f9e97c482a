"""Native rows: the position of each follows from the sizes of all, and a shard that stores others is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import DamagedError
from readers.contract.fields import KEY, SIZE, START, Field
from readers.formats.column import Column, ShardFacts, load

SIZE_DTYPE, SIZE_SHAPE = "<u4", (2,)
_MOST_BYTES = 2.0**62
"""Sums of up to this many bytes fit in 64 bits, and no file is as large."""


@dataclass(frozen=True)
class RowSizes:
    """Height and width of every row of a shard: at least 1x1, and small enough that no sum of bytes overflows."""

    values: NDArray[Any]
    equal: bool = False
    """True if all rows have the first size: an array of 2**62 equal sizes is impossible, also without memory."""

    @classmethod
    def fixed(cls, facts: ShardFacts) -> RowSizes:
        """Return the sizes of rows that are not native: all equal, in the memory of one."""
        return cls(np.array([facts.fields[0].size], np.int64), equal=True)

    @classmethod
    def checked(cls, path: Path, values: NDArray[Any], facts: ShardFacts) -> RowSizes:
        """Return the sizes if they are possible. Each column checks later that its rows lie within the file."""
        if values.shape != (facts.rows, 2) or not values.all():
            raise DamagedError(f"{path}: expected the heights and widths of {facts.rows} rows, all from 1 on")
        pixels = float((values[:, 0].astype(np.float64) * values[:, 1]).sum())
        if pixels * max(field.pixel_bytes for field in facts.fields) >= _MOST_BYTES:
            raise DamagedError(f"{path}: its sizes add up to {pixels:.0f} pixels, more than any file holds")
        return cls(values)

    def __getitem__(self, row: int) -> tuple[int, int]:
        height, width = self.values[0 if self.equal else row].tolist()
        return height, width

    def bytes(self, field: Field) -> NDArray[np.int64]:
        """Return the number of bytes of each row of a field."""
        heights, widths = self.values.astype(np.int64).T
        return np.asarray(heights * widths * field.pixel_bytes)


def native_column(path: Path, field: Field, starts: NDArray[np.int64], sizes: RowSizes) -> Column:
    """Return the column of a native field, whose rows begin at `starts`."""
    return Column(path, np.dtype(field.dtype), field.shape, starts, 1, sizes.bytes(field))


def stored_names(facts: ShardFacts) -> tuple[str, ...]:
    """Return the columns of a shard in a format that has no rows of different lengths."""
    fields = tuple(field.name for field in facts.fields)
    return (*fields, SIZE, *map(START.format, fields), KEY) if facts.native else (*fields, KEY)


def rows_of(facts: ShardFacts, stored: Mapping[str, Column]) -> tuple[Mapping[str, Column], RowSizes]:
    """Return the columns and sizes of a shard whose native fields are stored flat: here they are cut into rows."""
    if not facts.native:
        return stored, RowSizes.fixed(facts)
    sizes = RowSizes.checked(stored[SIZE].path, load(stored[SIZE], facts.rows, SIZE_DTYPE, SIZE_SHAPE), facts)
    columns = {name: column for name, column in stored.items() if name == KEY}
    for field in facts.fields:
        starts = load(stored[START.format(field.name)], facts.rows, "<u8", ())
        begins = _back_to_back(stored[field.name], field, sizes.bytes(field), starts)
        columns[field.name] = native_column(stored[field.name].path, field, begins, sizes)
    return columns, sizes


def _back_to_back(flat: Column, field: Field, lengths: NDArray[np.int64], starts: NDArray[Any]) -> NDArray[np.int64]:
    """Return where the rows of a flat column begin in the file. `starts`, as stored, must agree with the sizes."""
    itemsize = np.dtype(field.dtype).itemsize
    before = np.cumsum(lengths) - lengths  # in bytes
    if (flat.row_dtype, flat.row_shape) != (np.dtype(field.dtype), ()) or flat.run_rows * itemsize != lengths.sum():
        raise DamagedError(
            f"{flat.path}: expected {lengths.sum() // itemsize} numbers of {field.dtype} for the sizes of its rows in "
            f"{field.name!r}, found {flat.run_rows} of {flat.row_dtype.str} {flat.row_shape}"
        )
    if not np.array_equal(starts, (before // itemsize).astype(np.uint64)):
        raise DamagedError(f"{flat.path}: the stored starts of {field.name!r} do not follow from the sizes of its rows")
    return np.asarray(flat.starts[0] + before)
