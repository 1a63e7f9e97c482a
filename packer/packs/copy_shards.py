"""`Copying`: bring a generation's shards and table from one store to another. Every byte is checked on the way.

`stage`, `push` and `pull` copy with it. The files of a shard come before its receipt; cells and the table come last.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np

from packer.packs.hub_commits import HubCommits
from packer.packs.verify import contradictions
from packer.progress import Advance
from packer.publish.atomic import target_errors
from packer.publish.direct_file import DirectFile
from packer.publish.free_space import SHARD_SLACK, check_free_space
from readers.contract.atomic import make_folder, move_into_place, partial, sync_folder
from readers.contract.cells import MOST_CELLS_BYTES, cells_path, check_digest
from readers.contract.errors import DamagedError
from readers.contract.manifest import CELLS, SHARDS, Manifest
from readers.contract.receipt import FINGERPRINT, SUFFIX
from readers.contract.shard_table import RECORD, ShardTable, table_header
from readers.pack import Pack
from readers.stores.fetch import ExpectedFile, fetch_object, fetch_receipt, files_of_shard, read_small, wanted_table
from readers.stores.folder_store import FolderStore
from readers.stores.open_store import is_url
from readers.stores.store import Store
from readers.stores.waiting import answered

_STEM = re.compile(rf"(?<=-{FINGERPRINT.pattern})\..*")
"""The rest of the name of a shard's file after its stem."""


@dataclass(frozen=True)
class Copied:
    """The generation that the copy has now, and the shards and bytes that were copied for it."""

    manifest: Manifest
    shards: int
    bytes: int


class Copying:
    """Copies the shards of `manifest` from `source` to `target`. `near` is the one of the two on this machine."""

    def __init__(self, source: Store, target: Store, near: FolderStore, manifest: Manifest, advance: Advance) -> None:
        self.source, self.target, self._near, self._advance = source, target, near, advance
        self._pack = Pack(Path(source.url), manifest, table=read_table(source, manifest))
        self._stems = [self._pack.stem(shard).name for shard in self.all]
        self._stopped = threading.Event()

    @property
    def all(self) -> range:
        """The numbers of all shards."""
        return range(len(self._pack.table))

    def missing(self, sizes: Mapping[str, int], before: Manifest | None, workers: int) -> list[int]:
        """Return the shards that the target lacks, whose objects have these sizes. `before` is its generation.

        The receipt of a shard is sent last. One that the table of `before` names is whole; others, of a copy that was
        killed, are read.
        """
        known_digests, table = self._known(before), self._pack.table

        def is_there(shard: int) -> bool:
            stem, digest = self._stems[shard], table.receipt(shard)
            if f"{SHARDS}/{stem}{SUFFIX}" not in sizes:
                return False
            side = self._near if digest in known_digests else self.target
            try:
                data, receipt = answered(lambda: fetch_receipt(side, stem, digest))
            except DamagedError:
                return False
            return all(sizes.get(expected.name) == expected.size for expected in files_of_shard(data, receipt))

        with ThreadPoolExecutor(workers) as pool:
            present = list(pool.map(is_there, self.all))
        self._advance(sum(table.bytes(shard) for shard in self.all if present[shard]))
        return [shard for shard in self.all if not present[shard]]

    def check_space(self, shards: Sequence[int], sizes: Mapping[str, int], advice: str = "") -> None:
        """Refuse shards that the disk or the memory of a folder cannot hold, or a folder of the Hub, which has these
        objects now."""
        if isinstance(self.target, HubCommits):
            stems = {f"{SHARDS}/{self._stems[shard]}" for shard in shards}
            new = {entry.name for entry in self._near.list(SHARDS) if _STEM.sub("", entry.name) in stems}
            self.target.check_entries(len(new | {name for name in sizes if name.startswith(f"{SHARDS}/")}))
        if isinstance(self.target, FolderStore):
            check_free_space(self.target.root, self.bytes(shards) + SHARD_SLACK * len(shards), advice)

    def bytes(self, shards: Sequence[int]) -> int:
        return sum(map(self._pack.table.bytes, shards))

    def copy(self, shards: Sequence[int], workers: int) -> None:
        """Copy shards in threads, then the table. Reports all damage together; intact shards stay for the next time."""
        with ThreadPoolExecutor(workers) as pool:
            try:
                damage = [line for line in pool.map(self._damage, shards) if line]
                damage += [line for line in pool.map(self._damage_of_cells, self._missing_cells()) if line]
            except BaseException:
                self._stopped.set()
                raise
        if damage:
            url = self.source.url
            advice = "put whole copies of these objects there" if is_url(url) else "packer repair fixes it"
            raise DamagedError("\n".join([f"{url}: damaged, so nothing was published; {advice}", *damage]))
        self._put([wanted_table(self._pack.manifest)])
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
        stem, digest = self._stems[shard], self._pack.table.receipt(shard)
        try:
            data, receipt = answered(lambda: fetch_receipt(self.source, stem, digest))
            if wrong := list(contradictions(self._pack, shard, receipt)):
                return f"{self.source.url}/{SHARDS}/{stem}{SUFFIX}: {'; '.join(wrong)}"
            *files, last = files_of_shard(data, receipt)
            self._put(files, self._advance)
            self._put([last])
        except DamagedError as error:
            return str(error)
        return ""

    def _missing_cells(self) -> list[str]:
        """Return the files of cells of the generation that the source has, and the target has not in this size."""
        numbered = ((stem, self._pack.fields_of(number)) for number, stem in enumerate(self._stems))
        names = {cells_path(Path(), stem, field.name).as_posix() for stem, fields in numbered for field in fields}
        sent = {entry.name: entry.size for entry in self.source.list(CELLS) if entry.name in names}
        sizes = {entry.name: entry.size for entry in self.target.list(CELLS)} if sent else {}
        return [name for name, size in sorted(sent.items()) if sizes.get(name) != size]

    def _damage_of_cells(self, name: str) -> str:
        """Copy a file of cells; return its damage, or an empty text."""
        try:
            data = answered(lambda: read_small(self.source, name, MOST_CELLS_BYTES))
            check_digest(data, f"{self.source.url}/{name}")
            if isinstance(self.target, FolderStore):
                make_folder(self.target.path(name).parent)
            self._put([ExpectedFile(name, len(data), hashlib.sha256(data).hexdigest(), hashlib.sha256, data)])
        except DamagedError as error:
            return str(error)
        return ""

    def _put(self, objects: list[ExpectedFile], advance: Advance = lambda done: None) -> None:
        """Write objects of one folder to the target, and bring them to its disk."""
        for expected in objects:
            if isinstance(self.target, FolderStore):
                self._write(expected, self.target.path(expected.name), advance)
                continue
            data = fetched(self.source, expected)
            if isinstance(self.target, HubCommits) and expected.name.startswith(SHARDS):
                self.target.add(expected.name, self._near.path(expected.name))
            else:
                answered(lambda: self.target.put(expected.name, data))  # noqa: B023 - called before the next object
            advance(expected.size)
        if isinstance(self.target, FolderStore) and objects:
            sync_folder(self.target.path(objects[0].name).parent)

    def _write(self, expected: ExpectedFile, path: Path, advance: Advance) -> None:
        """Bring an object to a file past the page cache. It appears whole."""

        def write() -> None:
            with target_errors(path), partial(path.parent) as new:
                with DirectFile(new, _Unhashed()) as file:
                    fetch_object(self.source, expected, _Sink(file, self._stopped, advance))
                move_into_place(new, path)

        answered(write)


class _Unhashed:
    """Replaces the digest of a file that is hashed before it is written."""

    def update(self, data: object, /) -> None:
        pass

    def hexdigest(self) -> str:
        return ""


@dataclass(frozen=True)
class _Sink:
    """Writes to a file, until copying is stopped."""

    file: DirectFile
    stopped: threading.Event
    advance: Advance

    def write(self, data: memoryview, /) -> None:
        if self.stopped.is_set():
            raise CancelledError
        self.file.write(data)
        self.advance(len(data))


def read_table(store: Store, manifest: Manifest) -> ShardTable:
    """Return the shard table of a manifest."""
    data = fetched(store, wanted_table(manifest))
    return ShardTable(np.frombuffer(data, RECORD, offset=len(table_header(manifest.shards))))


def fetched(store: Store, expected: ExpectedFile) -> memoryview:
    """Return the bytes of an object, which has the size and the digest that are expected."""

    def fetch() -> memoryview:
        file = BytesIO()
        fetch_object(store, expected, file)
        return file.getbuffer()

    return answered(fetch)
