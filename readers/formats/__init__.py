"""A shard of each format as memory-mapped columns.

One module for each format finds where the columns are in the `contents` of its files, without the format's library,
which trusts files.
`column` describes a column as offsets in a file, `flat_columns` one whose rows differ in length because `row_sizes` do.
`shard` checks columns against the pack, maps the files, or reads them where no map is possible, and copies rows, the
same way for all formats. `page_cache` asks
the kernel to read rows ahead or to drop them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias, cast

from readers.contract.manifest import STORAGES

if TYPE_CHECKING:
    from readers.formats.column import ShardFacts
    from readers.formats.shard import Shard

Opener: TypeAlias = "Callable[[Path, ShardFacts], Shard]"
Paths: TypeAlias = "Callable[[Path, ShardFacts], list[Path]]"


def opener(storage: str) -> Opener:
    """Return `open_shard` of a format. It is imported here: a pack needs only the library of its own format."""
    return cast("Opener", _module(storage).open_shard)


def shard_paths(storage: str) -> Paths:
    """Return `paths` of a format, the function that lists the files of a shard."""
    return cast("Paths", _module(storage).paths)


def _module(storage: str) -> ModuleType:
    if storage not in STORAGES:
        raise ValueError(f"{storage!r} is not a format; expected one of {', '.join(STORAGES)}")
    return import_module(f"readers.formats.{storage}")
