"""Count the rows of a pack: what builds have counted, and what of older or copied packs is counted from the pixels."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from packer.errors import BadPair
from packer.progress import Progress, no_progress
from packer.publish.target import is_ours
from packer.shards.giant_rows import stored_statistics
from packer.shards.row_counts import CountedFields, RowCounts, load_counts, write_counts
from readers.contract.errors import DamagedError
from readers.machine import usable_cores
from readers.pack import Pack


def count_rows(pack: Pack, progress: Progress = no_progress) -> Iterator[RowCounts]:
    """Yield the counts of each shard of a pack, in order.

    What has to be counted is kept in the pack if it may be written to. Raises DamagedError if a row has impossible
    numbers.
    """
    with progress("counting", pack.manifest.rows, "rows") as advance, ThreadPoolExecutor(usable_cores()) as pool:
        for shard in range(len(pack.table)):
            rows = pack.table.rows(shard)
            counted = CountedFields.of(pack.manifest.fields, pack.fields_of(shard))
            stem = pack.stem(shard).name
            counts = load_counts(pack.root, stem, counted.classes, rows)
            if counts is None:
                counts = _count(pack, shard, counted, pool)
                if is_ours(pack.root):
                    write_counts(pack.root, stem, counts)
            advance(rows)
            yield counts


def _count(pack: Pack, number: int, counted: CountedFields, pool: ThreadPoolExecutor) -> RowCounts:
    """Count the rows of a shard from its pixels."""
    rows = pack.table.rows(number)
    counts = RowCounts.empty(counted.classes, rows)
    fields = [field for field in (counted.label, counted.picture) if field is not None]
    if not rows or not fields:
        return counts
    shard = pack.shard(number)

    def count(row: int) -> None:
        try:
            statistics = [stored_statistics(shard, field, row) for field in fields]
        except BadPair as bad:
            raise DamagedError(f"{pack.stem(number)}: the row {shard.key(row)!r} {bad}") from bad
        counts.put(row, counted, fields, statistics)

    for _ in pool.map(count, range(rows)):
        pass
    return counts
