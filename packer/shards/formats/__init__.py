"""Writing a shard: one file per format turns a shard's arrays into files; nothing else knows formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from readers.contract.fields import Field
from readers.contract.manifest import STORAGES

Arrays = Mapping[str, NDArray[Any]]
"""The columns of a shard by name, each with one row per sample: the fields in order, then the keys.

Native rows are flat: a field's rows lie back to back, and beside them is where each begins (START), and its SIZE.
"""


@dataclass(frozen=True)
class Writer:
    """A format's way to write: `write(stem, arrays, fields)` makes files that begin with `stem`.

    It returns them with the SHA-256 of each.
    """

    write: Callable[[Path, Arrays, Sequence[Field]], dict[Path, str]]
    tool: Callable[[], str]
    """The library that decides the bytes, with its version."""


@contextmanager
def as_os_error(kind: type[Exception]) -> Iterator[None]:
    """What a format's library raises while writing is the disk's trouble, whatever its class."""
    try:
        yield
    except kind as error:
        raise OSError(str(error)) from error


def writer(storage: str) -> Writer:
    """The writer of a format. Imported when asked for: a build needs only the library of its own format."""
    if storage not in STORAGES:
        raise ValueError(f"{storage!r} is no format; there are {', '.join(STORAGES)}")
    module = import_module(f"packer.shards.formats.{storage}")
    return Writer(module.write, module.tool)
