"""`RowSizes`: the sides of every row of a shard."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import DamagedError
from readers.contract.fields import Field, Sides
from readers.formats.column import Column, ShardFacts, load

SIZE_DTYPE = "<u4"
MOST_BYTES = 2.0**62
"""Sums of up to this many bytes fit in 64 bits, and no file is as large."""


@dataclass(frozen=True)
class RowSizes:
    """The sides of every row of a shard: at least 1 each, and small enough that no sum of bytes overflows."""

    values: NDArray[Any]
    equal: bool = False
    """True if all rows have the first size: an array of 2**62 equal sizes is impossible, also without memory."""

    @classmethod
    def fixed(cls, facts: ShardFacts) -> RowSizes:
        """Return the sizes of rows that are not native: all equal, in the memory of one."""
        return cls(np.array([facts.fields[0].size], np.int64), equal=True)

    @classmethod
    def stored(cls, column: Column, facts: ShardFacts) -> RowSizes:
        """Return the sizes of native rows, which are a column of their shard."""
        return cls.checked(column.path, load(column, facts.rows, SIZE_DTYPE, (facts.sides,)), facts)

    @classmethod
    def checked(cls, path: Path, values: NDArray[Any], facts: ShardFacts) -> RowSizes:
        """Return the sizes if they are possible. Each column checks later that its rows are inside the file."""
        if values.shape != (facts.rows, facts.sides) or not values.all():
            raise DamagedError(f"{path}: expected {facts.sides} sides of each of {facts.rows} rows, all from 1 on")
        fixed = facts.fields[0].size
        if fixed is not None and (values != fixed).any():
            raise DamagedError(f"{path}: expected {' and '.join(map(str, fixed))} as the sides of every row")
        pixels = float(values.astype(np.float64).prod(1).sum())
        if pixels * max(field.pixel_bytes for field in facts.fields) >= MOST_BYTES:
            raise DamagedError(f"{path}: its sizes add up to {pixels:.0f} pixels, more than any file holds")
        return cls(values)

    def __getitem__(self, row: int) -> Sides:
        return tuple(self.values[0 if self.equal else row].tolist())

    def bytes(self, field: Field) -> NDArray[np.int64]:
        """Return the number of bytes of each row of a field."""
        return np.asarray(self.values.astype(np.int64).prod(1) * field.pixel_bytes)
