"""Opening a shard: one file per format finds where its columns lie; `shard.py` maps and reads them all the same way."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import cast

from readers.contract.manifest import STORAGES
from readers.formats.column import ShardFacts
from readers.formats.shard import Shard

Opener = Callable[[Path, ShardFacts], Shard]


Paths = Callable[[Path, ShardFacts], list[Path]]


def opener(storage: str) -> Opener:
    """The `open_shard` of a format. Imported when asked for: a pack needs only the library of its own format."""
    return cast(Opener, _module(storage).open_shard)


def shard_paths(storage: str) -> Paths:
    """The `paths` of a format: which files a shard with rows has."""
    return cast(Paths, _module(storage).paths)


def _module(storage: str) -> ModuleType:
    if storage not in STORAGES:
        raise ValueError(f"{storage!r} is no format; there are {', '.join(STORAGES)}")
    return import_module(f"readers.formats.{storage}")
