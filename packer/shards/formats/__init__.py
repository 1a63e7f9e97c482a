"""Write the arrays of a shard to files, with one module per storage format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.fields import END, Field
from readers.contract.manifest import STORAGES

ShardArrays = Mapping[str, NDArray[Any]]
"""The columns of a shard by name, each with one row per sample: the fields in order, then the keys.

In a flat field rows lie back to back, and a column END has the index after each. Native rows have a column SIZE.
"""


@dataclass(frozen=True)
class Writer:
    """The functions of a format: `write(stem, arrays, fields)` writes files whose names begin with `stem`.

    It returns their paths with the BLAKE3 of each.
    """

    write: Callable[[Path, ShardArrays, Sequence[Field]], dict[Path, str]]
    tool: Callable[[], str]
    """The library that decides the bytes, with its version."""


@contextmanager
def as_os_error(kind: type[Exception]) -> Iterator[None]:
    """Turn errors of a format's library into OSError: while it writes, the cause is the disk."""
    try:
        yield
    except kind as error:
        raise OSError(str(error)) from error


def row_lengths(arrays: ShardArrays, field: Field) -> NDArray[np.int64]:
    """Return the bytes of each row of a field."""
    column = arrays[field.name]
    if not field.flat:
        return np.full(len(column), column[:1].nbytes)
    ends = arrays[END.format(field.name)].astype(np.int64) * column.itemsize
    return np.asarray(np.diff(ends, prepend=0), np.int64)


def writer(storage: str) -> Writer:
    """Return the writer of a format. Its module is imported now: a build needs only the library of its own format."""
    if storage not in STORAGES:
        raise ValueError(f"{storage!r} is not a storage format; expected one of {', '.join(STORAGES)}")
    module = import_module(f"packer.shards.formats.{storage}")
    return Writer(module.write, module.tool)
