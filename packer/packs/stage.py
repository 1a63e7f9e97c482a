"""Staging: copy the current generation of a pack to a local disk or into memory, and verify it on the way.

The copy is a pack itself and is made in the same order: the files of a shard, its receipt, the table, the manifest.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from packer.errors import BusyError, TargetError, UsageError
from packer.packs.copy_shards import Copied
from packer.packs.garbage import delete_garbage
from packer.packs.staged_copies import check_target, copy_folder, generations_in_use, note_source, prepare_folder
from packer.packs.stored import seen
from packer.packs.verify import contradictions
from packer.progress import Advance, Progress, no_progress
from packer.publish.atomic import target_errors
from packer.publish.claim import answered
from packer.publish.direct_file import DirectFile
from packer.publish.free_space import SHARD_SLACK, free_space, in_memory
from packer.publish.generation import publish
from packer.publish.lock import locked
from packer.publish.target import make_target, prepare_target, tidy
from readers.contract.atomic import move_into_place, partial, sync_folder
from readers.contract.errors import DamagedError, ReadError
from readers.contract.files import sha256
from readers.contract.manifest import SHARDS, Manifest, generation_path, is_pack
from readers.machine import usable_cores
from readers.pack import Pack
from readers.staged_copies import MEMORY, find
from readers.stores.checksums import read_receipt
from readers.stores.fetch import Wanted, fetch_object, fetch_receipt, files_of_shard, wanted_table
from readers.stores.open_store import is_url
from readers.stores.store import Store


@dataclass(frozen=True)
class Staged(Copied):
    """A complete copy on this machine."""

    path: Path
    opened: Path | None
    """The copy that `open_dataset` reads now; None if it reads the pack. It is not `path` if the target is not searched
    or if a copy in memory exists."""


def stage_pack(
    out: str | os.PathLike[str],
    target: str | os.PathLike[str] | None = None,
    *,
    ram: bool = False,
    workers: int | None = None,
    progress: Progress = no_progress,
) -> Staged:
    """Copy the current generation of the pack `out` into the folder `target`, or with `ram` into memory (/dev/shm).

    A missing `target` is made. Shards that the copy has are not copied again. `workers` shards are copied at the
    same time, by default as many as this process has cores. Until everything is copied and verified, the copy stays
    at its old generation. Its older generations are deleted unless a data set reads them.

    Raises UsageError unless exactly one of `target` and `ram` is given, TargetError if the target is not usable or too
    small, DamagedError if `out` is damaged, BusyError if another process changes the copy.
    """
    folder = target_folder(target, ram)
    if not is_url(out) and not is_pack(Path(out)) and is_pack(folder):
        raise UsageError(f"{out}: is not a packed data set, but {target} is; OUT comes first: packer stage OUT TARGET")
    with seen(out, wanted=lambda found: (), holes=()) as (root, store):
        pack = Pack.open(root, digests=True)
        check_target(folder)
        with progress("staging", pack.manifest.bytes, "B") as advance:
            return _stage(out, pack, store, folder, workers or usable_cores(), advance)


def _stage(
    out: str | os.PathLike[str], pack: Pack, store: Store, folder: Path, workers: int, advance: Advance
) -> Staged:
    """Copy the pack, whose shards are in the store, into the folder."""
    path = copy_folder(out, folder)
    copying = _Copying(pack, store, path, advance)
    if not path.exists():
        disk = folder if folder.is_dir() else folder.parent
        copying.check_free_space(range(len(pack.table)), disk)  # before anything is made
    prepare_folder(folder)
    make_target(path)
    with locked(path):
        prepare_target(path)
        tidy(path)
        _check_number(path, pack.manifest)
        note_source(path, out)
        missing = copying.missing(workers)
        copying.check_free_space(missing, folder)
        copying.copy(missing, workers)
        if not _is_current(path, pack.manifest):
            _forget_another(path, pack.manifest)
            publish(path, pack.manifest)
        with generations_in_use(path, pack.manifest.generation) as in_use:
            delete_garbage(path, keep=0, grace=0, also=in_use)
    return Staged(pack.manifest, len(missing), sum(map(pack.table.bytes, missing)), path, find(pack.manifest))


def target_folder(target: str | os.PathLike[str] | None, ram: bool) -> Path:
    """Return the folder to stage into. Raises UsageError unless exactly one of `target` and `ram` is given."""
    if ram is (target is not None):
        raise UsageError("name one place to stage to: either a folder TARGET or --ram")
    return MEMORY if target is None else Path(target).absolute()


def _check_number(copy: Path, manifest: Manifest) -> None:
    """Refuse to replace another generation of the same number that is being read: a deleted and rebuilt pack counts
    from 1 again."""
    number = manifest.generation
    if _has_another(copy, manifest):
        with generations_in_use(copy, None) as in_use:
            if number in in_use:
                raise BusyError(f"{copy}: a data set is reading another generation {number}; end that program first")


def _forget_another(copy: Path, manifest: Manifest) -> None:
    """Delete the kept manifest of another generation of the same number, which would keep this one from its number.

    An equal one stays: data sets that read it have locked it.
    """
    if _has_another(copy, manifest):
        generation_path(copy, manifest.generation).unlink()


def _has_another(copy: Path, manifest: Manifest) -> bool:
    path = generation_path(copy, manifest.generation)
    return path.is_file() and path.read_bytes() != manifest.to_text().encode()


def _is_current(copy: Path, manifest: Manifest) -> bool:
    try:
        return Manifest.load(copy) == manifest == Manifest.load(copy, manifest.generation)
    except ReadError:
        return False


class _Copying:
    """Copy the files of a pack into its copy, in threads that can be stopped."""

    def __init__(self, pack: Pack, store: Store, copy: Path, advance: Advance) -> None:
        self._pack, self._store, self._copy, self._advance = pack, store, copy, advance
        self._stopped = threading.Event()

    def missing(self, workers: int) -> list[int]:
        """Return the shards that the copy does not have yet. A shard is complete once its receipt is there."""
        shards = range(len(self._pack.table))
        with ThreadPoolExecutor(workers) as pool:
            copied = list(pool.map(self._is_copied, shards))
        self._advance(sum(self._pack.table.bytes(shard) for shard in shards if copied[shard]))
        return [shard for shard in shards if not copied[shard]]

    def check_free_space(self, shards: range | list[int], folder: Path) -> None:
        """Refuse shards that the disk or the memory cannot hold."""
        needed = sum(self._pack.table.bytes(shard) + SHARD_SLACK for shard in shards)
        free = free_space(folder)
        if needed > free:
            device = "memory" if in_memory(folder) else "disk"
            raise TargetError(
                f"{folder}: staging {self._pack.root} needs about {needed:,} bytes, the {device} has {free:,} to "
                "spare; packer stage --list shows the staged copies, packer stage --drop removes them"
            )

    def copy(self, shards: list[int], workers: int) -> None:
        """Copy shards in threads, then the table. Reports all damage together; intact shards are kept for the next
        time."""
        with ThreadPoolExecutor(workers) as pool:
            try:
                damage = [line for line in pool.map(self._damage, shards) if line]
            except BaseException:
                self._stopped.set()
                raise
        if damage:
            advice = "put whole copies of these objects there" if is_url(self._store.url) else "packer repair fixes it"
            raise DamagedError("\n".join([f"{self._pack.root}: damaged, so it is not staged; {advice}", *damage]))
        wanted = wanted_table(self._pack.manifest)
        target = self._copy / wanted.name
        if not target.is_file() or sha256(target) != wanted.digest:
            self._fetch(wanted)
            sync_folder(target.parent)

    def _is_copied(self, shard: int) -> bool:
        stem = self._target_stem(shard)
        try:
            receipt = read_receipt(self._copy, stem, self._pack.table.receipt(shard))
            sizes = [stem.with_name(stem.name + file.suffix).stat().st_size for file in receipt.files]
        except (DamagedError, OSError):
            return False
        return sizes == [file.bytes for file in receipt.files]

    def _target_stem(self, shard: int) -> Path:
        """Return the common beginning of the paths of a shard's files in the copy."""
        return self._copy / self._pack.stem(shard).relative_to(self._pack.root)

    def _damage(self, shard: int) -> str:
        """Copy a shard; return its damage, or an empty text."""
        try:
            self._put_shard(shard)
        except DamagedError as error:
            return str(error)
        return ""

    def _put_shard(self, shard: int) -> None:
        stem, digest = self._pack.stem(shard), self._pack.table.receipt(shard)
        data, receipt = answered(lambda: fetch_receipt(self._store, stem.name, digest))
        wrong = list(contradictions(self._pack, shard, receipt))
        if wrong:
            raise DamagedError("; ".join(wrong))
        *files, last = files_of_shard(data, receipt)
        for wanted in files:
            self._fetch(wanted, self._advance)
        sync_folder(self._copy / SHARDS)
        self._fetch(last)
        sync_folder(self._copy / SHARDS)

    def _fetch(self, wanted: Wanted, advance: Advance = lambda done: None) -> None:
        """Copy a file past the page cache. DamagedError if it is not the one that the pack expects."""
        target = self._copy / wanted.name

        def fetch() -> None:
            with target_errors(target), partial(target.parent) as path:
                with DirectFile(path, _Unhashed()) as file:
                    fetch_object(self._store, wanted, _Sink(file, self._stopped, advance))
                move_into_place(path, target)

        answered(fetch)


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
