"""Push a pack to a store, and pull it from there: the shards that are missing, the table, then the manifest.

Both sides have the same generation afterwards, with the same number and bytes. A push that was killed is repeated, and
finds what it has sent. Stamps and `packer.toml` are not copied, because they hold for the raw files of one machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from packer.config.options import LOCK, REFUSE
from packer.errors import TargetError, UsageError
from packer.packs.copy_shards import Copied, Copying
from packer.packs.hub_commits import HubCommits
from packer.progress import Progress, no_progress
from packer.publish.atomic import store_errors
from packer.publish.generation import make_current, read_current
from packer.publish.local_mirror import sizes_of_pack
from packer.publish.lock import locked
from packer.publish.lock_object import exclusive
from packer.publish.pin import check_pin
from packer.publish.target import make_target, prepare_target, tidy
from readers.contract.errors import DamagedError, NoPackError
from readers.contract.manifest import MANIFEST, Manifest
from readers.machine import usable_cores
from readers.stores.cache import read_manifest
from readers.stores.folder_store import FolderStore
from readers.stores.hub_store import HubStore
from readers.stores.open_store import is_url, open_store
from readers.stores.store import Store


def push_pack(
    out: str | os.PathLike[str],
    url: str | os.PathLike[str],
    *,
    workers: int | None = None,
    no_conditions: str = REFUSE,
    progress: Progress = no_progress,
) -> Copied:
    """Copy the current generation of the pack `out` to a store: the URL of a bucket or of the Hub, or another folder.

    `workers` shards are copied at the same time, by default as many as this process has cores. A store without
    conditional writes is refused, or locked with `no_conditions="lock"`. Raises TargetError if the store has a newer
    generation or another pack, DamagedError if `out` is damaged, BusyError if another process publishes there or the
    store does not answer.
    """
    if no_conditions not in (REFUSE, LOCK):
        raise UsageError(f"no_conditions={no_conditions!r}: expected {REFUSE} or {LOCK}")
    if is_url(out):
        raise UsageError(f"{out}: packer push copies from a folder; to copy from a store: packer pull {out} OUT")
    source, hint = FolderStore(Path(out)), f"packer pull {url} {out}"
    target, may_lock = open_store(os.fspath(url)), no_conditions == LOCK
    return _copy(source, target, source, Manifest.load(source.root), hint, workers, may_lock, progress)


def pull_pack(
    url: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    progress: Progress = no_progress,
) -> Copied:
    """Copy the current generation of the pack in a store to the folder `out`. See `push_pack`."""
    if is_url(out):
        raise UsageError(f"{out}: packer pull copies to a folder; to copy to a store: packer push OUT {out}")
    source, target = open_store(os.fspath(url)), FolderStore(Path(out))
    with store_errors():
        manifest = read_manifest(source, None)
    return _copy(source, target, target, manifest, f"packer push {out} {url}", workers, False, progress)


@store_errors()
def _copy(
    source: Store,
    target: Store,
    near: FolderStore,
    manifest: Manifest,
    back: str,
    workers: int | None,
    may_lock: bool,
    progress: Progress,
) -> Copied:
    """Copy what the target lacks, and publish it there. `back` is the command that copies the other way."""
    count = workers or usable_cores()
    with progress("copying", manifest.bytes, "B") as advance, _changing(target, may_lock, count) as (store, sizes):
        before = read_current(store)
        if before.manifest is None and before.version is not None:
            raise TargetError(f"{store.url}/{MANIFEST}: is damaged; delete it, and run this again")
        _check_older(source, store, manifest, before.manifest, back)
        copying = Copying(source, store, near, manifest, advance)
        missing = copying.missing(sizes, before.manifest, count)
        copying.check_space(missing, sizes)
        if before.manifest is not None and before.manifest.same_data(manifest):
            copying.copy(missing, count)
            return Copied(before.manifest, len(missing), copying.bytes(missing))
        check_pin(store)
        copying.copy(missing, count)
        make_current(store, manifest, before)
        return Copied(manifest, len(missing), copying.bytes(missing))


@contextmanager
def _changing(target: Store, may_lock: bool, threads: int) -> Iterator[tuple[Store, dict[str, int]]]:
    """Yield the store to write to, a locked folder, a probed bucket or commits, with the sizes of its objects."""
    if isinstance(target, FolderStore):
        make_target(target.root)
        with locked(target.root):
            prepare_target(target.root)
            tidy(target.root)
            yield target, sizes_of_pack(target)
    elif isinstance(target, HubStore):
        commits = HubCommits(target.url, threads)
        yield commits, sizes_of_pack(commits)
        commits.commit()
    else:
        with exclusive(target, may_lock) as store:
            yield store, sizes_of_pack(store)


def _check_older(source: Store, target: Store, manifest: Manifest, current: Manifest | None, back: str) -> None:
    """Refuse a target that has a newer generation, another pack, or another generation of this number."""
    if current is not None and not current.same_data(manifest):
        if current.generation > manifest.generation:
            raise TargetError(
                f"{target.url}: has generation {current.generation}, newer than generation {manifest.generation} of "
                f"{source.url}, so nothing was copied; to get that one: {back}"
            )
        source_manifest = _kept(source, current.generation)
        if source_manifest is None or not source_manifest.same_data(current):
            raise TargetError(
                f"{target.url}: has a generation {current.generation} that {source.url} does not have, so nothing was "
                "copied: it is another pack, or packer gc has deleted that generation; name a new folder or URL"
            )
    claimed = _kept(target, manifest.generation)
    if claimed is not None and not claimed.same_data(manifest):
        raise TargetError(
            f"{target.url}: a build there has taken number {manifest.generation} for other data, so nothing was "
            "copied; name a new folder or URL"
        )


def _kept(store: Store, number: int) -> Manifest | None:
    """Return the manifest of a generation; None if the store has no whole one."""
    try:
        return read_manifest(store, number)
    except (NoPackError, DamagedError):
        return None
