"""Opening a shard: one file per format finds where its columns lie; `shard.py` maps and reads them all the same way."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import cast

from readers.contract.manifest import STORAGES
from readers.formats.column import ShardFacts
from readers.formats.shard import Shard

Opener = Callable[[Path, ShardFacts], Shard]


def opener(storage: str) -> Opener:
    """The `open_shard` of a format. Imported when asked for: a pack needs only the library of its own format."""
    if storage not in STORAGES:
        raise ValueError(f"{storage!r} is no format; there are {', '.join(STORAGES)}")
    return cast(Opener, import_module(f"readers.formats.{storage}").open_shard)
