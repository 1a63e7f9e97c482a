"""The generations of a pack that a cache has kept: one is read while the store does not answer."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta, timezone

from readers.contract.errors import ReadError
from readers.contract.manifest import GENERATIONS, SHARDS, Manifest, generation_path
from readers.contract.receipt import SUFFIX
from readers.contract.shard_table import table_path
from readers.stores.cache import Cache, pack_folder
from readers.stores.store import Store


def kept_manifest(cache: Cache, store: Store, generation: int | None) -> Manifest | None:
    """Return the manifest of a generation that the cache has with its shard table; None means the newest one."""
    root = pack_folder(cache, store)
    every = (root / GENERATIONS).glob("*.json") if generation is None else [generation_path(root, generation)]
    kept = []
    for path in every:
        with suppress(ReadError, OSError):
            manifest = Manifest.read(root, path)
            if table_path(root, manifest.table).is_file():
                kept.append(manifest)
    return max(kept, key=lambda manifest: (manifest.created, manifest.generation), default=None)


def words_of(cache: Cache, store: Store, manifest: Manifest) -> str:
    """Say which generation the cache has, how old it is, and how much of it is there."""
    count = sum(1 for _ in (pack_folder(cache, store) / SHARDS).glob(f"*{SUFFIX}"))
    shards = f"{min(count, manifest.shards):,} of its {manifest.shards:,} shards"
    return f"generation {manifest.generation} of {manifest.created}{_age(manifest.created)}; {shards} are there"


def _age(created: str) -> str:
    try:
        seconds = datetime.now(timezone.utc) - datetime.fromisoformat(created.replace("Z", "+00:00"))
    except (ValueError, TypeError):  # a time without a zone, or none
        return ""
    hours = max(timedelta(), seconds) // timedelta(hours=1)
    return f", {hours // 24} days old" if hours >= 48 else f", {hours} hours old"
