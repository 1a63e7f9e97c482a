"""Flat columns: rows of different lengths, back to back. The position of each is stored. The position of raw rows must
follow from their sizes. A plain column has rows of one length, and needs neither."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import DamagedError
from readers.contract.field_entry import MOST_ROW_BYTES
from readers.contract.fields import END, KEY, SIZE, Field
from readers.formats.column import Column, ShardFacts, load
from readers.formats.row_sizes import MOST_BYTES, RowSizes


def flat_column(path: Path, field: Field, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Column:
    """Return the column of a flat field, whose rows begin at `starts` and have these lengths in bytes."""
    return Column(path, np.dtype(field.stored_dtype), field.stored_shape, starts, 1, lengths)


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
    ends = load(stored[END.format(field.name)], facts.rows, "<u8", ())
    numbers = np.minimum(np.diff(ends, prepend=np.uint64(0)), np.uint64(MOST_ROW_BYTES))  # as bytes they fit 64 bits
    lengths = checked_lengths(column.path, field, numbers * np.uint64(np.dtype(field.stored_dtype).itemsize), sizes)
    return flat_column(column.path, field, _begins(column, field, lengths), lengths)


def checked_lengths(path: Path, field: Field, stored: NDArray[Any], sizes: RowSizes) -> NDArray[np.int64]:
    """Return the stored bytes of each row of a flat field. The bytes of raw rows must follow from their sizes."""
    if field.is_encoded:
        if not ((stored > 0) & (stored < MOST_ROW_BYTES)).all() or stored.sum(dtype=np.float64) >= MOST_BYTES:
            raise DamagedError(f"{path}: the lengths of {field.name!r} are not possible")
        return stored.astype(np.int64)
    expected = sizes.bytes(field)
    if not np.array_equal(stored, expected.astype(np.uint64)):
        raise DamagedError(f"{path}: the lengths of {field.name!r} do not follow from the sizes of its rows")
    return expected


def _begins(flat: Column, field: Field, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where the rows of a flat column begin in the file. They fill it."""
    dtype, after = np.dtype(field.stored_dtype), np.cumsum(lengths)
    if (flat.row_dtype, flat.row_shape) != (dtype, ()) or flat.run_rows * dtype.itemsize != lengths.sum():
        raise DamagedError(
            f"{flat.path}: expected {lengths.sum() // dtype.itemsize} numbers of {dtype.str} for its rows in "
            f"{field.name!r}, found {flat.run_rows} of {flat.row_dtype.str} {flat.row_shape}"
        )
    return np.asarray(flat.starts[0] + after - lengths)
