"""`packer gc`: delete the files that no kept generation of a pack uses."""

from __future__ import annotations

import re
import time
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from os import PathLike
from pathlib import Path

from packer.errors import BusyError
from packer.packs.generations import MANIFEST_NAME, list_generations, receipt_paths
from packer.packs.stored import generations, seen
from packer.publish.generation import read_current
from packer.publish.history import DEFAULT_KEEP, read_history
from packer.publish.lock import locked
from packer.publish.target import PLANS, REMARKS, STAMPS, TICKETS, tidy
from packer.publish.target import STAMP_SUFFIX as STAMP
from packer.publish.ticket import is_ticket
from readers.contract.errors import DamagedError
from readers.contract.manifest import CELLS, GENERATIONS, SHARDS, Manifest
from readers.contract.receipt import SUFFIX
from readers.contract.shard_table import table_path
from readers.stores.folder_store import FolderStore
from readers.stores.open_store import is_url
from readers.stores.store import Store
from readers.stores.waiting import answered

DEFAULT_GRACE = 24 * 3600.0
"""Seconds."""

_TABLE = re.compile(r"shards-[0-9a-f]{32}\.npy")
_PLAN = re.compile(r"[0-9a-f]{16}")
_SHARD = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*-[0-9a-f]{32})\.[a-z0-9_.]+")


@dataclass(frozen=True)
class Garbage:
    """Files that no kept generation uses, in the order of their deletion; `kept` are the numbers of the others."""

    kept: tuple[int, ...]
    manifests: tuple[Path, ...]
    tables: tuple[Path, ...]
    """With the remarks."""
    shards: tuple[Path, ...]
    bytes: int
    tickets: tuple[Path, ...] = ()
    """The tickets of plans whose last part ran long ago."""
    plans: tuple[Path, ...] = ()
    """The files of plans that a build on a cluster left here when it was killed."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files."""
        return *self.manifests, *self.tables, *self.shards, *self.tickets, *self.plans

    def below(self, folder: Path) -> Garbage:
        """Return the same files by their names below a folder."""

        def below(paths: Sequence[Path]) -> tuple[Path, ...]:
            return tuple(path.relative_to(folder) for path in paths)

        manifests, tables, shards = below(self.manifests), below(self.tables), below(self.shards)
        tickets, plans = below(self.tickets), below(self.plans)
        return replace(self, manifests=manifests, tables=tables, shards=shards, tickets=tickets, plans=plans)


def delete_garbage(
    out: str | PathLike[str],
    keep: int = DEFAULT_KEEP,
    grace: float = DEFAULT_GRACE,
    also: Container[int] = (),
    dry_run: bool = False,
) -> Garbage:
    """Delete the files that no kept generation of the pack at `out` uses, and return them. A `dry_run` deletes nothing.

    Kept are the newest `keep` generations, the current one, those that were current within the last `grace` seconds,
    and the numbers in `also`. Files younger than `grace` stay, too: a killed build continues with its shards.

    A bucket has no lock, so nothing should be built there at the same time: a build may reuse a shard that no
    generation uses yet. The garbage of a URL has names below it for paths.

    Raises BusyError if another process is changing the pack, DamagedError if a kept manifest is damaged.
    """
    if is_url(out):
        return _delete_stored(out, keep, grace, also, dry_run)
    out = Path(out)
    Manifest.load(out)
    with locked(out):
        garbage = find_garbage(out, keep, grace, also)
        if not dry_run:
            tidy(out)
            _delete(FolderStore(out), garbage.below(out))
            for name in (TICKETS, PLANS):
                for folder in (*(out / name).glob("*"), out / name):
                    with suppress(OSError):  # it has others
                        folder.rmdir()
    return garbage


def _delete_stored(url: str | PathLike[str], keep: int, grace: float, also: Container[int], dry_run: bool) -> Garbage:
    with seen(url, generations, holes=(SHARDS, CELLS, STAMPS, REMARKS, TICKETS, PLANS)) as (folder, store):
        garbage = find_garbage(folder, keep, grace, also).below(folder)
        if dry_run:
            return garbage
        before = Manifest.load(folder)
        _check_current(store, before, "nothing was deleted; try again")
        _delete(store, garbage)
        _check_current(store, before, f"look for deleted shards: packer verify {store.url}")
        return garbage


def _check_current(store: Store, before: Manifest, advice: str) -> None:
    if read_current(store).manifest != before:
        raise BusyError(f"{store.url}: another generation was published just now; {advice}")


def find_garbage(out: Path, keep: int, grace: float, also: Container[int] = ()) -> Garbage:
    """Return the files that `delete_garbage` deletes. Only files with names that a build gives are garbage."""
    Manifest.load(out)
    generations, now = list_generations(out), time.time()
    ended = {older.number: newer.published for newer, older in pairwise(generations)}  # older packs have no history
    ended |= read_history(out).ended
    ended |= {claim.number: claim.published for claim in generations if not claim.was_current}
    newest = [generation.number for generation in generations if generation.was_current][:keep]
    kept = [
        generation
        for generation in generations
        if generation.number in newest
        or generation.current
        or generation.number in also
        or now - ended.get(generation.number, now) < grace
    ]
    for generation in kept:
        if generation.manifest is None:
            raise DamagedError(f"{generation.damage}; the shards that it uses are unknown: run packer repair first")
    manifests = [generation.manifest for generation in kept if generation.manifest is not None]
    stems = {path.name.removesuffix(SUFFIX) for manifest in manifests for path in receipt_paths(out, manifest)}
    tables = {table_path(out, manifest.table).name for manifest in manifests}
    numbers = {generation.number for generation in kept}

    def old(folder: str) -> Iterator[Path]:
        return (path for path in _files(out / folder) if now - path.stat().st_mtime >= grace)

    old_manifests, old_remarks = (
        tuple(path for path in _files(out / folder) if _is_manifest(path) and int(path.stem) not in numbers)
        for folder in (GENERATIONS, REMARKS)
    )
    old_tables = tuple(path for path in old(GENERATIONS) if _TABLE.fullmatch(path.name) and path.name not in tables)
    old_tables += old_remarks
    old_shards = tuple(
        path
        for folder in (SHARDS, CELLS, STAMPS)
        for path in old(folder)
        if (match := _SHARD.fullmatch(path.name)) and match[1] not in stems
    )
    size = sum(path.stat().st_size for path in (*old_manifests, *old_tables, *old_shards))
    tickets = tuple(_old_tickets(out, now - grace))
    plans = tuple(_old_plans(out, now - grace))
    return Garbage(tuple(sorted(numbers)), old_manifests, old_tables, old_shards, size, tickets, plans)


def _old_tickets(out: Path, until: float) -> Iterator[Path]:
    """Yield the tickets of plans that have none that is newer than this time."""
    for folder in sorted((out / TICKETS).glob("*")):
        paths = [path for path in _files(folder) if is_ticket(path.name)]
        if all(path.stat().st_mtime <= until for path in paths):
            yield from paths


def _old_plans(out: Path, until: float) -> Iterator[Path]:
    """Yield the files of plans that are all older than this time. A build that runs removes its own at the end."""
    for folder in sorted((out / PLANS).glob("*")):
        paths = list(_files(folder))
        if _PLAN.fullmatch(folder.name) and all(path.stat().st_mtime <= until for path in paths):
            yield from paths


def _delete(store: Store, garbage: Garbage) -> None:
    """Delete the files that name others first: a kill in between leaves no manifest or receipt whose files are gone."""
    receipts = [path for path in garbage.shards if path.name.endswith((SUFFIX, STAMP))]
    receipt_set = set(receipts)
    rest = [path for path in garbage.shards if path not in receipt_set]
    for paths in (garbage.manifests, garbage.tables, garbage.tickets, garbage.plans, receipts, rest):
        names = [path.as_posix() for path in paths]
        answered(lambda names=names: store.delete(names))  # type: ignore[misc]


def _is_manifest(path: Path) -> bool:
    return MANIFEST_NAME.fullmatch(path.name) is not None


def _files(folder: Path) -> Iterator[Path]:
    """Yield plain files, not links."""
    if not folder.is_dir() or folder.is_symlink():
        return
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.is_symlink():
            yield path
