"""`Fetcher`: brings whole shards of a pack from a store into a cache, each verified before it gets its name.

python -m readers.stores.fetch URL TARGET BYTES NAME     the same for a process that cannot: see `helper`
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from readers.contract.atomic import sync_folder
from readers.contract.errors import DamagedError, ReadError, StoreBusyError, StoreError
from readers.contract.files import Hash, blake3
from readers.contract.manifest import SHARDS, Manifest
from readers.contract.receipt import FINGERPRINT, SUFFIX, Receipt
from readers.contract.shard_table import RECORD, table_header, table_path
from readers.stores.checksums import MOST_RECEIPT_BYTES, parse_receipt
from readers.stores.evict import Budget, CacheFullError, partial_folder
from readers.stores.locks import ReadLock, only_fetcher
from readers.stores.store import Store
from readers.stores.waiting import Patience

MOST_REFUSED = 64
TOUCH_SECONDS = 60
"""The last use of a shard is noted at most this often."""


class ExpectedFile(NamedTuple):
    """An object to fetch, with its size and digest. `data` are its bytes, if they are there already."""

    name: str
    size: int
    digest: str
    hasher: Callable[[], Hash]
    data: bytes | None = None


class Sink(Protocol):
    """A file that is written from its beginning to its end."""

    def write(self, data: memoryview, /) -> object: ...


class Fetcher:
    """Fetches units of one pack: a unit is a shard, or a single file. `root` is the folder of the pack in the cache."""

    def __init__(self, store: Store, root: Path, budget: Budget) -> None:
        self.store, self.root, self.budget = store, root, budget
        self._silent = (-math.inf, "")
        """The time at which a store had been silent for minutes, and the error. Who waited then does not wait again."""
        self._refused: dict[str, Sequence[ExpectedFile]] = {}
        """The files of units for which there was no space, so that the next try does not ask the store for receipts."""

    def shard(self, stem: str, digest: str) -> ReadLock:
        """Return the lock of a shard's receipt, after fetching the shard if it is not there."""
        return self._unit(f"{SHARDS}/{stem}", SUFFIX, lambda: files_of_shard(*fetch_receipt(self.store, stem, digest)))

    def file(self, expected: ExpectedFile) -> ReadLock:
        """Return the lock of a single file, after fetching it if it is not there."""
        return self._unit(expected.name, "", lambda: [expected])

    def held(self, name: str) -> ReadLock:
        """Return the lock of a receipt or a file that is there, and note its use. Raises FileNotFoundError."""
        lock = ReadLock(self.root / name, wait=True)
        if abs(time.time() - os.fstat(lock.file).st_mtime) > TOUCH_SECONDS:  # a clock that was set back
            with suppress(OSError):
                os.utime(lock.file)
        return lock

    def _unit(self, name: str, suffix: str, list_files: Callable[[], Sequence[ExpectedFile]]) -> ReadLock:
        """Let one thread of the machine fetch a unit. What is damaged on the way is fetched once more, and a store that
        is busy is asked again until the clock ends it."""
        with suppress(FileNotFoundError):
            return self.held(name + suffix)
        unit, begun = self.root / name, time.monotonic()
        with only_fetcher(self.budget.fetch_lock(unit)):
            with suppress(FileNotFoundError):
                return self.held(name + suffix)
            when, why = self._silent
            if when > begun:
                raise StoreBusyError(why)
            patience, damaged = Patience(), False
            while True:
                try:
                    files = self._refused.pop(name, None) or list_files()
                    return self._fetched(unit, files)
                except CacheFullError:
                    if len(self._refused) < MOST_REFUSED:
                        self._refused[name] = files
                    raise
                except StoreBusyError as error:
                    try:
                        patience.wait(error)
                    except StoreBusyError:
                        self._silent = time.monotonic(), str(error)
                        raise
                except (DamagedError, StoreError):
                    if damaged:
                        raise
                    damaged = True

    def _fetched(self, unit: Path, files: Sequence[ExpectedFile]) -> ReadLock:
        partial = partial_folder(unit)
        names = [Path(expected.name).name for expected in files]
        try:
            shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed
            self.budget.reserve(partial, {name: expected.size for name, expected in zip(names, files, strict=True)})
            for name, expected in zip(names, files, strict=True):
                with (partial / name).open("r+b", buffering=0) as file:
                    fetch_object(self.store, expected, file)
                    os.fsync(file.fileno())
            sync_folder(partial)
            lock = ReadLock(partial / names[-1])  # before another process could delete it again
            self.budget.publish(partial, names)
            sync_folder(unit.parent)
            return lock
        except FileNotFoundError:  # the cache was deleted
            raise
        except OSError as error:
            raise ReadError(
                f"{unit}: {self.store.url}/{files[-1].name} cannot be written ({error}); "
                "lower cache_bytes, or free space there"
            ) from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def fetch_object(store: Store, expected: ExpectedFile, file: Sink) -> None:
    """Write an object to a file. Raises DamagedError, which names the object, if its size or digest differs."""
    digest, done = expected.hasher(), 0

    def write(data: memoryview) -> None:
        nonlocal done
        done += len(data)
        if done > expected.size:
            raise DamagedError(
                f"{store.url}/{expected.name}: has more than the {expected.size} bytes that are expected"
            )
        digest.update(data)
        left = data
        while left:
            left = left[_count(file.write(left), left) :]

    if expected.data is not None:
        write(memoryview(expected.data))
        return
    try:
        store.fetch(expected.name, write)
    except FileNotFoundError as error:
        raise missing_object(store, expected.name) from error
    if done < expected.size:
        raise DamagedError(f"{store.url}/{expected.name}: has {done} bytes; {expected.size} are expected")
    if digest.hexdigest() != expected.digest:
        raise DamagedError(
            f"{store.url}/{expected.name}: its digest differs from the {expected.digest} that the pack expects; "
            "put a whole copy of this object there"
        )


def files_of_shard(data: bytes, receipt: Receipt) -> list[ExpectedFile]:
    """Return the files of a shard, its receipt last, which has these bytes."""
    stem = f"{SHARDS}/{receipt.stem}"
    files = [ExpectedFile(stem + file.suffix, file.bytes, file.blake3, blake3) for file in receipt.files]
    return [*files, ExpectedFile(stem + SUFFIX, len(data), hashlib.sha256(data).hexdigest(), hashlib.sha256, data)]


def wanted_table(manifest: Manifest) -> ExpectedFile:
    """Return the shard table, whose size follows from the number of shards."""
    path = table_path(Path(), manifest.table)
    size = len(table_header(manifest.shards)) + manifest.shards * RECORD.itemsize
    return ExpectedFile(path.as_posix(), size, manifest.table, hashlib.sha256)


def fetch_receipt(store: Store, stem: str, digest: str) -> tuple[bytes, Receipt]:
    """Return the bytes of a shard's receipt, whose SHA-256 is `digest`, and the receipt.

    The names in it become paths, so they are checked.
    """
    name = f"{SHARDS}/{stem}{SUFFIX}"
    fingerprint = stem.rpartition("-")[2]
    if not FINGERPRINT.fullmatch(fingerprint):
        problem = f"the table has {fingerprint!r} for its fingerprint; expected 32 hex digits"
        raise DamagedError(f"{store.url}/{name}: {problem}")
    try:
        data = read_small(store, name, MOST_RECEIPT_BYTES)
    except FileNotFoundError as error:
        raise missing_object(store, name) from error
    receipt = parse_receipt(data, digest, f"{store.url}/{name}")
    if receipt.stem != stem:
        raise DamagedError(f"{store.url}/{name}: is the receipt of another shard, {receipt.stem}")
    return data, receipt


def read_small(store: Store, name: str, most: int) -> bytes:
    """Return the bytes of an object that must not be large. No range is asked for: not every server knows them."""
    data = bytearray()

    def write(piece: memoryview) -> None:
        data.extend(piece)
        if len(data) > most:
            raise DamagedError(f"{store.url}/{name}: is over the limit of {most} bytes")

    store.fetch(name, write)
    return bytes(data)


def missing_object(store: Store, name: str) -> DamagedError:
    """Return the error for an object that the pack names and the store lacks."""
    return DamagedError(
        f"{store.url}/{name}: is missing. If packer gc has deleted an old generation, open the data set again to read "
        "the current one; else put this object there again"
    )


def _count(written: object, data: memoryview) -> int:
    """Return how many bytes were written: a raw file may write fewer than it got."""
    return written if isinstance(written, int) else len(data)


def main() -> None:
    """Fetch the shards that standard input names, and answer each line; end with the process that asks."""
    fetcher = None
    for line in sys.stdin:
        stem, digest = line.split()
        try:
            fetcher = fetcher or _fetcher(*sys.argv[1:])
            fetcher.shard(stem, digest).close()
            answer = ("", "")
        except (ReadError, OSError) as error:
            answer = (type(error).__name__, str(error))
        print(json.dumps(answer), flush=True)


def _fetcher(url: str, target: str, limit: str, name: str) -> Fetcher:
    from readers.stores.open_store import open_store

    budget = Budget(Path(target), int(limit))
    return Fetcher(open_store(url), budget.packs / name, budget)


if __name__ == "__main__":
    main()
