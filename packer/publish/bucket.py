"""A pack in a bucket, and its shadow on this machine, which workers write to as if it were the pack.

The shadow has the manifest, the table, the stamps and the receipts of the bucket. Other files of known shards are as
long as in the bucket and take no disk, because nobody reads them: so a plan finds what may be reused. A new shard is
sent when it is written, and then takes no disk either.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from packer.errors import TargetError, first_of
from packer.publish.atomic import store_errors
from packer.publish.claim import answered
from packer.publish.free_space import free_space
from packer.publish.generation import Current, read_current
from packer.publish.lock_object import LOCKS, exclusive
from packer.publish.pin import check_pin
from packer.publish.store_probe import PREFIX
from packer.publish.target import MARK_TEXT, STAMPS, is_our_manifest
from readers.contract.atomic import partial
from readers.contract.errors import StoreError
from readers.contract.leftovers import MAX_AGE, sweep
from readers.contract.manifest import GENERATIONS, MANIFEST, MARK, SHARDS
from readers.contract.receipt import SUFFIX, Receipt
from readers.contract.shard_table import table_path
from readers.stores.open_store import open_store
from readers.stores.store import Store, check_name

STAMP = ".stamps"
AHEAD = 4
"""The shards for each core that scratch must have room for: one is written, another sent, and sizes vary."""
READERS = 16
COPIED = 0
"""The time of files that were copied from the bucket. A shard whose receipt has it was not written here."""


class Bucket:
    """The store of a pack, its shadow, and what was current when the build began."""

    def __init__(self, store: Store, folder: Path, before: Current, slots: int) -> None:
        self.store, self.folder, self.before = store, folder, before
        self._slots = slots
        self._threads = ThreadPoolExecutor(slots, "send")
        self._sending: deque[Future[None]] = deque()

    def check_scratch(self, largest: int) -> None:
        """Raise TargetError if the disk has too little free space for shards of up to `largest` bytes."""
        needed, free = AHEAD * self._slots * largest, free_space(self.folder)
        if needed > free:
            raise TargetError(
                f"{self.folder.parent.parent}: needs about {needed:,} bytes, {AHEAD} shards for each of {self._slots} "
                f"cores, and has {free:,} free; name another folder with --scratch, or use a smaller --shard-size or "
                "fewer --workers"
            )

    def send(self, receipt: Receipt) -> None:
        """Send a shard that was written, its receipt after its files. Wait if too many are on their way."""
        while len(self._sending) >= self._slots:
            self._sending.popleft().result()
        self._sending.append(self._threads.submit(self._send, receipt))

    def finish(self) -> None:
        """Wait until all shards are sent. Then send stamps that were renewed while the build was planned."""
        while self._sending:
            self._sending.popleft().result()
        for path in sorted((self.folder / STAMPS).glob(f"*{STAMP}")):
            self._send_stamps(path)

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)

    def put(self, name: str) -> None:
        """Send a file of the shadow."""
        path = self.folder / name
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        view = memoryview(data)  # not released here: after an error the client may have it for a moment longer
        answered(lambda: self.store.put(name, view))

    def _send(self, receipt: Receipt) -> None:
        files = [f"{SHARDS}/{receipt.stem}{file.suffix}" for file in receipt.files]
        last = f"{SHARDS}/{receipt.stem}{SUFFIX}"
        if (self.folder / last).stat().st_mtime != COPIED:  # else it came out the same, and its files are empty here
            for name in (*files, last):
                self.put(name)
            for name, file in zip(files, receipt.files, strict=True):
                os.truncate(self.folder / name, 0)
                os.truncate(self.folder / name, file.bytes)
        self._send_stamps(self.folder / STAMPS / f"{receipt.stem}{STAMP}")

    def _send_stamps(self, path: Path) -> None:
        if path.exists() and path.stat().st_mtime != COPIED:
            self.put(f"{STAMPS}/{path.name}")
            os.utime(path, (COPIED, COPIED))


@contextmanager
def open_bucket(url: str, scratch: Path | None, slots: int, may_lock: bool) -> Iterator[Bucket]:
    """Open the bucket of a pack, after a probe of its conditions, with a shadow below `scratch` or TMPDIR."""
    with store_errors(), exclusive(open_store(url), may_lock) as store:
        before, sizes = read_current(store), sizes_of_pack(store)
        check_pin(store)
        scratch = Path(tempfile.gettempdir()) if scratch is None else scratch
        if not scratch.is_dir():
            raise TargetError(f"--scratch {scratch}: there is no such folder")
        sweep(scratch, math.inf)
        with partial(scratch) as folder:
            _make_shadow(store, folder, before, sizes)
            bucket = Bucket(store, folder, before, slots)
            try:
                yield bucket
            finally:
                bucket.close()


def sizes_of_pack(store: Store) -> dict[str, int]:
    """Return the size of each object of a pack, which is marked as ours. Refuse a folder with anything else.

    Locks and probes that are a day old are deleted: their owners could not do it.
    """
    sizes, old = dict[str, int](), list[str]()
    for entry in store.list(""):
        sizes[entry.name] = entry.size
        if entry.name.startswith((PREFIX, f"{LOCKS}/")) and 0 < entry.modified < time.time() - MAX_AGE:
            old.append(entry.name)
    with suppress(StoreError):  # a store may refuse it
        store.delete(old)
    others = [name for name in sizes if not name.startswith((PREFIX, f"{LOCKS}/"))]
    is_pack = MARK in sizes or (MANIFEST in sizes and is_our_manifest(store.read(MANIFEST, 0, 100)[0][:100]))
    if others and not is_pack:
        raise TargetError(
            f"{store.url}: exists and is not a packed data set (it holds {', '.join(first_of(others, 3))}); "
            "name a new or an empty folder"
        )
    if MARK not in sizes:
        store.put(MARK, MARK_TEXT.encode())
    return sizes


def _make_shadow(store: Store, folder: Path, before: Current, sizes: dict[str, int]) -> None:
    """Make the folder, with copies of the small objects and files without content for the large ones."""
    for name in (SHARDS, GENERATIONS, STAMPS):
        (folder / name).mkdir(parents=True)
    (folder / MARK).write_text(MARK_TEXT)
    stamps = (path.name for path in map(Path, sizes) if path.parent == Path(STAMPS) and path.suffix == STAMP)
    stems = {name.removesuffix(STAMP) for name in stamps}
    copied = [MANIFEST] if before.manifest is not None else []
    if before.manifest is not None:
        copied.append(table_path(Path(), before.manifest.table).as_posix())
    copied += [name for stem in stems for name in (f"{SHARDS}/{stem}{SUFFIX}", f"{STAMPS}/{stem}{STAMP}")]
    _copy(store, folder, [name for name in copied if name in sizes])
    for name, size in sizes.items():
        if name.startswith(f"{SHARDS}/") and not name.endswith(SUFFIX):
            path = folder / check_name(name)
            if path.parent == folder / SHARDS:
                path.touch()
                os.truncate(path, size)


def _copy(store: Store, folder: Path, names: Iterable[str]) -> None:
    def copy(name: str) -> None:
        data, _ = answered(lambda: store.read(name))
        path = folder / check_name(name)
        path.write_bytes(data)
        os.utime(path, (COPIED, COPIED))

    with ThreadPoolExecutor(READERS) as threads:
        list(threads.map(copy, names))
