"""Staging: a verified copy of a pack's current generation, on a disk or in memory near those who read it.

The copy is a pack like any other and is made in the same order: a shard's files, its receipt, the table, the manifest.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from packer.errors import BusyError, TargetError
from packer.packs.generations import delete, garbage
from packer.packs.staged_copies import check_place, copy_folder, make_private_folder, note_source, unread
from packer.packs.verify import contradictions
from packer.plan.plan import SHARD_SLACK
from packer.publish.atomic import partial, put, putting, sync_folder
from packer.publish.direct_file import DirectFile
from packer.publish.free_space import in_memory, room
from packer.publish.generation import publish
from packer.publish.lock import locked
from packer.publish.target import make_target, prepare_target, tidy
from readers.checksums import read_receipt
from readers.contract.errors import DamagedError, ReadError
from readers.contract.files import plain_file, sha256
from readers.contract.manifest import Manifest, generation_path
from readers.contract.receipt import SUFFIX
from readers.contract.shard_table import table_path
from readers.formats.column import damage_at
from readers.pack import Pack


@dataclass(frozen=True)
class Staged:
    """A copy that is whole, and what was done for it."""

    path: Path
    manifest: Manifest
    shards: int
    """How many were copied; the others were there."""
    bytes: int


def stage(out: Path, place: Path, workers: int, progress: Callable[[int], None]) -> Staged:
    """Have the current generation of OUT in its copy in `place`; `progress` hears of the bytes done.

    Until all of it is there, the copy stays what it was. Older generations in the copy go, unless they are being read.
    """
    check_place(place)
    pack = Pack.open(out, digests=True)
    copy = copy_folder(out, place)
    copying = _Copying(pack, copy, progress)
    if not copy.exists():
        copying.check_room(range(len(pack.table)), place)  # before anything is made
    make_private_folder(place)
    make_target(copy)
    with locked(copy):
        prepare_target(copy)
        tidy(copy)
        _check_number(copy, pack.manifest)
        note_source(copy, out)
        missing = copying.missing(workers)
        copying.check_room(missing, place)
        copying.copy(missing, workers)
        if not _is_current(copy, pack.manifest):
            publish(copy, pack.manifest)
        with unread(copy, pack.manifest.generation) as read:
            delete(copy, garbage(copy, keep=0, grace=0, also=read))
    return Staged(copy, pack.manifest, len(missing), sum(map(pack.table.bytes, missing)))


def _check_number(copy: Path, manifest: Manifest) -> None:
    """A pack that was made anew counts from 1 again; a generation of the same number that is still read stays."""
    number, path = manifest.generation, generation_path(copy, manifest.generation)
    if path.is_file() and path.read_bytes() != manifest.to_text().encode():
        with unread(copy, None) as read:
            if number in read:
                raise BusyError(f"{copy}: another generation {number} is being read by a data set; end that first")


def _is_current(copy: Path, manifest: Manifest) -> bool:
    try:
        return Manifest.load(copy) == manifest == Manifest.load(copy, manifest.generation)
    except ReadError:
        return False


class _Copying:
    """Files of one pack on their way into its copy, in threads that can be stopped."""

    def __init__(self, pack: Pack, copy: Path, progress: Callable[[int], None]) -> None:
        self._pack, self._copy, self._progress = pack, copy, progress
        self._stopped = threading.Event()

    def missing(self, workers: int) -> list[int]:
        """The shards that are not in the copy, whole: a receipt is written last."""
        shards = range(len(self._pack.table))
        with ThreadPoolExecutor(workers) as pool:
            there = list(pool.map(self._is_there, shards))
        self._progress(sum(self._pack.table.bytes(shard) for shard in shards if there[shard]))
        return [shard for shard in shards if not there[shard]]

    def check_room(self, shards: range | list[int], place: Path) -> None:
        """Refuse beforehand what the disk, or the memory, cannot hold."""
        needed = sum(self._pack.table.bytes(shard) + SHARD_SLACK for shard in shards)
        free = room(place)
        if needed > free:
            what = "memory" if in_memory(place) else "disk"
            raise TargetError(
                f"{place}: staging {self._pack.root} needs about {needed:,} bytes, the {what} has {free:,} to spare; "
                "packer stage --list tells what is staged, packer stage --drop removes it"
            )

    def copy(self, shards: list[int], workers: int) -> None:
        """Shards in threads, then the table. All that is damaged is told; what is whole is there the next time."""
        with ThreadPoolExecutor(workers) as pool:
            try:
                damage = [line for line in pool.map(self._damage, shards) if line]
            except BaseException:
                self._stopped.set()
                raise
        if damage:
            raise DamagedError("\n".join([f"{self._pack.root}: damaged, so it was not staged", *damage]))
        digest = self._pack.manifest.table
        source, target = (table_path(root, digest) for root in (self._pack.root, self._copy))
        if not target.is_file() or sha256(target) != digest:
            self._put(source, target, digest)
            sync_folder(target.parent)

    def _is_there(self, shard: int) -> bool:
        stem = self._target(shard)
        try:
            receipt = read_receipt(self._copy, stem, self._pack.table.receipt(shard))
            sizes = [stem.with_name(stem.name + one.suffix).stat().st_size for one in receipt.files]
        except (DamagedError, OSError):
            return False
        return sizes == [one.bytes for one in receipt.files]

    def _target(self, shard: int) -> Path:
        """What the paths of a shard's files in the copy begin with."""
        return self._copy / self._pack.stem(shard).relative_to(self._pack.root)

    def _damage(self, shard: int) -> str:
        """Copy a shard; what is wrong with it comes back."""
        try:
            self._put_shard(shard)
        except DamagedError as error:
            return str(error)
        return ""

    def _put_shard(self, shard: int) -> None:
        stem, digest = self._pack.stem(shard), self._pack.table.receipt(shard)
        receipt = read_receipt(self._pack.root, stem, digest)
        lies = list(contradictions(self._pack, shard, receipt))  # its names among them: they become paths
        if lies:
            raise DamagedError("; ".join(lies))
        target = self._target(shard)
        for one in receipt.files:
            source = stem.with_name(stem.name + one.suffix)
            with damage_at(source):
                size = plain_file(self._pack.root, source).stat().st_size
            if size != one.bytes:
                raise DamagedError(f"{source}: has {size} bytes, its receipt says {one.bytes}")
            self._put(source, target.with_name(source.name), one.sha256, self._progress)
        sync_folder(target.parent)
        receipt_path = stem.with_name(stem.name + SUFFIX)
        self._put(receipt_path, target.with_name(receipt_path.name), digest)
        sync_folder(target.parent)

    def _put(
        self, source: Path, target: Path, digest: str, progress: Callable[[int], None] = lambda count: None
    ) -> None:
        """Copy a file, if it has this SHA-256."""
        with putting(target), partial(target.parent) as path:
            with _reading(self._pack.root, source) as read, DirectFile(path) as file:
                while count := file.fill(read):
                    if self._stopped.is_set():
                        raise CancelledError
                    progress(count)
            if file.digest != digest:
                raise DamagedError(f"{source}: its SHA-256 is not {digest}, which the pack says it is")
            put(path, target)


@contextmanager
def _reading(root: Path, path: Path) -> Iterator[Callable[[memoryview], int]]:
    """What reads on in a file of a pack, into memory that it is given."""
    with damage_at(path):
        file = plain_file(root, path).open("rb", buffering=0)

    def read(memory: memoryview) -> int:
        with damage_at(path):
            return file.readinto(memory) or 0

    with file:
        yield read
