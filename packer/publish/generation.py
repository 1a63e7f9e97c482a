"""Publish a generation: table first, manifest last, each by a rename. Until then the old generation is current."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.publish.atomic import write_atomic
from packer.publish.history import kept_numbers, read_history, record_change
from packer.publish.pin import check_pin
from packer.recipe.recipe import Recipe
from readers.contract.errors import DamagedError, NoPackError, ReadError
from readers.contract.fields import Field
from readers.contract.files import plain_file, sha256
from readers.contract.manifest import MANIFEST, Manifest, Split, generation_path
from readers.contract.parts import Part
from readers.contract.receipt import Receipt
from readers.contract.receipt_facts import AllReceipts, ReceiptFacts
from readers.contract.shard_table import RECORD, ShardTable, field_bits, table_header, table_path
from readers.contract.statistics import total


def commit(out: Path, recipe: Recipe, receipts: AllReceipts) -> Manifest:
    """Publish the shards of these receipts as the next generation. If the data did not change, keep the current one."""
    current = current_manifest(out)
    table = table_header(len(receipts)) + _records(receipts, [field.name for field in recipe.fields]).tobytes()
    digest = hashlib.sha256(table).hexdigest()
    manifest = Manifest(
        generation=_last_generation(out) + 1,
        created=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        storage=recipe.storage,
        fields=tuple(_as_packed(field, receipts) for field in recipe.fields),
        splits=_splits(receipts, recipe.fields),
        bytes=sum(facts.bytes for facts in receipts.values()),
        table=digest,
        recipe=recipe.to_json(),
    )
    _write_table(out, digest, table)
    if current is not None and current.same_data(manifest):
        _keep(out, current)
        return current
    check_pin(out)
    make_current(out, manifest)
    return manifest


def make_current(out: Path, manifest: Manifest) -> None:
    """Make a new or an older generation the current one, and record when the one before stopped being current."""
    current = current_manifest(out)
    publish(out, manifest, read_history(out).current if current is None else current.generation)


def publish(out: Path, manifest: Manifest, old: int | None = None) -> None:
    """Make a generation the current one, whose shards and table are there, and record that `old` is not any more."""
    text = manifest.to_text()
    Manifest.from_text(text, "the new manifest")  # fail here rather than publish what readers refuse
    _keep(out, manifest)
    if old is not None and old != manifest.generation:
        record_change(out, old, manifest.generation)
    write_atomic(out / MANIFEST, text)


def _keep(out: Path, manifest: Manifest) -> None:
    """Keep a copy of the manifest in `generations`. An equal file is not written again: a reader may have it open."""
    text, kept = manifest.to_text(), generation_path(out, manifest.generation)
    if not kept.is_file() or kept.read_bytes() != text.encode():
        write_atomic(kept, text)


def _records(receipts: AllReceipts, fields: Sequence[str]) -> NDArray[Any]:
    """Return the records of the shard table."""
    records, shards = np.zeros(len(receipts), RECORD), list(receipts.values())
    records["end"] = np.cumsum([facts.rows for facts in shards])
    records["bytes"] = [facts.bytes for facts in shards]
    records["fields"] = [field_bits(fields, facts.fields) for facts in shards]
    records["fingerprint"] = [facts.fingerprint.encode() for facts in shards]
    records["receipt"] = [facts.digest.encode() for facts in shards]
    return records


def known_digests(out: Path) -> dict[str, str]:
    """Return the SHA-256 of the receipt of each shard of the current generation, by the shard's fingerprint."""
    current = current_manifest(out)
    if current is None:
        return {}
    try:
        table = ShardTable.open(out, current)
    except DamagedError:
        return {}
    return {table.fingerprint(shard): table.receipt(shard) for shard in range(len(table))}


def _write_table(out: Path, digest: str, table: bytes) -> None:
    path = table_path(out, digest)
    if not path.is_file() or path.read_bytes() != table:
        write_atomic(path, table)


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
    """Return a field of the recipe as it is in these shards: optional if some lack it."""
    return replace(field, optional=any(field.name not in facts.fields for facts in receipts.values()))


def parts_of(shards: Sequence[Receipt | ReceiptFacts]) -> tuple[Part, ...]:
    """Return the parts of a split in the order of their shards."""
    members: dict[tuple[str, ...], list[int]] = {}
    for shard in shards:
        members.setdefault(shard.fields, []).append(shard.rows)
    return tuple(Part(fields, sum(rows), len(rows)) for fields, rows in members.items())


def current_manifest(out: Path) -> Manifest | None:
    """Return the current manifest; None if it is missing or damaged, because a build makes a new one."""
    try:
        return Manifest.load(out)
    except (NoPackError, DamagedError):
        return None


def _last_generation(out: Path) -> int:
    """The highest number ever given here, so that no generation is written over."""
    return max(kept_numbers(out), default=0)


def restore_manifest(out: Path) -> Manifest | None:
    """Put the current generation's own copy in the place of a damaged manifest; None if no copy is proven whole.

    A copy has a checksum of its own, and its table must have the SHA-256 that it names. The table has the SHA-256 of
    each receipt, and a receipt that of each file, so `packer verify` finds everything else.
    """
    number = read_history(out).current or _last_generation(out)
    try:
        manifest = Manifest.load(out, number)
        if manifest.generation != number or sha256(plain_file(out, table_path(out, manifest.table))) != manifest.table:
            return None
    except (ReadError, OSError):
        return None
    write_atomic(out / MANIFEST, manifest.to_text())
    return manifest
