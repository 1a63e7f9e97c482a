"""A shadow: a folder of this machine that looks like a pack in a store, so that what reads packs can read it.

It has copies of the manifest, the table and the receipts that the build needs. Other files of shards are as long as in
the store and take no disk, because no process reads them.
"""

from __future__ import annotations

import math
import os
import re
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from packer.errors import PackError, TargetError, first_of
from packer.publish.generation import Current, read_current
from packer.publish.lock_object import LOCKS
from packer.publish.store_probe import PREFIX
from packer.publish.target import MARK_TEXT, STAMPS, is_our_manifest
from readers.contract.atomic import partial
from readers.contract.errors import ReadError, StoreError
from readers.contract.leftovers import MAX_AGE, sweep
from readers.contract.manifest import GENERATIONS, MANIFEST, MARK, SHARDS
from readers.contract.receipt import SUFFIX
from readers.contract.shard_table import table_path
from readers.stores.store import Listed, Store, check_name
from readers.stores.waiting import answered

STAMP = ".stamps"
READERS = 16
"""Threads that read small objects at the same time."""
_SHARD = re.compile(rf"{SHARDS}/([^/]+-[0-9a-f]{{32}})\.[^/]+")
Entries: TypeAlias = Mapping[str, Listed]
ChosenNames: TypeAlias = Callable[[Entries], Iterable[str]]
"""Returns the names of the small objects that are copied, of all objects of a pack."""


@contextmanager
def private_scratch(scratch: Path | None) -> Iterator[Path]:
    """Make a folder below `scratch` or TMPDIR, and delete it at the end.

    Delete the folders of processes that were killed.
    """
    scratch = Path(tempfile.gettempdir()) if scratch is None else scratch
    if not scratch.is_dir():
        raise TargetError(f"--scratch {scratch}: there is no such folder")
    sweep(scratch, math.inf)
    with partial(scratch) as folder:
        for name in (SHARDS, GENERATIONS, STAMPS):
            (folder / name).mkdir(parents=True)
        yield folder


@contextmanager
def open_shadow(
    store: Store, scratch: Path | None, choose: ChosenNames, holes: Collection[str] = (SHARDS,)
) -> Iterator[Path]:
    """Make the shadow of a pack in a store. The store is not changed.

    It has copies of the objects that `choose` names besides manifest and table, and files without content for the rest
    of the folders `holes`. Errors of the packer and of readers name the URL.
    """
    entries = objects_of_pack(store)
    names = choose(entries)
    with private_scratch(scratch) as folder:
        make_shadow(store, folder, read_current(store), entries, holes)
        copy_objects(store, folder, entries, names)
        try:
            yield folder
        except (PackError, ReadError) as error:
            error.args = tuple(named(arg, folder, store) if isinstance(arg, str) else arg for arg in error.args)
            raise


def named(text: str, folder: Path, store: Store) -> str:
    """Return a message about a shadow as one about its store."""
    return text.replace(str(folder), store.url)


def objects_of_pack(store: Store) -> dict[str, Listed]:
    """Return each object of a pack. Refuse a folder that holds anything but a pack; an empty one is new."""
    entries = {entry.name: entry for entry in store.list("")}
    others = [name for name in entries if not name.startswith((PREFIX, f"{LOCKS}/"))]
    is_pack = MARK in entries or (MANIFEST in entries and is_our_manifest(store.read(MANIFEST, 0, 100)[0][:100]))
    if others and not is_pack:
        raise TargetError(
            f"{store.url}: exists and is not a packed data set (it holds {', '.join(first_of(others, 3))}); "
            "name a new or an empty folder"
        )
    return entries


def sizes_of_pack(store: Store) -> dict[str, int]:
    """Return the size of each object of a pack, which is marked as ours. Refuse a folder with anything else."""
    entries = objects_of_pack(store)
    mark(store, entries)
    return {name: entry.size for name, entry in entries.items()}


def mark(store: Store, entries: Entries) -> None:
    """Mark a store as ours, unless it is. Delete locks and probes that are a day old: their owners could not do it."""
    until = time.time() - MAX_AGE
    others = (entry for name, entry in entries.items() if name.startswith((PREFIX, f"{LOCKS}/")))
    with suppress(StoreError):  # a store may refuse it
        store.delete(entry.name for entry in others if 0 < entry.modified < until)
    if MARK not in entries:
        answered(lambda: store.put(MARK, MARK_TEXT.encode()))


def make_shadow(
    store: Store, folder: Path, before: Current, entries: Entries, holes: Collection[str] = (SHARDS,)
) -> None:
    """Copy the mark, the manifest and the table; make files without content for the large objects."""
    (folder / MARK).write_text(MARK_TEXT)
    copied = [] if before.manifest is None else [table_path(Path(), before.manifest.table).as_posix()]
    copy_objects(store, folder, entries, [MANIFEST, *copied])
    make_holes(folder, entries, holes)


def show_shards(store: Store, folder: Path, stems: Collection[str]) -> None:
    """Copy the receipts of these shards, and make files without content for the rest of them."""
    if stems:  # else nothing is listed
        entries = {entry.name: entry for entry in store.list(SHARDS) if _stem(entry.name) in stems}
        copy_objects(store, folder, entries, receipts_of(stems))
        make_holes(folder, entries)


def make_holes(folder: Path, entries: Entries, folders: Collection[str] = (SHARDS,)) -> None:
    """Make files that are as long and as old as those objects of these folders that were not copied."""
    for name, entry in entries.items():
        if name.partition("/")[0] in folders:
            path = folder / check_name(name)
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                as_hole(path, entry.size)
                os.utime(path, (entry.modified, entry.modified))


def as_hole(path: Path, size: int) -> None:
    """Make a file without content, which takes no disk."""
    path.open("wb").close()
    os.truncate(path, size)


def _stem(name: str) -> str:
    """Return the stem of a file of a shard, which ends with a fingerprint; nothing of other files."""
    match = _SHARD.fullmatch(name)
    return match[1] if match else ""


def stems_with_stamps(entries: Entries) -> list[str]:
    """Return the stems of the shards that have stamps."""
    stamps = (path.name for path in map(Path, entries) if path.parent == Path(STAMPS) and path.suffix == STAMP)
    return [name.removesuffix(STAMP) for name in stamps]


def receipts_of(stems: Iterable[str]) -> list[str]:
    """Return the names of receipts."""
    return [f"{SHARDS}/{stem}{SUFFIX}" for stem in stems]


def copy_objects(
    store: Store,
    folder: Path,
    entries: Entries,
    names: Iterable[str],
    copied: Callable[[Path], object] = lambda path: None,
) -> None:
    """Copy those small objects that exist, with their times. `copied` hears of each."""

    def copy(name: str) -> None:
        data, _ = answered(lambda: store.read(name))
        path = folder / check_name(name)
        path.write_bytes(data)
        os.utime(path, (entries[name].modified, entries[name].modified))
        copied(path)

    with ThreadPoolExecutor(READERS) as threads:
        list(threads.map(copy, (name for name in names if name in entries)))
