"""The receipt of a shard that is on the disk: its fingerprint, and whether all of the shard is there."""

from __future__ import annotations

from pathlib import Path

from readers.contract.errors import DamagedError
from readers.contract.json_entry import fingerprint
from readers.contract.place import places_json
from readers.contract.receipt import SUFFIX, Receipt


def content_fingerprint(receipt: Receipt) -> str:
    """Return the fingerprint of a shard: of its recipe, sources, rejects, notes, counts and places."""
    facts: list[object] = [
        receipt.recipe,
        receipt.split,
        receipt.fields,
        receipt.sources,
        receipt.rejects,
        receipt.notes,
    ]
    if receipt.counts:
        facts.append(receipt.counts)
    if receipt.places:
        facts.append(places_json(receipt.places))
    return fingerprint(facts)[:32]


def whole_shard(path: Path) -> Receipt | None:
    """Return the receipt at this path if all files of its shard have the expected sizes."""
    try:
        receipt = Receipt.load(path)
        whole = all(path.with_name(receipt.stem + file.suffix).stat().st_size == file.bytes for file in receipt.files)
    except (DamagedError, OSError):
        return None
    return receipt if whole and path.name == receipt.stem + SUFFIX else None
