"""Generations of a pack: list them, and roll back to one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from packer.config.options import LOCK, REFUSE
from packer.errors import UsageError
from packer.packs.stored import generations, manifest_at, seen
from packer.publish.atomic import store_errors
from packer.publish.generation import current_manifest, make_current, read_current
from packer.publish.history import kept_numbers, never_current, read_history
from packer.publish.local_mirror import open_shadow, show_shards
from packer.publish.lock import locked
from packer.publish.lock_object import exclusive
from packer.publish.pin import pin, unpin
from packer.publish.recipe_changes import recipe_changes
from packer.publish.target import is_ours, tidy
from packer.shards.receipt_on_disk import whole_shard
from readers.contract.errors import DamagedError, ReadError
from readers.contract.manifest import GENERATIONS, SHARDS, Manifest, generation_path
from readers.contract.receipt import SUFFIX, shard_stem
from readers.contract.shard_table import ShardTable
from readers.stores.open_store import is_url, open_store

MANIFEST_NAME = re.compile(r"[0-9]{6,}\.json")


@dataclass(frozen=True)
class Generation:
    """A kept generation. If its manifest cannot be read, `manifest` is None and `damage` is the reason."""

    number: int
    manifest: Manifest | None
    damage: str
    published: float
    current: bool
    was_current: bool = True
    """False if it was claimed and not published: its build was killed, or lost a race."""
    changed: tuple[str, ...] = ()
    """The keys of the recipe that differ from the generation before."""


def list_generations(out: str | PathLike[str]) -> list[Generation]:
    """Return every kept generation of the pack at `out`, the newest first. None is current if its manifest is damaged.

    Raises NoPackError if `out` is not a pack.
    """
    with seen(out, holes=()) as (folder, _):
        return _listed(folder)


def _listed(out: Path) -> list[Generation]:
    check_pack(out)
    manifest = current_manifest(out)
    current = None if manifest is None else manifest.generation
    paths = [path for path in (out / GENERATIONS).iterdir() if MANIFEST_NAME.fullmatch(path.name)]
    generations: list[Generation] = []
    never = never_current((int(path.stem) for path in paths), current, read_history(out))
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
        generations.append(
            Generation(number, manifest, damage, published, number == current, number not in never, changed)
        )
        older = manifest
    return generations[::-1]


def check_pack(out: Path) -> None:
    """Raise NoPackError if `out` is not a pack. A pack whose current manifest is damaged or missing is one, too."""
    if not is_ours(out) or not kept_numbers(out):
        with suppress(DamagedError):
            Manifest.load(out)


def rollback_pack(
    out: str | PathLike[str], number: int, *, pinned: bool = False, no_conditions: str = REFUSE
) -> Manifest:
    """Make generation `number` of the pack at `out` the current one, by one rename, and return its manifest.

    With `pinned`, builds publish no other generation until `unpin_pack`. A pack that is pinned already stays pinned.
    A damaged current manifest is replaced. Nothing is deleted. At a URL, `no_conditions` may be "lock" for a store
    without conditional writes.

    Raises UsageError if the generation is not kept, DamagedError if some of its shards are missing or cut, BusyError if
    another process is changing the pack.
    """
    if is_url(out):
        return _rollback_stored(fspath(out), number, pinned, no_conditions == LOCK)
    out = Path(out)
    check_pack(out)  # a folder that is not a pack gets no lock file
    with locked(out):
        manifest = _kept(out, number)
        _check_shards(out, manifest)
        tidy(out)
        if pinned:
            pin(out)  # before the rename: a kill in between leaves a pin too many, not one too few
        make_current(out, manifest)
        return manifest


def _rollback_stored(url: str, number: int, pinned: bool, may_lock: bool) -> Manifest:
    with store_errors(), exclusive(open_store(url), may_lock) as store:
        before = read_current(store)
        with open_shadow(store, None, generations, holes=()) as folder:
            check_pack(folder)
            manifest = _kept(folder, number)
            show_shards(store, folder, {path.name.removesuffix(SUFFIX) for path in receipt_paths(folder, manifest)})
            _check_shards(folder, manifest)
        if pinned:
            pin(store)
        make_current(store, manifest, before)
        return manifest


def _kept(out: Path, number: int) -> Manifest:
    """Return the manifest of a generation that is kept."""
    if not generation_path(out, number).is_file():
        kept = ", ".join(str(generation.number) for generation in list_generations(out))
        raise UsageError(f"{out}: generation {number} is not kept; the kept generations are {kept}")
    if any(generation.number == number and not generation.was_current for generation in list_generations(out)):
        raise UsageError(f"{out}: generation {number} was never current: its build was killed, or lost a race")
    return Manifest.load(out, number)


def _check_shards(out: Path, manifest: Manifest) -> None:
    """Raise DamagedError if shards of a generation are missing or cut."""
    missing = [str(path) for path in receipt_paths(out, manifest) if whole_shard(path) is None]
    if missing:
        number, count = manifest.generation, len(missing)
        summary = f"{out}: cannot roll back to generation {number}: {count} of its shards are missing or cut"
        raise DamagedError("\n".join([summary, *missing]))


def unpin_pack(out: str | PathLike[str]) -> bool:
    """Let builds publish again, and return whether the pack at `out` was pinned."""
    if is_url(out):
        manifest_at(fspath(out))
        return unpin(open_store(fspath(out)))
    out = Path(out)
    check_pack(out)
    with locked(out):
        return unpin(out)


def receipt_paths(out: Path, manifest: Manifest) -> Iterator[Path]:
    """Yield the path of each receipt of a generation, in the order of its shards."""
    table = ShardTable.open(out, manifest)
    splits = (split.name for split in manifest.splits for _ in range(split.shards))
    for shard, split in enumerate(splits):
        yield out / SHARDS / (shard_stem(split, table.fingerprint(shard)) + SUFFIX)
