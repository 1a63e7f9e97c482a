"""`Cache`: a folder of this machine with whole, verified shards of packs that lie elsewhere; `CachedPack`: one of them.

    TARGET/segpack-UID/.cache/
      packs/NAME-HASH/    a pack in which shards may be missing
      locks/              of who fetches; budget: of who counts; used: the bytes counted; pressure: see `Cache.press`
      limits/             the budgets of running processes

All processes of a user on this machine share it without a server: files appear by renames, a receipt last, and the
kernel's locks say who fetches and what is being read. A killed process leaves a partial folder, which the next one
deletes.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import shutil
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Protocol

from readers.contract.errors import DamagedError, NoPackError, ReadError, RequestError
from readers.contract.manifest import GENERATIONS, MANIFEST, MOST_BYTES, SHARDS, Manifest, generation_path
from readers.contract.receipt import SUFFIX
from readers.contract.system import open_flags
from readers.stores.evict import Budget, CacheFullError, unusable
from readers.stores.fetch import ExpectedFile, Fetcher, read_small, wanted_table
from readers.stores.helper import Helper
from readers.stores.locks import ReadLock, if_unused
from readers.stores.offline_store import OfflineStore
from readers.stores.open_store import is_url
from readers.stores.private_folder import make_private_folder, private_folder, target_problem
from readers.stores.store import Store

PATIENCE = 60.0
"""Seconds to wait for other loaders to close shards, if all that fills the budget is open."""
TURN = 0.02
"""Seconds until the next try to get the turn in a full cache."""
SHARE_OF_FREE = 0.9
"""The default budget: this part of what the disk has free, and what the cache has already."""


class Holder(Protocol):
    """An object that has shards of a cache open."""

    def close_shards(self) -> None: ...


class Cache:
    """The cache in a target folder, with the byte budget that this process asked for."""

    def __init__(self, target: Path, limit: int | None) -> None:
        problem = target_problem(target) or make_private_folder(target)
        if problem:
            raise RequestError(f"cache={str(target)!r}: {problem}")
        folder = private_folder(target) / ".cache"  # with a dot: it holds no staged copies
        self._holders: weakref.WeakSet[Holder] = weakref.WeakSet()
        self.folder = folder
        self.budget = Budget(folder, _free(folder) if limit is None else limit)
        self._pressure = _shared_counter(folder / "locks" / "pressure")
        self._seen = self._pressure[:]

    def add(self, holder: Holder) -> None:
        """Remember who has shards open; `close_shards` is called if another shard needs their space."""
        self._holders.add(holder)

    def relieve(self) -> None:
        """Close the idle shards of this process if another one needs space. This costs a comparison of 8 bytes."""
        if self._pressure[:] != self._seen:
            self._close_idle()

    def press(self) -> None:
        """Ask all processes to close the shards that they are not reading at this moment."""
        self._pressure[:] = time.monotonic_ns().to_bytes(8, "little")
        self._close_idle()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Let one thread of the machine collect the shards of a batch in a full cache. The others have none open while
        they wait for this: else each could hold what another one needs."""
        path = self.folder / "locks" / "turn"
        path.touch()
        self.press()
        while True:
            with if_unused(path) as is_mine:
                if is_mine:
                    yield
                    return
            time.sleep(TURN)
            self.relieve()

    def manifest(self, store: Store, generation: int, identity: str) -> Manifest | None:
        """Return the manifest of a generation if the cache has it, so that the store need not be asked."""
        root = pack_folder(self, store)
        try:
            manifest = Manifest.read(root, generation_path(root, generation))
        except (ReadError, OSError):
            return None
        return manifest if manifest.identity == identity else None

    def _close_idle(self) -> None:
        self._seen = self._pressure[:]
        for holder in list(self._holders):
            holder.close_shards()


_opened: weakref.WeakValueDictionary[tuple[Path, int | None], Cache] = weakref.WeakValueDictionary()


def open_cache(target: Path, limit: int | None) -> Cache:
    """Return the cache in a target folder; the data sets of a process share one."""
    cache = _opened.get((target, limit))
    if cache is None or not cache.budget.is_there():
        cache = _opened[target, limit] = Cache(target, limit)
    return cache


class CachedPack:
    """A generation of a pack in a store. This machine has some of its shards in `root`."""

    def __init__(self, cache: Cache, store: Store, manifest: Manifest) -> None:
        self.cache, self.url, self.manifest = cache, store.url, manifest
        self.root = pack_folder(cache, store)
        self._fetcher = Fetcher(store, self.root, cache.budget)
        self._process = None if not is_url(self.url) or isinstance(store, OfflineStore) else os.getpid()
        """The process whose client of a bucket this is; None if any process may use it."""
        self._helpers: dict[int, Helper] = {}
        """By process: a helper belongs to the process that started it."""
        for folder in (SHARDS, GENERATIONS):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        table, text = wanted_table(manifest), manifest.to_text().encode()
        needed, limit = table.size + len(text), cache.budget.limit()
        if needed > limit:
            raise RequestError(
                f"{self.url}: cache_bytes={limit} is too little: manifest and shard table have {needed:,} bytes, "
                f"and the shards {manifest.bytes:,}"
            )
        self._locks = [self._manifest_lock(text), self._patiently(table.name, partial(self._fetcher.file, table))]

    def hold(self, stem: str, digest: str, wait: bool = True) -> ReadLock:
        """Return the lock of a shard that is there, and fetch it before if it is not. `digest`: of its receipt."""
        return self._patiently(stem, lambda: self.fetch(stem, digest), wait)

    def _patiently(self, what: str, fetch: Callable[[], ReadLock], wait: bool = True) -> ReadLock:
        """Fetch; while all that fills the budget is open, have all processes close what they do not read and wait.
        Without `wait` raise CacheFullError."""
        until = time.monotonic() + PATIENCE
        pause = 0.01
        while True:
            try:
                return fetch()
            except FileNotFoundError as error:  # fetched by the helper, and deleted again by others
                if not self.root.is_dir() or not self.cache.budget.is_there():
                    raise ReadError(f"{self.root}: was deleted while it was read; open {self.url} again") from error
                if time.monotonic() > until:
                    raise unusable(self.cache.folder, error) from error
            except OSError as error:
                raise unusable(self.cache.folder, error) from error
            except CacheFullError as full:
                if not wait:
                    raise
                self.cache.press()
                if time.monotonic() > until:
                    raise ReadError(
                        f"{self.url}/{what}: {full}; give a higher cache_bytes=, or read with a smaller batch_size, "
                        'with fewer threads or with shuffle="window"'
                    ) from full
            time.sleep(pause)
            pause = min(1.0, 2 * pause)

    def fetch(self, stem: str, digest: str) -> ReadLock:
        """Return the same, or raise CacheFullError at once."""
        if self._process in (None, os.getpid()):
            return self._fetcher.shard(stem, digest)
        try:
            return self._fetcher.held(f"{SHARDS}/{stem}{SUFFIX}")
        except FileNotFoundError:
            self._own_helper().shard(stem, digest)
            return self._fetcher.held(f"{SHARDS}/{stem}{SUFFIX}")

    def read(self, name: str, most: int) -> bytes:
        """Return the bytes of a small object of the pack, which is not kept."""
        return read_small(self._fetcher.store, name, most)

    def has(self, stem: str) -> bool:
        """Return whether a shard is there at this moment."""
        return (self.root / SHARDS / f"{stem}{SUFFIX}").exists()

    def stems(self) -> set[str]:
        """Return the shards that are there at this moment; none if the cache cannot be read."""
        with suppress(OSError), os.scandir(self.root / SHARDS) as entries:
            return {entry.name.removesuffix(SUFFIX) for entry in entries if entry.name.endswith(SUFFIX)}
        return set()

    def explained(self, missing: ReadError) -> DamagedError:
        """Return the error for a file that is missing although the shard was opened."""
        return DamagedError(
            f"{missing}; another process deletes files of the cache while it is read; open {self.url} again"
        )

    def drop(self, stem: str, files: Sequence[Path]) -> bool:
        """Delete a damaged shard, unless another process reads it; return whether it is gone."""
        with suppress(OSError):
            return self.cache.budget.delete(self.root / SHARDS / f"{stem}{SUFFIX}", tuple(files))
        return False

    def _own_helper(self) -> Helper:
        helper = Helper(
            self.url, self.cache.folder, self.cache.budget.asked, self.root.name
        )  # starts when it is first asked
        return self._helpers.setdefault(os.getpid(), helper)  # one for all threads

    def _manifest_lock(self, text: bytes) -> ReadLock:
        """Keep the manifest for processes that open the same generation later."""
        path = generation_path(self.root, self.manifest.generation)
        expected = ExpectedFile(
            f"{GENERATIONS}/{path.name}", len(text), hashlib.sha256(text).hexdigest(), hashlib.sha256, text
        )
        lock = self._patiently(expected.name, partial(self._fetcher.file, expected))
        if lock.head(len(text) + 1) == text:
            return lock
        path.unlink(missing_ok=True)  # of a pack that was built again in the same folder, and counts from 1 again
        return self._patiently(expected.name, partial(self._fetcher.file, expected))


def pack_folder(cache: Cache, store: Store) -> Path:
    """Return the folder of a pack in a cache: its name, and a hash of the whole URL or path."""
    url = store.url if is_url(store.url) else os.path.realpath(store.url)
    name = re.sub(r"[^A-Za-z0-9._-]", "_", url.rstrip("/").rpartition("/")[2]).lstrip(".")[:64] or "pack"
    return cache.budget.packs / f"{name}-{hashlib.sha256(os.fsencode(url)).hexdigest()[:16]}"


def read_manifest(store: Store, generation: int | None) -> Manifest:
    """Read a manifest of the pack in a store: the current one, or the manifest of a generation."""
    name = MANIFEST if generation is None else generation_path(Path(), generation).as_posix()
    try:
        data = read_small(store, name, MOST_BYTES)
    except FileNotFoundError as error:
        if generation is None:
            why = f"no packed data set here ({name} is missing); check the URL, and the name of the bucket"
        else:
            why = f"generation {generation} is not kept here ({name} is missing); leave generation= out for the current"
        raise NoPackError(f"{store.url}: {why}") from error
    try:
        return Manifest.from_text(data.decode(), f"{store.url}/{name}")
    except UnicodeDecodeError as error:
        raise DamagedError(f"{store.url}/{name}: is not UTF-8 ({error})") from error


def _free(folder: Path) -> int:
    used = 0
    for path, _, names in os.walk(folder / "packs"):
        for name in names:
            with suppress(FileNotFoundError):  # deleted by others in this moment
                used += Path(path, name).stat().st_size
    return int(used + SHARE_OF_FREE * shutil.disk_usage(folder.parent).free)


def _shared_counter(path: Path) -> mmap.mmap:
    """Map 8 bytes that all processes see."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | open_flags(), 0o600), "r+b") as file:
        if os.fstat(file.fileno()).st_size < 8:
            os.ftruncate(file.fileno(), 8)
        return mmap.mmap(file.fileno(), 8)
