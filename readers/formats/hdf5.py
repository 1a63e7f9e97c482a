"""HDF5: one file with contiguous datasets. libhdf5 reports their offsets, and is closed before data is read."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import h5py

from readers.contract.errors import DamagedError
from readers.formats.column import Column, ShardFacts, damage_at, whole_column
from readers.formats.shard import Shard
from readers.formats.varying_size import rows_of, stored_names

SUFFIX = ".h5"
_RAISED = LookupError, RuntimeError, ValueError, TypeError, OverflowError, NotImplementedError


def paths(stem: Path, facts: ShardFacts) -> list[Path]:
    """Return the files of the shard."""
    return [stem.with_name(stem.name + SUFFIX)]


def open_shard(stem: Path, facts: ShardFacts) -> Shard:
    """Open the shard whose file begins with `stem`."""
    (path,) = paths(stem, facts)
    # Published files never change, so HDF5's lock is not needed (and it fails on some network file systems).
    with damage_at(path, *_RAISED), h5py.File(path, "r", locking=False) as file:
        stored = {name: _column(path, file, name) for name in stored_names(facts)}
    _check_apart(path, stored.values())
    columns, sizes = rows_of(facts, stored)
    return Shard(path, facts, columns, sizes)


def _column(path: Path, file: h5py.File, name: str) -> Column:
    if not isinstance(file.get(name, getlink=True), h5py.HardLink):
        raise DamagedError(f"{path}: {name!r} is missing or leads out of the file")
    dataset = file[name]
    if not isinstance(dataset, h5py.Dataset) or dataset.id.get_offset() is None:
        raise DamagedError(f"{path}: {name!r} is not one contiguous, uncompressed dataset")
    if dataset.external or dataset.is_virtual or dataset.chunks is not None or dataset.dtype.hasobject:
        raise DamagedError(f"{path}: {name!r} does not have its numbers in one piece of this file")
    return whole_column(path, dataset.dtype, dataset.shape, dataset.id.get_offset())


def _check_apart(path: Path, columns: Iterable[Column]) -> None:
    """Refuse columns that overlap in the file."""
    spans = sorted((int(column.starts[0]), column.run_rows * column.row_bytes) for column in columns)
    if any(start + length > after for (start, length), (after, _) in pairwise(spans)):
        raise DamagedError(f"{path}: its columns overlap")
