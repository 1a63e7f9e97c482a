"""`Copying`: bring a generation's shards and table from one store to another. Every byte is checked on the way."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np

from packer.errors import TargetError
from packer.packs.hub_commits import HubCommits
from packer.progress import Advance
from packer.publish.atomic import target_errors
from packer.publish.claim import answered
from packer.publish.free_space import SHARD_SLACK, free_space
from readers.contract.atomic import move_into_place, partial, sync_folder
from readers.contract.errors import DamagedError
from readers.contract.manifest import SHARDS, Manifest
from readers.contract.receipt import FINGERPRINT, SUFFIX, shard_stem
from readers.contract.shard_table import RECORD, ShardTable, table_header
from readers.stores.fetch import Wanted, fetch_object, fetch_receipt, files_of_shard, wanted_table
from readers.stores.folder_store import FolderStore
from readers.stores.store import Store

_STEM = re.compile(rf"(?<=-{FINGERPRINT.pattern})\..*")
"""The rest of the name of a shard's file after its stem."""


@dataclass(frozen=True)
class Copied:
    """The generation that the copy has now, and the shards and bytes that were copied for it."""

    manifest: Manifest
    shards: int
    bytes: int


class Copying:
    """Copies the shards of `manifest` from `source` to `target`. `near` is that of the two on this machine."""

    def __init__(self, source: Store, target: Store, near: FolderStore, manifest: Manifest, advance: Advance) -> None:
        self.source, self.target, self._near, self._advance = source, target, near, advance
        self._manifest, self._table = manifest, read_table(source, manifest)
        splits = (split.name for split in manifest.splits for _ in range(split.shards))
        self._stems = [shard_stem(split, self._table.fingerprint(shard)) for shard, split in enumerate(splits)]

    def missing(self, sizes: dict[str, int], before: Manifest | None, workers: int) -> list[int]:
        """Return the shards that the target lacks, whose objects have these sizes. `before` is its generation.

        The receipt of a shard is sent last. One that the table of `before` names is whole; others, of a copy that was
        killed, are read.
        """
        known = self._known(before)

        def is_there(shard: int) -> bool:
            stem, digest = self._stems[shard], self._table.receipt(shard)
            if f"{SHARDS}/{stem}{SUFFIX}" not in sizes:
                return False
            side = self._near if digest in known else self.target
            try:
                data, receipt = answered(lambda: fetch_receipt(side, stem, digest))
            except DamagedError:
                return False
            return all(sizes.get(wanted.name) == wanted.size for wanted in files_of_shard(data, receipt))

        shards = range(len(self._table))
        with ThreadPoolExecutor(workers) as pool:
            there = list(pool.map(is_there, shards))
        self._advance(sum(self._table.bytes(shard) for shard in shards if there[shard]))
        return [shard for shard in shards if not there[shard]]

    def check_space(self, shards: list[int], sizes: dict[str, int]) -> None:
        """Refuse shards that the disk of a folder cannot hold, or a folder of the Hub, which has these objects now."""
        if isinstance(self.target, HubCommits):
            stems = {f"{SHARDS}/{self._stems[shard]}" for shard in shards}
            new = {entry.name for entry in self._near.list(SHARDS) if _STEM.sub("", entry.name) in stems}
            self.target.check_entries(len(new | {name for name in sizes if name.startswith(f"{SHARDS}/")}))
        if isinstance(self.target, FolderStore):
            needed = self.bytes(shards) + SHARD_SLACK * len(shards)
            free = free_space(self.target.root)
            if needed > free:
                raise TargetError(
                    f"{self.target.url}: needs about {needed:,} bytes, and the disk has {free:,} to spare"
                )

    def bytes(self, shards: list[int]) -> int:
        return sum(map(self._table.bytes, shards))

    def copy(self, shards: list[int], workers: int) -> None:
        """Copy shards in threads, then the table. Reports all damage together; intact shards stay for the next time."""
        with ThreadPoolExecutor(workers) as pool:
            damage = [line for line in pool.map(self._damage, shards) if line]
        if damage:
            raise DamagedError("\n".join([f"{self.source.url}: damaged, so nothing was published", *damage]))
        self._put([wanted_table(self._manifest)])
        if isinstance(self.target, HubCommits):
            self.target.send()

    def _known(self, before: Manifest | None) -> set[str]:
        """Return the SHA-256 of the receipts that the target's generation names."""
        if before is None:
            return set()
        try:
            table = read_table(self.target, before)
        except DamagedError:
            return set()
        return {table.receipt(shard) for shard in range(len(table))}

    def _damage(self, shard: int) -> str:
        """Copy a shard; return its damage, or an empty text."""
        try:
            data, receipt = answered(lambda: fetch_receipt(self.source, self._stems[shard], self._table.receipt(shard)))
            *files, last = files_of_shard(data, receipt)
            self._put(files)
            self._put([last])
        except DamagedError as error:
            return str(error)
        self._advance(self._table.bytes(shard))
        return ""

    def _put(self, objects: list[Wanted]) -> None:
        """Write objects of one folder to the target, and bring them to its disk."""
        for wanted in objects:
            if isinstance(self.target, FolderStore):
                _write(self.source, wanted, self.target.path(wanted.name))
                continue
            data = fetched(self.source, wanted)
            if isinstance(self.target, HubCommits) and wanted.name.startswith(SHARDS):
                self.target.add(wanted.name, self._near.path(wanted.name))
            else:
                answered(lambda: self.target.put(wanted.name, data))  # noqa: B023 - called before the next object
        if isinstance(self.target, FolderStore):
            sync_folder(self.target.path(objects[0].name).parent)


def read_table(store: Store, manifest: Manifest) -> ShardTable:
    """Return the shard table of a manifest."""
    data = fetched(store, wanted_table(manifest))
    return ShardTable(np.frombuffer(data, RECORD, offset=len(table_header(manifest.shards))))


def fetched(store: Store, wanted: Wanted) -> memoryview:
    """Return the bytes of an object, which has the size and the digest that are expected."""

    def fetch() -> memoryview:
        file = BytesIO()
        fetch_object(store, wanted, file)
        return file.getbuffer()

    return answered(fetch)


def _write(store: Store, wanted: Wanted, path: Path) -> None:
    """Bring an object to a file, which appears whole."""

    def write() -> None:
        with target_errors(path), partial(path.parent) as new:
            with new.open("wb") as file:
                fetch_object(store, wanted, file)
            move_into_place(new, path)

    answered(write)
