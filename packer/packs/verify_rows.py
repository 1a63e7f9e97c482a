"""The rows of a shard against its receipt: the checksum of each field; and deep, all that readers return of a row."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import NamedTuple

from packer.errors import BadPair
from readers.contract.errors import DamagedError
from readers.contract.receipt import Receipt
from readers.contract.statistics import no_rows
from readers.formats.shard import Shard


class WrongRow(NamedTuple):
    """A wrong row of a shard, and the field that is wrong, if they are known."""

    message: str
    row: str | None = None
    """The key of the row."""
    field: str | None = None


def damaged_rows(shard: Shard, receipt: Receipt) -> Iterator[WrongRow]:
    """Yield each field of a row that does not have its checksum, of a shard with a damaged file."""
    for row, key in enumerate(receipt.keys):
        for name in _other_checksums(shard, row, receipt):
            yield WrongRow(f"the field {name!r} of the row {key!r} is damaged", key, name)


def wrong_rows(shard: Shard, receipt: Receipt) -> Iterator[WrongRow]:
    """Yield all that is wrong with the rows of a shard whose files are whole."""
    from packer.shards.giant_rows import stored_statistics  # a check of the files alone needs no decoder

    statistics = no_rows(shard.facts.fields)
    for row, key in enumerate(receipt.keys):
        if (stored := shard.key(row)) != key:
            yield WrongRow(f"the row {key!r} has the key {stored!r}", key)
        for name in _other_checksums(shard, row, receipt):
            yield WrongRow(f"the field {name!r} of the row {key!r} does not have its checksum", key, name)
        for field in shard.facts.fields:
            try:
                statistics[field.name] += stored_statistics(shard, field, row)
            except BadPair as bad:
                yield WrongRow(f"the row {key!r} {bad}", key, field.name)
            except DamagedError as error:
                yield WrongRow(str(error).removeprefix(f"{shard.path}: "), key, field.name)
    exact = [field.name for field in shard.facts.fields if not field.is_jpeg]  # decoders round differently
    if any(statistics[name] != receipt.statistics[name] for name in exact):
        yield WrongRow("its statistics, such as its counts of classes, are not those in its receipt")


def _other_checksums(shard: Shard, row: int, receipt: Receipt) -> Iterator[str]:
    """Yield the fields of a row that do not have the checksum of the receipt."""
    for field in shard.facts.fields:
        if zlib.crc32(shard.stored(field, row).data) != receipt.crc32[field.name][row]:
            yield field.name
