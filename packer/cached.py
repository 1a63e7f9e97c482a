"""How much of a pack is in memory, the page cache, already: by a sample of its rows."""

from __future__ import annotations

import random

from readers.pack import Pack

PLACES, NEIGHBOURS = 64, 8
"""Rows are looked at in so many places, each of which may mean to open a shard, and so many in each."""


def cached_share(pack: Pack, rows: range) -> float | None:
    """From 0 to 1; None where the kernel does not tell."""
    there = pages = 0
    for first in sorted(random.sample(rows, min(PLACES, len(rows)))):
        number, place = pack.table.locate(first)
        shard = pack.shard(number)
        neighbours = range(place, min(place + NEIGHBOURS, shard.facts.rows))
        for field in pack.manifest.fields:
            told = shard.resident(field, neighbours)
            if told is None:
                return None
            there, pages = there + told[0], pages + told[1]
    return there / pages if pages else None
