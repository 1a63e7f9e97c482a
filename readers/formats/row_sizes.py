"""`RowSizes`: the height and width of every row of a shard."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import DamagedError
from readers.contract.fields import Field
from readers.formats.column import Column, ShardFacts, load

SIZE_DTYPE, SIZE_SHAPE = "<u4", (2,)
MOST_BYTES = 2.0**62
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
    def stored(cls, column: Column, facts: ShardFacts) -> RowSizes:
        """Return the sizes of native rows, which are a column of their shard."""
        return cls.checked(column.path, load(column, facts.rows, SIZE_DTYPE, SIZE_SHAPE), facts)

    @classmethod
    def checked(cls, path: Path, values: NDArray[Any], facts: ShardFacts) -> RowSizes:
        """Return the sizes if they are possible. Each column checks later that its rows lie within the file."""
        if values.shape != (facts.rows, 2) or not values.all():
            raise DamagedError(f"{path}: expected the heights and widths of {facts.rows} rows, all from 1 on")
        fixed = facts.fields[0].size
        if fixed is not None and (values != fixed).any():
            raise DamagedError(f"{path}: expected {fixed[0]} and {fixed[1]} as the height and width of every row")
        pixels = float((values[:, 0].astype(np.float64) * values[:, 1]).sum())
        if pixels * max(field.pixel_bytes for field in facts.fields) >= MOST_BYTES:
            raise DamagedError(f"{path}: its sizes add up to {pixels:.0f} pixels, more than any file holds")
        return cls(values)

    def __getitem__(self, row: int) -> tuple[int, int]:
        height, width = self.values[0 if self.equal else row].tolist()
        return height, width

    def bytes(self, field: Field) -> NDArray[np.int64]:
        """Return the number of bytes of each row of a field."""
        heights, widths = self.values.astype(np.int64).T
        return np.asarray(heights * widths * field.pixel_bytes)
