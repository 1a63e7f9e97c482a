"""The keys of a pack, read without any picture: OpenCV is not imported."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from readers.contract.manifest import ALL
from readers.pack import Pack

KEYS_TOGETHER = 1000
"""Keys that are in memory at the same time while all are listed."""


def keys_of_pack(out: str | PathLike[str], split: str | None = None) -> Iterator[list[str]]:
    """Yield the keys of all rows, or of the rows of a split, in their order, some at a time."""
    pack = Pack.open(Path(out))
    rows = pack.rows_of(split or ALL)
    for start in range(rows.start, rows.stop, KEYS_TOGETHER):
        some = range(start, min(start + KEYS_TOGETHER, rows.stop))
        yield [pack.shard(number).key(inside) for number, inside in map(pack.table.locate, some)]
