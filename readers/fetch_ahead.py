"""Fetching ahead: the shards of coming batches are brought into the cache before the batches are read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain, islice

from readers.batches import Batches
from readers.contract.errors import RequestError
from readers.epoch import BatchRows
from readers.stores.ahead import Ahead

RANKS = "LOCAL_WORLD_SIZE"
"""The environment variable of torchrun: the number of ranks on this machine, which share a cache."""


def fetch_ahead(batches: Batches, coming: Iterator[BatchRows], at_once: int, ranks: int) -> Ahead | None:
    """Begin to fetch the shards of `coming` batches; None if there is nothing to fetch.

    Up to half of the budget waits for its batches, over all `ranks` of this machine. Raises RequestError if the shards
    of the first batches that are read `at_once` do not fit.
    """
    pack = batches.reader.pack
    if pack.cached is None or all(map(pack.has_all, batches.rows.ranges)):
        return None
    shards = (pack.shards_of(batches.in_pack(batch)) for batch in coming)
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
