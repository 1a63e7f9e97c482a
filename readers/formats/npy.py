"""npy: one plain `.npy` file for each column."""

from __future__ import annotations

import os
import re
from pathlib import Path

from readers.contract.errors import DamagedError
from readers.contract.fields import KEY
from readers.contract.system import open_to_read, read_at
from readers.formats.column import Column, ShardFacts, damage_at, load_texts, plain_dtype, whole_column
from readers.formats.flat_columns import rows_of, stored_names
from readers.formats.shard import Shard

LIKELY = 256
"""Enough bytes for the header of a column, unless its shape is very long."""

_START = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(rb"\{'descr': '([|<][iufS]\d+)', 'fortran_order': False, 'shape': \(([\d, ]+)\), \} *\n")


def open_shard(stem: Path, facts: ShardFacts) -> Shard:
    """Open the shard whose files begin with `stem`."""
    names = [name for name in stored_names(facts, facts.read) if name != KEY]
    columns, sizes = rows_of(facts, {name: _column(column_path(stem, name)) for name in names})
    return Shard(stem, facts, columns, sizes, lambda: load_texts(_column(column_path(stem, KEY)), facts.rows))


def paths(stem: Path, facts: ShardFacts) -> list[Path]:
    """Return the files of the shard that are read."""
    return [column_path(stem, name) for name in stored_names(facts, facts.read)]


def column_path(stem: Path, name: str) -> Path:
    """Return the file of a column of the shard."""
    return Path(f"{stem}.{name}.npy")


def _column(path: Path) -> Column:
    """Read a header in the form that our packer writes. numpy's own reader evaluates any expression in it."""
    start = _head(path, LIKELY)
    end = 10 + int.from_bytes(start[8:10], "little")
    header = (start if end <= LIKELY else _head(path, end))[10:end]
    match = _HEADER.fullmatch(header)
    if start[:8] != _START or len(header) < end - 10 or match is None:
        raise DamagedError(f"{path}: its header is not one of a .npy file of plain numbers; run packer verify")
    with damage_at(path, ValueError, TypeError, OverflowError):
        shape = tuple(int(part) for part in match[2].decode().split(",") if part.strip())
        return whole_column(path, plain_dtype(match[1].decode()), shape, end)


def _head(path: Path, count: int) -> bytes:
    """Return the first bytes of a file. A file object, of every column of every shard, takes five times as long."""
    with damage_at(path):
        file = open_to_read(path)
        try:
            return read_at(file, count, 0)
        finally:
            os.close(file)
