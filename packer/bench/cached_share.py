"""Estimate which part of a split is in the page cache."""

from __future__ import annotations

import random

from readers.pack import Pack

SAMPLES, NEIGHBOURS = 64, 8
"""Random rows to check, and the rows to check from each of them on. Each random row may open a shard."""


def cached_share(pack: Pack, rows: range) -> float | None:
    """Return the part of the rows that is in memory, from 0 to 1; None if the kernel does not report it."""
    cached = pages = 0
    for first in sorted(random.sample(rows, min(SAMPLES, len(rows)))):
        number, index = pack.table.locate(first)
        shard = pack.shard(number)
        neighbours = range(index, min(index + NEIGHBOURS, shard.facts.rows))
        for field in filter(lambda field: shard.has(field.name), pack.fields):
            resident = shard.resident(field, neighbours)
            if resident is None:
                return None
            cached, pages = cached + resident[0], pages + resident[1]
    return cached / pages if pages else None
