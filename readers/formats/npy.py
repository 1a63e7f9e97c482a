"""npy: one plain `.npy` file per column."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from readers.contract.errors import DamagedError
from readers.contract.fields import KEY
from readers.formats.shard import Column, Shard, ShardFacts, damage_at, whole_column


def open_shard(stem: Path, facts: ShardFacts) -> Shard:
    """The shard whose files begin with `stem`."""
    columns = {name: _column(column_path(stem, name)) for name in (*(field.name for field in facts.fields), KEY)}
    return Shard(stem, facts, columns)


def column_path(stem: Path, name: str) -> Path:
    """Where a column of the shard lies."""
    return stem.with_name(f"{stem.name}.{name}.npy")


def _column(path: Path) -> Column:
    with damage_at(path, ValueError), path.open("rb") as file:
        shape, fortran, dtype = _header(file)
        start = file.tell()
    if fortran or dtype.hasobject or not shape:
        raise DamagedError(f"{path}: expected rows of plain numbers in C order")
    return whole_column(path, dtype, shape, start)


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(file)
    if version == (1, 0):
        return npy.read_array_header_1_0(file)
    return npy.read_array_header_2_0(file)
