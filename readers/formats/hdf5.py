"""HDF5: one file with contiguous datasets; libhdf5 tells their offsets and is closed before any data is read."""

from __future__ import annotations

from pathlib import Path

import h5py

from readers.contract.errors import DamagedError
from readers.contract.fields import KEY
from readers.formats.shard import Column, Shard, ShardFacts, damage_at, whole_column

SUFFIX = ".h5"


def open_shard(stem: Path, facts: ShardFacts) -> Shard:
    """The shard whose file begins with `stem`."""
    path = stem.with_name(stem.name + SUFFIX)
    names = (*(field.name for field in facts.fields), KEY)
    # Published files never change, so HDF5's lock only gets in the way (it fails on some network file systems).
    with damage_at(path, KeyError, RuntimeError, ValueError, TypeError), h5py.File(path, "r", locking=False) as file:
        columns = {name: _column(path, file, name) for name in names}
    return Shard(path, facts, columns)


def _column(path: Path, file: h5py.File, name: str) -> Column:
    if not isinstance(file.get(name, getlink=True), h5py.HardLink):
        raise DamagedError(f"{path}: {name!r} is missing or leads out of the file")
    dataset = file[name]
    if not isinstance(dataset, h5py.Dataset) or dataset.id.get_offset() is None or dataset.external:
        raise DamagedError(f"{path}: {name!r} is not one contiguous, uncompressed dataset")
    return whole_column(path, dataset.dtype, dataset.shape, dataset.id.get_offset())
