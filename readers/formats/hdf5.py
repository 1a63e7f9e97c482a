"""HDF5: one file of contiguous data sets. `hdf5_metadata` reads its metadata, not libhdf5; then it is mapped."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from readers.contract.errors import DamagedError
from readers.formats.column import Column, ShardFacts, damage_at, whole_column
from readers.formats.contents import contents
from readers.formats.flat_columns import rows_of, stored_names
from readers.formats.hdf5_metadata import read_datasets
from readers.formats.shard import Shard

SUFFIX = ".h5"


def paths(stem: Path, facts: ShardFacts) -> list[Path]:
    """Return the files of the shard."""
    return [stem.with_name(stem.name + SUFFIX)]


def open_shard(stem: Path, facts: ShardFacts) -> Shard:
    """Open the shard whose file begins with `stem`."""
    (path,) = paths(stem, facts)
    with damage_at(path, ValueError), contents(path) as data:
        datasets = read_datasets(data, stored_names(facts, facts.fields))
        stored = {name: whole_column(path, *dataset) for name, dataset in datasets.items()}
    _check_apart(path, stored.values())
    columns, sizes = rows_of(facts, stored)
    return Shard(path, facts, columns, sizes)


def _check_apart(path: Path, columns: Iterable[Column]) -> None:
    """Refuse columns that overlap in the file."""
    spans = sorted((int(column.starts[0]), column.run_rows * column.row_bytes) for column in columns)
    if any(start + length > after for (start, length), (after, _) in pairwise(spans)):
        raise DamagedError(f"{path}: its columns overlap")
