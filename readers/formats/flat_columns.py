"""Flat columns: rows of different lengths, back to back. The position of each is stored, and must follow from the sizes
of all rows. A plain column has rows of one length, and needs neither."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import DamagedError
from readers.contract.fields import END, KEY, SIZE, Field
from readers.formats.column import Column, ShardFacts, load
from readers.formats.row_sizes import RowSizes


def flat_column(path: Path, field: Field, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Column:
    """Return the column of a flat field, whose rows begin at `starts` and have these lengths in bytes."""
    return Column(path, np.dtype(field.dtype), field.shape, starts, 1, lengths)


def stored_names(facts: ShardFacts, fields: tuple[Field, ...]) -> tuple[str, ...]:
    """Return the columns of these fields, in a format that has no rows of different lengths."""
    sizes = (SIZE,) if facts.native else ()
    ends = (END.format(field.name) for field in fields if field.flat)
    return (*(field.name for field in fields), *sizes, *ends, KEY)


def rows_of(facts: ShardFacts, stored: Mapping[str, Column]) -> tuple[dict[str, Column], RowSizes]:
    """Return the columns of the fields that are read, flat ones cut into rows, and the sizes of the rows."""
    sizes = RowSizes.stored(stored[SIZE], facts) if facts.native else RowSizes.fixed(facts)
    columns = {field.name: _rows(facts, field, stored, sizes) for field in facts.read}
    return columns | {name: column for name, column in stored.items() if name == KEY}, sizes


def _rows(facts: ShardFacts, field: Field, stored: Mapping[str, Column], sizes: RowSizes) -> Column:
    column = stored[field.name]
    if not field.flat:
        return column
    lengths = sizes.bytes(field)
    ends = load(stored[END.format(field.name)], facts.rows, "<u8", ())
    return flat_column(column.path, field, _begins(column, field, lengths, ends), lengths)


def _begins(flat: Column, field: Field, lengths: NDArray[np.int64], ends: NDArray[Any]) -> NDArray[np.int64]:
    """Return where the rows of a flat column begin in the file. `ends`, as stored, must agree with the sizes."""
    itemsize = np.dtype(field.dtype).itemsize
    after = np.cumsum(lengths)  # in bytes
    if (flat.row_dtype, flat.row_shape) != (np.dtype(field.dtype), ()) or flat.run_rows * itemsize != lengths.sum():
        raise DamagedError(
            f"{flat.path}: expected {lengths.sum() // itemsize} numbers of {field.dtype} for the sizes of its rows in "
            f"{field.name!r}, found {flat.run_rows} of {flat.row_dtype.str} {flat.row_shape}"
        )
    if not np.array_equal(ends, (after // itemsize).astype(np.uint64)):
        raise DamagedError(f"{flat.path}: the stored ends of {field.name!r} do not follow from the sizes of its rows")
    return np.asarray(flat.starts[0] + after - lengths)
