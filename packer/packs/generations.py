"""Generations: those that a pack has kept, going back to one, and deleting what none that is kept names."""

from __future__ import annotations

import re
import time
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from packer.errors import InputError
from packer.publish.atomic import put_text, sync_folder
from packer.publish.target import STAMPS, tidy
from packer.shards.build_shard import whole_shard
from packer.shards.stamps import SUFFIX as STAMP
from readers.contract.errors import DamagedError, ReadError
from readers.contract.manifest import GENERATIONS, MANIFEST, SHARDS, Manifest, generation_path
from readers.contract.receipt import SUFFIX, shard_stem
from readers.contract.shard_table import ShardTable, table_path

_MANIFEST = re.compile(r"[0-9]{6,}\.json")
_TABLE = re.compile(r"shards-[0-9a-f]{32}\.npy")
_SHARD = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*-[0-9a-f]{32})\.[a-z0-9_.]+")


@dataclass(frozen=True)
class Generation:
    """One that is kept; `manifest` is None where it cannot be read, and `damage` is why."""

    number: int
    manifest: Manifest | None
    damage: str
    published: float
    current: bool


@dataclass(frozen=True)
class Garbage:
    """Files that no kept generation needs, in the order in which they are to go."""

    kept: tuple[int, ...]
    manifests: tuple[Path, ...]
    tables: tuple[Path, ...]
    shards: tuple[Path, ...]

    @property
    def bytes(self) -> int:
        return sum(path.stat().st_size for path in (*self.manifests, *self.tables, *self.shards))


def generations(out: Path) -> list[Generation]:
    """Every generation that is kept, the newest first."""
    current = Manifest.load(out).generation
    paths = [path for path in (out / GENERATIONS).iterdir() if _MANIFEST.fullmatch(path.name)]
    return [_generation(out, path, current) for path in sorted(paths, key=lambda path: int(path.stem), reverse=True)]


def _generation(out: Path, path: Path, current: int) -> Generation:
    number, published = int(path.stem), path.stat().st_mtime
    try:
        manifest = Manifest.load(out, number)
    except ReadError as error:
        return Generation(number, None, str(error), published, number == current)
    return Generation(number, manifest, "", published, number == current)


def rollback(out: Path, number: int) -> Manifest:
    """Make a kept generation the current one, by one rename. The lock must be held."""
    path = generation_path(out, number)
    if not path.is_file():
        kept = ", ".join(str(one.number) for one in generations(out))
        raise InputError(f"{out}: generation {number} is not kept; there are {kept}")
    manifest = Manifest.load(out, number)
    missing = [str(path) for path in receipt_paths(out, manifest) if whole_shard(path) is None]
    if missing:
        raise DamagedError(
            "\n".join([f"{out}: generation {number} lacks {len(missing)} shards, so it stays what it is", *missing])
        )
    tidy(out)
    put_text(manifest.to_text(), out / MANIFEST)
    return manifest


def garbage(out: Path, keep: int, grace: float, also: Container[int] = ()) -> Garbage:
    """What the last `keep` generations, the current one, those that were current within `grace` seconds and those that
    are `also` to be kept do not name.

    Only files with names that we give, and that are older than `grace` themselves: a build that was killed goes on with
    what it has made.
    """
    known, now = generations(out), time.time()
    superseded = {one.number: newer.published for newer, one in pairwise(known)}
    kept = [
        one
        for place, one in enumerate(known)
        if place < keep or one.current or one.number in also or now - superseded.get(one.number, now) < grace
    ]
    for one in kept:
        if one.manifest is None:
            raise DamagedError(f"{one.damage}; what it names cannot be told from garbage: run packer repair first")
    manifests = [one.manifest for one in kept if one.manifest is not None]
    stems = {path.name.removesuffix(SUFFIX) for manifest in manifests for path in receipt_paths(out, manifest)}
    tables = {table_path(out, manifest.table).name for manifest in manifests}
    numbers = {one.number for one in kept}

    def old(folder: str) -> Iterator[Path]:
        return (path for path in _files(out / folder) if now - path.stat().st_mtime >= grace)

    return Garbage(
        kept=tuple(sorted(numbers)),
        manifests=tuple(
            p for p in _files(out / GENERATIONS) if _MANIFEST.fullmatch(p.name) and int(p.stem) not in numbers
        ),
        tables=tuple(p for p in old(GENERATIONS) if _TABLE.fullmatch(p.name) and p.name not in tables),
        shards=tuple(
            p
            for folder in (SHARDS, STAMPS)
            for p in old(folder)
            if (found := _SHARD.fullmatch(p.name)) and found[1] not in stems
        ),
    )


def delete(out: Path, found: Garbage) -> None:
    """Delete garbage: what names others goes first, so that a kill in between leaves nothing that names what is gone.
    The lock must be held."""
    tidy(out)
    receipts = [path for path in found.shards if path.name.endswith((SUFFIX, STAMP))]
    rest = [path for path in found.shards if path not in set(receipts)]
    for paths in (found.manifests, found.tables, receipts, rest):
        for path in paths:
            path.unlink(missing_ok=True)
        _sync(path.parent for path in paths)


def recipe_changes(before: Manifest | None, now: Manifest | None) -> list[str]:
    """The keys of the recipe that are others than in the generation before."""
    if before is None or now is None:
        return []
    keys: dict[str, Any] = {**before.recipe, **now.recipe}
    return [key for key in keys if before.recipe.get(key) != now.recipe.get(key)]


def receipt_paths(out: Path, manifest: Manifest) -> Iterator[Path]:
    """Where the receipts of a generation lie."""
    table = ShardTable.open(out, manifest)
    splits = (split.name for split in manifest.splits for _ in range(split.shards))
    for shard, split in enumerate(splits):
        yield out / SHARDS / (shard_stem(split, table.fingerprint(shard)) + SUFFIX)


def _files(folder: Path) -> Iterator[Path]:
    """Plain files, no links."""
    if not folder.is_dir() or folder.is_symlink():
        return
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.is_symlink():
            yield path


def _sync(folders: Iterable[Path]) -> None:
    for folder in set(folders):
        sync_folder(folder)
