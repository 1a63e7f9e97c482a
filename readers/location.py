"""`Location`: where a data set is, and how its pack is opened, for the first time or again in another process."""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from readers.contract.errors import DamagedError, ReadError, RequestError, StoreBusyError, StoreError
from readers.contract.manifest import Manifest
from readers.pack import Pack
from readers.staged_copies import open_pack, reopen, staged_copy
from readers.stores.open_store import is_url, open_store

if TYPE_CHECKING:
    from readers.live_build import LiveBuild
    from readers.stores.cache import Cache
    from readers.stores.store import Store

Verify = Literal["digest"]
CacheBytes: TypeAlias = "int | str"
"""A number of bytes, or a text such as "200GB" or "1.5TiB"."""
UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


@dataclass(frozen=True)
class Location:
    """The pack to open, and the options of opening it."""

    root: str
    """A folder with its whole path, or a URL."""
    verify: Verify | None
    staged: bool
    cache: Path | None = None
    cache_bytes: int | None = None
    generation: int | None = None
    offline: bool | None = None
    live: LiveBuild | None = None
    """The build that is begun, and read while it goes on."""

    def __post_init__(self) -> None:
        if self.verify not in (None, "digest"):
            raise RequestError(f'verify={self.verify!r} is neither None nor "digest"')
        if self.cache is None and self.is_url:
            raise RequestError(
                f"{self.root}: shards of a store are read from a local folder; give cache=, such as "
                'cache="/nvme/packs", and cache_bytes=, such as cache_bytes="200GB"'
            )
        if self.cache is None and self.cache_bytes is not None:
            raise RequestError("cache_bytes= needs cache=, the folder with the cache")
        if self.cache is None and self.offline:
            raise RequestError("offline=True needs cache=, the folder with the cache")

    @classmethod
    def of(
        cls,
        root: str | os.PathLike[str],
        verify: Verify | None,
        staged: bool,
        cache: str | os.PathLike[str] | None,
        cache_bytes: CacheBytes | None,
        generation: int | None,
        offline: bool | None,
    ) -> Location:
        """Return the location that the arguments of `open_dataset` name."""
        name = os.fspath(root)
        where = name if is_url(name) else str(Path(name).absolute())
        folder = None if cache is None else Path(cache).absolute()
        limit = None if cache_bytes is None else _bytes(cache_bytes)
        return cls(where, verify, staged, folder, limit, generation, offline)

    @property
    def is_url(self) -> bool:
        return is_url(self.root)

    @property
    def name(self) -> str:
        """The last part of the path or URL."""
        return self.root.rstrip("/").rpartition("/")[2]

    @property
    def digests(self) -> bool:
        """True if files are compared with their checksums before they are opened."""
        return self.verify == "digest"

    def open(self) -> Pack:
        """Open the pack, or a staged copy of it."""
        return self._opened(self.generation) if self.live is None else self.live.open(Path(self.root))

    def open_again(self, folder: Path, generation: int, identity: str) -> Pack:
        """Open a generation that was read from `folder` before: there if it is a copy that still exists."""
        if self.live is not None:
            return self.live.open_again(folder, identity)
        copy = reopen(folder, generation, identity, self.digests) if str(folder) != self.root else None
        pack = copy or self._opened(generation, identity)
        if pack.manifest.identity != identity:
            raise DamagedError(f"{self.root}: generation {generation} is not the one that was pickled")
        return pack

    def _opened(self, generation: int | None, identity: str | None = None) -> Pack:
        """Open a generation. With `identity` the manifest that the cache has may do."""
        if self.cache is None:
            return open_pack(Path(self.root), generation, self.digests, self.staged)
        try:
            return self._in_cache(self.cache, generation, identity)
        except ReadError:
            raise
        except OSError as error:
            from readers.stores.evict import unusable

            raise unusable(self.cache, error) from error

    def _in_cache(self, folder: Path, generation: int | None, identity: str | None) -> Pack:
        from readers.stores.cache import CachedPack, open_cache
        from readers.stores.offline_store import OfflineStore

        cache = open_cache(folder, self.cache_bytes)
        store = OfflineStore(self.root) if self.offline else open_store(self.root)
        same = None if generation is None or identity is None else cache.manifest(store, generation, identity)
        manifest = same or self._manifest(cache, store, generation)
        copy = staged_copy(manifest, self.digests) if self.staged else None
        if copy is not None:
            return copy
        cached = CachedPack(cache, store, manifest)
        return Pack(cached.root, manifest, self.digests, cached=cached)

    def _manifest(self, cache: Cache, store: Store, generation: int | None) -> Manifest:
        """Ask the store for a manifest. If it does not answer, or shall not be asked, take the one in the cache."""
        from readers.stores.cache import read_manifest
        from readers.stores.kept_generations import kept_manifest, words_of

        try:
            if not self.offline:
                return read_manifest(store, generation) if self.is_url else Manifest.load(Path(self.root), generation)
        except StoreBusyError as error:
            kept = None if self.offline is False else kept_manifest(cache, store, generation)
            if kept is None:
                raise
            text = f"{error}; reads {words_of(cache, store, kept)} in {cache.folder}"
            warnings.warn(text, RuntimeWarning, stacklevel=6)
            return kept
        kept = kept_manifest(cache, store, generation)
        if kept is None:
            what = "no generation" if generation is None else f"no generation {generation}"
            raise StoreError(
                f"{self.root}: the cache {cache.folder} has {what} of it, and offline=True asks no store; open it once "
                "without offline=True"
            )
        return kept


def _bytes(size: CacheBytes) -> int:
    """Return the number of bytes that "200GB" or "1.5TiB" is."""
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([KMGT]i?B|B)?", str(size).strip())
    if match is None or float(match[1]) == 0:
        raise RequestError(f'cache_bytes={size!r}: expected a number of bytes, or a text such as "200GB" or "1.5TiB"')
    return int(float(match[1]) * UNITS.get(match[2] or "", 1))
