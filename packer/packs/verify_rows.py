"""The deep check of a shard: every row as readers return it, against its receipt and the class table."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from packer.errors import BadPair
from packer.shards.kinds.by_field import check_row
from readers.contract.receipt import Receipt
from readers.contract.statistics import no_rows
from readers.formats.shard import Shard


def row_crc32(shard: Shard, row: int) -> int:
    """The checksum of a row: image, then label."""
    crc32 = 0
    for field in shard.facts.fields:
        crc32 = zlib.crc32(shard.row(field, row).data, crc32)
    return crc32


def wrong_rows(shard: Shard, receipt: Receipt) -> Iterator[tuple[str | None, str]]:
    """The key and a message for each wrong row of a shard whose files are whole; no key if its sums are wrong."""
    fields = shard.facts.fields
    found = no_rows(fields)
    for row, key in enumerate(receipt.keys):
        for wrong in _wrong_row(shard, row, receipt):
            yield key, f"the row {key!r} {wrong}"
        try:
            counted = [check_row(field, shard.row(field, row)) for field in fields]
        except BadPair as bad:
            yield key, f"the row {key!r} {bad}"
        else:
            found = {name: ours + row for (name, ours), row in zip(found.items(), counted, strict=True)}
    if found != receipt.statistics:
        yield None, "its statistics, such as its counts of classes, are not those in its receipt"


def _wrong_row(shard: Shard, row: int, receipt: Receipt) -> Iterator[str]:
    if (key := shard.key(row)) != receipt.keys[row]:
        yield f"has the key {key!r}"
    if row_crc32(shard, row) != receipt.crc32[row]:
        yield "does not have its checksum"
