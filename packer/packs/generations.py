"""Generations of a pack: list them, roll back to one, delete the files that no kept generation uses."""

from __future__ import annotations

import re
import time
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path

from packer.errors import UsageError
from packer.publish.generation import current_manifest, make_current
from packer.publish.history import DEFAULT_KEEP, kept_numbers, read_history
from packer.publish.lock import locked
from packer.publish.pin import pin, unpin
from packer.publish.recipe_changes import recipe_changes
from packer.publish.target import REMARKS, STAMPS, is_ours, tidy
from packer.shards.build_shard import whole_shard
from packer.shards.stamps import SUFFIX as STAMP
from readers.contract.atomic import sync_folder
from readers.contract.errors import DamagedError, ReadError
from readers.contract.manifest import GENERATIONS, SHARDS, Manifest, generation_path
from readers.contract.receipt import SUFFIX, shard_stem
from readers.contract.shard_table import ShardTable, table_path

DEFAULT_GRACE = 24 * 3600.0
"""Seconds."""

_MANIFEST = re.compile(r"[0-9]{6,}\.json")
_TABLE = re.compile(r"shards-[0-9a-f]{32}\.npy")
_SHARD = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*-[0-9a-f]{32})\.[a-z0-9_.]+")


@dataclass(frozen=True)
class Generation:
    """A kept generation. If its manifest cannot be read, `manifest` is None and `damage` is the reason."""

    number: int
    manifest: Manifest | None
    damage: str
    published: float
    current: bool
    changed: tuple[str, ...] = ()
    """The keys of the recipe that differ from the generation before."""


@dataclass(frozen=True)
class Garbage:
    """Files that no kept generation uses, in the order of their deletion; `kept` are the numbers of the others."""

    kept: tuple[int, ...]
    manifests: tuple[Path, ...]
    tables: tuple[Path, ...]
    """With the remarks."""
    shards: tuple[Path, ...]
    bytes: int

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files."""
        return *self.manifests, *self.tables, *self.shards


def list_generations(out: str | PathLike[str]) -> list[Generation]:
    """Return every kept generation of the pack at `out`, the newest first. None is current if its manifest is damaged.

    Raises NoPackError if `out` is not a pack.
    """
    out = Path(out)
    check_pack(out)
    manifest = current_manifest(out)
    current = None if manifest is None else manifest.generation
    paths = [path for path in (out / GENERATIONS).iterdir() if _MANIFEST.fullmatch(path.name)]
    found: list[Generation] = []
    older = None
    for path in sorted(paths, key=lambda path: int(path.stem)):
        number, published = int(path.stem), path.stat().st_mtime
        try:
            manifest, damage = Manifest.load(out, number), ""
        except ReadError as error:
            manifest, damage = None, str(error)
        changed: tuple[str, ...] = ()
        if older is not None and manifest is not None:
            changed = tuple(key for key, _, _ in recipe_changes(older.recipe, manifest.recipe))
        found.append(Generation(number, manifest, damage, published, number == current, changed))
        older = manifest
    return found[::-1]


def check_pack(out: Path) -> None:
    """Raise NoPackError if `out` is not a pack. A pack whose current manifest is damaged or missing is one, too."""
    if not is_ours(out) or not kept_numbers(out):
        with suppress(DamagedError):
            Manifest.load(out)


def rollback_pack(out: str | PathLike[str], number: int, *, pinned: bool = False) -> Manifest:
    """Make generation `number` of the pack at `out` the current one, by one rename, and return its manifest.

    With `pinned`, builds publish no other generation until `unpin_pack`. A pack that is pinned already stays pinned.
    A damaged current manifest is replaced. Nothing is deleted.

    Raises UsageError if the generation is not kept, DamagedError if some of its shards are missing or cut, BusyError if
    another process is changing the pack.
    """
    out = Path(out)
    check_pack(out)  # a folder that is not a pack gets no lock file
    with locked(out):
        if not generation_path(out, number).is_file():
            kept = ", ".join(str(generation.number) for generation in list_generations(out))
            raise UsageError(f"{out}: generation {number} is not kept; the kept generations are {kept}")
        manifest = Manifest.load(out, number)
        missing = [str(path) for path in receipt_paths(out, manifest) if whole_shard(path) is None]
        if missing:
            summary = f"{out}: cannot roll back to generation {number}: {len(missing)} of its shards are missing or cut"
            raise DamagedError("\n".join([summary, *missing]))
        tidy(out)
        if pinned:
            pin(out)  # before the rename: a kill in between leaves a pin too many, not one too few
        make_current(out, manifest)
        return manifest


def unpin_pack(out: str | PathLike[str]) -> bool:
    """Let builds publish again, and return whether the pack at `out` was pinned."""
    out = Path(out)
    check_pack(out)
    with locked(out):
        return unpin(out)


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

    Raises BusyError if another process is changing the pack, DamagedError if a kept manifest is damaged.
    """
    out = Path(out)
    Manifest.load(out)
    with locked(out):
        garbage = find_garbage(out, keep, grace, also)
        if not dry_run:
            _delete(out, garbage)
    return garbage


def find_garbage(out: Path, keep: int, grace: float, also: Container[int] = ()) -> Garbage:
    """Return the files that `delete_garbage` deletes. Only files with names that a build gives are garbage."""
    Manifest.load(out)
    generations, now = list_generations(out), time.time()
    ended = {older.number: newer.published for newer, older in pairwise(generations)}  # older packs have no history
    ended |= read_history(out).ended
    kept = [
        generation
        for index, generation in enumerate(generations)
        if index < keep
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
        tuple(path for path in _files(out / folder) if _MANIFEST.fullmatch(path.name) and int(path.stem) not in numbers)
        for folder in (GENERATIONS, REMARKS)
    )
    old_tables = tuple(path for path in old(GENERATIONS) if _TABLE.fullmatch(path.name) and path.name not in tables)
    old_tables += old_remarks
    old_shards = tuple(
        path
        for folder in (SHARDS, STAMPS)
        for path in old(folder)
        if (match := _SHARD.fullmatch(path.name)) and match[1] not in stems
    )
    size = sum(path.stat().st_size for path in (*old_manifests, *old_tables, *old_shards))
    return Garbage(tuple(sorted(numbers)), old_manifests, old_tables, old_shards, size)


def _delete(out: Path, garbage: Garbage) -> None:
    """Delete the files that name others first: a kill in between leaves no manifest or receipt whose files are gone."""
    tidy(out)
    receipts = [path for path in garbage.shards if path.name.endswith((SUFFIX, STAMP))]
    rest = [path for path in garbage.shards if path not in set(receipts)]
    for paths in (garbage.manifests, garbage.tables, receipts, rest):
        for path in paths:
            path.unlink(missing_ok=True)
        _sync(path.parent for path in paths)


def receipt_paths(out: Path, manifest: Manifest) -> Iterator[Path]:
    """Yield the path of each receipt of a generation, in the order of its shards."""
    table = ShardTable.open(out, manifest)
    splits = (split.name for split in manifest.splits for _ in range(split.shards))
    for shard, split in enumerate(splits):
        yield out / SHARDS / (shard_stem(split, table.fingerprint(shard)) + SUFFIX)


def _files(folder: Path) -> Iterator[Path]:
    """Yield plain files, not links."""
    if not folder.is_dir() or folder.is_symlink():
        return
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.is_symlink():
            yield path


def _sync(folders: Iterable[Path]) -> None:
    for folder in set(folders):
        sync_folder(folder)
