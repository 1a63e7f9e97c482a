"""HDF5: one file with contiguous datasets; libhdf5 tells their offsets and is closed before any data is read."""

from __future__ import annotations

from pathlib import Path

import h5py

from readers.contract.errors import DamagedError
from readers.formats.column import Column, ShardFacts, damage_at, whole_column
from readers.formats.native import rows_of, stored_names
from readers.formats.shard import Shard

SUFFIX = ".h5"


def open_shard(stem: Path, facts: ShardFacts) -> Shard:
    """The shard whose file begins with `stem`."""
    path = stem.with_name(stem.name + SUFFIX)
    # Published files never change, so HDF5's lock only gets in the way (it fails on some network file systems).
    with damage_at(path, KeyError, RuntimeError, ValueError, TypeError), h5py.File(path, "r", locking=False) as file:
        stored = {name: _column(path, file, name) for name in stored_names(facts)}
    columns, sizes = rows_of(facts, stored)
    return Shard(path, facts, columns, sizes)


def _column(path: Path, file: h5py.File, name: str) -> Column:
    if not isinstance(file.get(name, getlink=True), h5py.HardLink):
        raise DamagedError(f"{path}: {name!r} is missing or leads out of the file")
    dataset = file[name]
    if not isinstance(dataset, h5py.Dataset) or dataset.id.get_offset() is None or dataset.external:
        raise DamagedError(f"{path}: {name!r} is not one contiguous, uncompressed dataset")
    return whole_column(path, dataset.dtype, dataset.shape, dataset.id.get_offset())
