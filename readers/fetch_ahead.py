"""Fetching ahead: the shards of coming batches are brought into the cache before the batches are read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Protocol

from readers.contract.errors import RequestError
from readers.live_pack import LivePack, Wishes
from readers.pack import Pack
from readers.stores.ahead import Ahead

RANKS = "LOCAL_WORLD_SIZE"
"""The environment variable of torchrun: the number of ranks on this machine, which share a cache."""


class Fetching(Protocol):
    """Shards of coming batches that are being fetched."""

    def received(self) -> None:
        """Note that the next batch was received."""

    def close(self) -> None:
        """End the fetching."""


class AllFetching:
    """The shards of several packs, or of rows and their partners, that are being fetched."""

    def __init__(self, parts: Sequence[Fetching]) -> None:
        self._parts = parts

    @classmethod
    def of(cls, parts: Iterable[Fetching | None]) -> Fetching | None:
        """Return the fetching of all parts; None if there is nothing to fetch of any."""
        begun = [part for part in parts if part is not None]
        return cls(begun) if begun else None

    def received(self) -> None:
        """Note that the next batch was received."""
        for part in self._parts:
            part.received()

    def close(self) -> None:
        """End the fetching of every part."""
        for part in self._parts:
            part.close()


def fetch_ahead(
    pack: Pack, ranges: Iterable[range], coming: Iterator[Sequence[int]], at_once: int, ranks: int
) -> Fetching | None:
    """Begin to fetch the shards of `coming` batches of rows of a pack; None if all rows in `ranges` are there.

    Up to half of the budget waits for its batches, over all `ranks` of this machine. Raises RequestError if the shards
    of the first batches that are read `at_once` do not fit.
    """
    are_there = all(map(pack.has_all, ranges))
    shards = (pack.shards_of(rows) for rows in coming)
    if isinstance(pack, LivePack) and not (are_there and pack.live.last_words()):
        return Wishes(pack.live, iter(()) if are_there else shards)
    if are_there or pack.cached is None:
        return None
    first = list(islice(shards, at_once))
    needed = sum(pack.table.bytes(shard) for shard in {shard for batch in first for shard in batch})
    budget = pack.cached.cache.budget.limit()
    if needed > budget:
        raise RequestError(
            f"{pack.cached.url}: {at_once} batches are read at once, and their shards have {needed:,} bytes; "
            f"cache_bytes={budget} is too little: give more, or a smaller batch_size, fewer threads or "
            'shuffle="window"'
        )
    ranks_text = os.environ.get(RANKS, "")
    share = budget // 2 // (int(ranks_text) if ranks_text.isdigit() and int(ranks_text) else ranks)
    return Ahead(chain(first, shards), pack.table.bytes, pack.fetch, pack.release, max(needed, share))
