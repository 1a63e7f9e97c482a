"""npy: one plain `.npy` file per column."""

from __future__ import annotations

import re
import struct
from pathlib import Path

from readers.contract.errors import DamagedError
from readers.formats.column import Column, ShardFacts, damage_at, plain_dtype, whole_column
from readers.formats.native import rows_of, stored_names
from readers.formats.shard import Shard

_START = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(rb"\{'descr': '([|<][ufS]\d+)', 'fortran_order': False, 'shape': \(([\d, ]+)\), \} *\n")


def open_shard(stem: Path, facts: ShardFacts) -> Shard:
    """The shard whose files begin with `stem`."""
    columns, sizes = rows_of(facts, {name: _column(column_path(stem, name)) for name in stored_names(facts)})
    return Shard(stem, facts, columns, sizes)


def paths(stem: Path, facts: ShardFacts) -> list[Path]:
    """The files of the shard."""
    return [column_path(stem, name) for name in stored_names(facts)]


def column_path(stem: Path, name: str) -> Path:
    """Where a column of the shard lies."""
    return stem.with_name(f"{stem.name}.{name}.npy")


def _column(path: Path) -> Column:
    """Read the header as our packer writes it; numpy's own reader evaluates whatever expression stands there."""
    with damage_at(path), path.open("rb") as file:
        start = file.read(10)
        header = file.read(struct.unpack("<H", start[8:])[0]) if len(start) == 10 else b""
    found = _HEADER.fullmatch(header)
    if start[:8] != _START or found is None:
        raise DamagedError(f"{path}: its header is not that of a .npy file of plain numbers; run packer verify")
    with damage_at(path, ValueError, TypeError, OverflowError):
        shape = tuple(int(part) for part in found[2].decode().split(",") if part.strip())
        return whole_column(path, plain_dtype(found[1].decode()), shape, len(start) + len(header))
