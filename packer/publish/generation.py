"""Publish a generation: table first, manifest last, each by a rename. Until then the old generation is current."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.publish.atomic import write_atomic
from packer.recipe.recipe import Recipe
from readers.contract.errors import DamagedError, NoPackError
from readers.contract.manifest import GENERATIONS, MANIFEST, Manifest, Split, generation_path
from readers.contract.pixel_sums import Pixels
from readers.contract.receipt import Receipt
from readers.contract.shard_table import RECORD, table_header, table_path


def commit(out: Path, recipe: Recipe, receipts: Sequence[Receipt]) -> Manifest:
    """Publish the shards of these receipts as the next generation. If the data did not change, keep the current one."""
    table = table_header(len(receipts)) + _records(receipts).tobytes()
    digest = hashlib.sha256(table).hexdigest()
    current = current_manifest(out)
    manifest = Manifest(
        generation=_last_generation(out) + 1,
        created=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        storage=recipe.storage,
        fields=recipe.fields,
        classes=recipe.classes,
        splits=_splits(receipts),
        bytes=sum(receipt.bytes for receipt in receipts),
        table=digest,
        recipe=recipe.to_json(),
    )
    _write_table(out, digest, table)
    if current is not None and current.same_data(manifest):
        _keep(out, current)
        return current
    publish(out, manifest)
    return manifest


def publish(out: Path, manifest: Manifest) -> None:
    """Make a generation the current one. Its shards and table must exist."""
    text = manifest.to_text()
    Manifest.from_text(text, "the new manifest")  # fail here rather than publish what readers refuse
    _keep(out, manifest)
    write_atomic(out / MANIFEST, text)


def _keep(out: Path, manifest: Manifest) -> None:
    """Keep a copy of the manifest in `generations`. An equal file is not written again: a reader may have it open."""
    text, kept = manifest.to_text(), generation_path(out, manifest.generation)
    if not kept.is_file() or kept.read_bytes() != text.encode():
        write_atomic(kept, text)


def _records(receipts: Sequence[Receipt]) -> NDArray[Any]:
    """Return the records of the shard table."""
    records = np.zeros(len(receipts), RECORD)
    records["end"] = np.cumsum([receipt.rows for receipt in receipts])
    records["bytes"] = [receipt.bytes for receipt in receipts]
    records["fingerprint"] = [receipt.fingerprint.encode() for receipt in receipts]
    records["receipt"] = [hashlib.sha256(receipt.to_text().encode()).hexdigest().encode() for receipt in receipts]
    return records


def _write_table(out: Path, digest: str, table: bytes) -> None:
    path = table_path(out, digest)
    if not path.is_file() or path.read_bytes() != table:
        write_atomic(path, table)


def _splits(receipts: Sequence[Receipt]) -> tuple[Split, ...]:
    """Return the splits in the order of their shards."""
    members: dict[str, list[Receipt]] = {}
    for receipt in receipts:
        members.setdefault(receipt.split, []).append(receipt)
    return tuple(
        Split(
            name=name,
            rows=sum(shard.rows for shard in shards),
            shards=len(shards),
            rejects=sum(len(shard.rejects) for shard in shards),
            pixels=functools.reduce(Pixels.__add__, (shard.pixels for shard in shards)),
        )
        for name, shards in members.items()
    )


def current_manifest(out: Path) -> Manifest | None:
    """Return the current manifest; None if it is missing or damaged, because a build makes a new one."""
    try:
        return Manifest.load(out)
    except (NoPackError, DamagedError):
        return None


def _last_generation(out: Path) -> int:
    """Return the highest number of any generation, so that no generation is overwritten."""
    numbers = [int(path.stem) for path in (out / GENERATIONS).glob("*.json") if path.stem.isdigit()]
    return max(numbers, default=0)
