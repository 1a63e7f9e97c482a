"""Staging: copy the current generation of a pack to a local disk or into memory, and verify it on the way.

The copy is a pack itself and is made in the same order: the files of a shard, its receipt, the table, the manifest.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from packer.errors import BusyError, UsageError
from packer.packs.copy_shards import Copied, Copying
from packer.packs.garbage import delete_garbage
from packer.packs.staged_copies import check_target, copy_folder, generations_in_use, note_source, prepare_folder
from packer.progress import Progress, no_progress
from packer.publish.atomic import store_errors
from packer.publish.generation import publish, read_current
from packer.publish.local_mirror import sizes_of_pack
from packer.publish.lock import locked
from packer.publish.target import make_target, prepare_target, tidy
from readers.contract.errors import ReadError
from readers.contract.manifest import Manifest, generation_path, is_pack
from readers.machine import usable_cores
from readers.staged_copies import MEMORY, find
from readers.stores.cache import read_manifest
from readers.stores.folder_store import FolderStore
from readers.stores.open_store import is_url, open_store

ADVICE = "; packer stage --list shows the staged copies, packer stage --drop removes them"


@dataclass(frozen=True)
class Staged(Copied):
    """A complete copy on this machine."""

    path: Path
    opened: Path | None
    """The copy that `open_dataset` reads now; None if it reads the pack. It is not `path` if the target is not searched
    or if a copy in memory exists."""


def stage_pack(
    out: str | os.PathLike[str],
    target: str | os.PathLike[str] | None = None,
    *,
    ram: bool = False,
    workers: int | None = None,
    progress: Progress = no_progress,
) -> Staged:
    """Copy the current generation of the pack `out` into the folder `target`, or with `ram` into memory (/dev/shm).

    A missing `target` is made. Shards that the copy has are not copied again. `workers` shards are copied at the
    same time, by default as many as this process has cores. Until everything is copied and verified, the copy stays
    at its old generation. Its older generations are deleted unless a data set reads them.

    Raises UsageError unless exactly one of `target` and `ram` is given, TargetError if the target is not usable or too
    small, DamagedError if `out` is damaged, BusyError if another process changes the copy.
    """
    folder = target_folder(target, ram)
    if not is_url(out) and not is_pack(Path(out)) and is_pack(folder):
        raise UsageError(f"{out}: is not a packed data set, but {target} is; OUT comes first: packer stage OUT TARGET")
    store = open_store(os.fspath(out))
    with store_errors():
        manifest = Manifest.load(store.root) if isinstance(store, FolderStore) else read_manifest(store, None)
        check_target(folder)
        with progress("staging", manifest.bytes, "B") as advance:
            copy = FolderStore(copy_folder(out, folder))
            copying = Copying(store, copy, copy, manifest, advance)
            return _stage(out, folder, copy, copying, manifest, workers or usable_cores())


def _stage(
    out: str | os.PathLike[str], folder: Path, copy: FolderStore, copying: Copying, manifest: Manifest, workers: int
) -> Staged:
    """Copy the generation into its copy in the folder, and publish it there."""
    path = copy.root
    if not path.exists():
        copying.check_space(copying.all, {}, ADVICE)  # before anything is made
    prepare_folder(folder)
    make_target(path)
    with locked(path):
        prepare_target(path)
        tidy(path)
        _check_number(path, manifest)
        note_source(path, out)
        sizes = sizes_of_pack(copy)
        missing = copying.missing(sizes, read_current(copy).manifest, workers)
        copying.check_space(missing, sizes, ADVICE)
        copying.copy(missing, workers)
        if not _is_current(path, manifest):
            _forget_another(path, manifest)
            publish(path, manifest)
        with generations_in_use(path, manifest.generation) as in_use:
            delete_garbage(path, keep=0, grace=0, also=in_use)
    return Staged(manifest, len(missing), copying.bytes(missing), path, find(manifest))


def target_folder(target: str | os.PathLike[str] | None, ram: bool) -> Path:
    """Return the folder to stage into. Raises UsageError unless exactly one of `target` and `ram` is given."""
    if ram is (target is not None):
        raise UsageError("name one place to stage to: either a folder TARGET or --ram")
    return MEMORY if target is None else Path(target).absolute()


def _check_number(copy: Path, manifest: Manifest) -> None:
    """Refuse to replace another generation of the same number that is being read: a deleted and rebuilt pack counts
    from 1 again."""
    number = manifest.generation
    if _has_another(copy, manifest):
        with generations_in_use(copy, None) as in_use:
            if number in in_use:
                raise BusyError(f"{copy}: a data set is reading another generation {number}; end that program first")


def _forget_another(copy: Path, manifest: Manifest) -> None:
    """Delete the kept manifest of another generation of the same number, which would keep this one from its number.

    An equal one stays: data sets that read it have locked it.
    """
    if _has_another(copy, manifest):
        generation_path(copy, manifest.generation).unlink()


def _has_another(copy: Path, manifest: Manifest) -> bool:
    path = generation_path(copy, manifest.generation)
    return path.is_file() and path.read_bytes() != manifest.to_text().encode()


def _is_current(copy: Path, manifest: Manifest) -> bool:
    try:
        return Manifest.load(copy) == manifest == Manifest.load(copy, manifest.generation)
    except ReadError:
        return False
