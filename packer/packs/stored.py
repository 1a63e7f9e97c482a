"""Packs that commands see in a folder or in a store: of a store, they see its shadow on this machine."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path

from packer.publish.atomic import store_errors
from packer.publish.history import HISTORY
from packer.publish.local_mirror import ChosenNames, Entries, open_shadow
from packer.publish.pin import PIN
from readers.contract.manifest import GENERATIONS, SHARDS, Manifest
from readers.stores.cache import read_manifest
from readers.stores.open_store import open_store, url_of
from readers.stores.store import Store


@store_errors()
def manifest_at(url: str) -> Manifest:
    """Return the current manifest of the pack at a URL."""
    return read_manifest(open_store(url), None)


def generations(entries: Entries) -> list[str]:
    """Return the names of the manifests, the tables and the history of a pack."""
    return [HISTORY, PIN, *(name for name in entries if name.startswith(f"{GENERATIONS}/"))]


@contextmanager
def seen(
    out: str | PathLike[str],
    choose: ChosenNames = generations,
    holes: Collection[str] = (SHARDS,),
    scratch: Path | None = None,
) -> Iterator[tuple[Path, Store]]:
    """Yield the folder of a pack, and its store; of a URL, a shadow of the pack in which nothing is to be changed."""
    url, store = url_of(out), open_store(fspath(out))
    if url is None:
        yield Path(out), store
        return
    with store_errors(), open_shadow(store, scratch, choose, holes) as folder:
        yield folder, store
