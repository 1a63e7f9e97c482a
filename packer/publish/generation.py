"""Publish a generation in a folder or a bucket: table, claim, manifest. Until then the old generation is current.

Who creates `generations/N.json` publishes generation N. The manifest must be the one that was read at the start, so of
builds that race, one publishes and the others see it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packer.errors import BusyError
from packer.publish.atomic import store_errors
from packer.publish.conditional_writes import created, replaced
from packer.publish.history import kept_numbers, read_history, record_change
from packer.publish.next_manifest import next_manifest
from packer.publish.pin import check_pin
from readers.contract.errors import DamagedError, ReadError
from readers.contract.manifest import MANIFEST, Manifest, generation_path
from readers.contract.receipt_facts import AllReceipts
from readers.contract.shard_table import ShardTable, table_path
from readers.stores.folder_store import store_of
from readers.stores.store import Store, Version

if TYPE_CHECKING:
    from packer.recipe.recipe import Recipe


@dataclass(frozen=True)
class Current:
    """The manifest of a store, None if it is missing or damaged, and its version, None if it is missing."""

    manifest: Manifest | None
    version: Version | None


@store_errors()
def commit(out: Path | Store, recipe: Recipe, receipts: AllReceipts, before: Current | None = None) -> Manifest:
    """Publish the shards of these receipts as the next generation. If the data did not change, keep the current one.

    `before` is what was current when the build began, where no lock keeps it. Raises BusyError if another build has
    published other data since then.
    """
    store = store_of(out)
    before = before or read_current(store)
    current = before.manifest
    manifest, table = next_manifest(max(kept_numbers(store), default=0) + 1, recipe, receipts)
    put_table(store, manifest.table, table)
    if current is not None and current.same_data(manifest):
        _keep(store, current)
        return current
    check_pin(store)
    try:
        make_current(store, manifest, before)
    except BusyError:
        now = read_current(store).manifest
        if now is None or not now.same_data(manifest):
            raise
        return now  # another coordinator built the same
    return manifest


@store_errors()
def make_current(out: Path | Store, manifest: Manifest, before: Current | None = None) -> None:
    """Make a new or an older generation the current one, and record when the one before stopped being current."""
    store = store_of(out)
    before = before or read_current(store)
    old = read_history(store).current if before.manifest is None else before.manifest.generation
    publish(store, manifest, old, before)


@store_errors()
def publish(out: Path | Store, manifest: Manifest, old: int | None = None, before: Current | None = None) -> None:
    """Make a generation the current one, whose shards and table are there, and record that `old` is not any more.

    The current manifest must still be the one that was read as `before`, else BusyError is raised: another process has
    published.
    """
    store, text = store_of(out), manifest.to_text()
    before = before or read_current(store)
    Manifest.from_text(text, "the new manifest")  # fail here rather than publish what readers refuse
    _claim(store, manifest.generation, text.encode())
    if old is not None and old != manifest.generation:
        record_change(store, old, manifest.generation)
    if not replaced(store, MANIFEST, text.encode(), before.version):
        now = read_current(store).manifest
        if now is not None and old is not None and now.generation not in (old, manifest.generation):
            record_change(store, old, now.generation)
        raise _lost(store)


def _claim(store: Store, number: int, text: bytes) -> None:
    """Create the kept copy of a manifest: who creates it publishes this generation. A damaged one does not count."""
    name = _kept_name(number)
    if not created(store, name, text):
        kept, version = store.read(name)
        if _parsed(kept, name) is not None or not replaced(store, name, text, version):
            raise _lost(store)


def _lost(store: Store) -> BusyError:
    return BusyError(f"{store.url}: another build has published, or is about to; try again to build on its generation")


def _keep(store: Store, manifest: Manifest) -> None:
    """Keep a copy of the current manifest. An equal file is not written again: a reader may have it open."""
    _put_new(store, _kept_name(manifest.generation), manifest.to_text().encode())


def put_table(store: Store, digest: str, table: bytes) -> None:
    """Write a shard table with this SHA-256, unless it is there."""
    _put_new(store, table_path(Path(), digest).as_posix(), table)


def _put_new(store: Store, name: str, data: bytes) -> None:
    """Write an object, unless it has these bytes already."""
    try:
        if store.read(name)[0] == data:
            return
    except (FileNotFoundError, DamagedError):
        pass
    store.put(name, data)


def _kept_name(number: int) -> str:
    return generation_path(Path(), number).as_posix()


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


def current_manifest(out: Path | Store) -> Manifest | None:
    """Return the current manifest; None if it is missing or damaged, because a build makes a new one."""
    return read_current(store_of(out)).manifest


def read_current(store: Store) -> Current:
    """Return the current manifest with its version."""
    try:
        data, version = store.read(MANIFEST)
    except (FileNotFoundError, DamagedError):
        return Current(None, None)
    return Current(_parsed(data, f"{store.url}/{MANIFEST}"), version)


def _parsed(data: bytes, name: str) -> Manifest | None:
    """Return a manifest, None if it is damaged."""
    try:
        return Manifest.from_text(data.decode(), name)
    except (UnicodeDecodeError, DamagedError):
        return None


@store_errors()
def restore_manifest(out: Path | Store) -> Manifest | None:
    """Put the current generation's own copy in the place of a damaged manifest; None if no copy is proven whole.

    A copy has a checksum of its own, and its table must have the SHA-256 that it names. The table has the SHA-256 of
    each receipt, and a receipt has the digest of each file, so `packer verify` finds everything else.
    """
    store = store_of(out)
    number = read_history(store).current or max(kept_numbers(store), default=0)
    try:
        manifest = _parsed(store.read(_kept_name(number))[0], _kept_name(number))
        if manifest is None or manifest.generation != number:
            return None
        table, _ = store.read(table_path(Path(), manifest.table).as_posix())
    except (ReadError, FileNotFoundError):
        return None
    if hashlib.sha256(table).hexdigest() != manifest.table:
        return None
    store.put(MANIFEST, manifest.to_text().encode())
    return manifest
