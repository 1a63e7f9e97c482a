"""The next manifest and its table, computed from the facts of all receipts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.fields import Field
from readers.contract.manifest import Manifest, Split
from readers.contract.parts import Part
from readers.contract.receipt import Receipt
from readers.contract.receipt_facts import AllReceipts, ReceiptFacts
from readers.contract.shard_table import RECORD, field_bits, table_header
from readers.contract.statistics import total

if TYPE_CHECKING:
    from packer.recipe.recipe import Recipe


def next_manifest(number: int, recipe: Recipe, receipts: AllReceipts) -> tuple[Manifest, bytes]:
    """Return the manifest of generation `number`, and its shard table."""
    created = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    without_shards = Manifest(number, created, recipe.storage, recipe.fields, (), 0, "", recipe.to_json())
    return remade_manifest(without_shards, receipts)


def remade_manifest(before: Manifest, receipts: AllReceipts) -> tuple[Manifest, bytes]:
    """Return a manifest that differs from another only in its shards, and its shard table."""
    fields = before.fields
    table = table_header(len(receipts)) + _records(receipts, [field.name for field in fields]).tobytes()
    after = replace(
        before,
        fields=tuple(_as_packed(field, receipts) for field in fields),
        splits=_splits(receipts, fields),
        bytes=sum(facts.bytes for facts in receipts.values()),
        table=hashlib.sha256(table).hexdigest(),
    )
    return after, table


def _records(receipts: AllReceipts, fields: Sequence[str]) -> NDArray[Any]:
    """Return the records of the shard table."""
    records, shards = np.zeros(len(receipts), RECORD), list(receipts.values())
    records["end"] = np.cumsum([facts.rows for facts in shards])
    records["bytes"] = [facts.bytes for facts in shards]
    records["fields"] = [field_bits(fields, facts.fields) for facts in shards]
    records["fingerprint"] = [facts.fingerprint.encode() for facts in shards]
    records["receipt"] = [facts.digest.encode() for facts in shards]
    return records


def _splits(receipts: AllReceipts, fields: Sequence[Field]) -> tuple[Split, ...]:
    """Return the splits in the order of their shards."""
    return tuple(
        Split(
            name=name,
            rows=sum(facts.rows for facts in shards),
            shards=len(shards),
            rejects=sum(len(facts.rejects) for facts in shards),
            parts=parts_of(shards),
            statistics=total(fields, [receipts.statistics[name]]),
        )
        for name, shards in receipts.splits.items()
    )


def _as_packed(field: Field, receipts: AllReceipts) -> Field:
    """Return a field of the recipe for these shards: optional if some lack it."""
    return replace(field, optional=any(field.name not in facts.fields for facts in receipts.values()))


def parts_of(shards: Sequence[Receipt | ReceiptFacts]) -> tuple[Part, ...]:
    """Return the parts of a split in the order of their shards."""
    members: dict[tuple[str, ...], list[int]] = {}
    for shard in shards:
        members.setdefault(shard.fields, []).append(shard.rows)
    return tuple(Part(fields, sum(rows), len(rows)) for fields, rows in members.items())
