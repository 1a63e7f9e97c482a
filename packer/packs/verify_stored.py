"""Verify a pack in a store: each shard comes to this machine, is checked as in a folder, and is removed again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path

from packer.packs.stored import seen
from packer.packs.verify import Damage, verify
from packer.progress import Progress
from packer.publish.free_space import check_free_space
from packer.publish.local_mirror import as_hole, named
from packer.shards.stored_cells import counted_fields
from readers.contract.cells import MOST_CELLS_BYTES, cells_path
from readers.contract.errors import DamagedError, StoreBusyError
from readers.contract.manifest import Manifest
from readers.contract.receipt import SUFFIX
from readers.pack import Pack
from readers.stores.checksums import MOST_RECEIPT_BYTES, parse_receipt
from readers.stores.store import Store
from readers.stores.waiting import answered

MOST_TOO_MANY = 1 << 16
"""Bytes behind the end of a file that are copied, too, so that its rows can be read."""


def verify_stored(
    url: str | PathLike[str], workers: int, progress: Progress, deep: bool = False, scratch: Path | None = None
) -> list[Damage]:
    """Check every byte of the pack at a URL. As many shards as `workers` are below `scratch` at the same time."""
    with seen(url, scratch=scratch) as (folder, store):
        manifest = Manifest.load(folder)
        with progress("verifying", manifest.bytes, "B") as advance:
            damage = verify(folder, workers, advance, deep, partial(_at_hand, store, workers))
        return [
            replace(
                item,
                message=named(item.message, folder, store),
                file=None if item.file is None else item.file.relative_to(folder),
            )
            for item in damage
        ]


@contextmanager
def _at_hand(store: Store, workers: int, pack: Pack, shard: int) -> Iterator[None]:
    """Bring a shard to the shadow of its pack. A file that is much too long stays a hole: its length is its damage."""
    if not shard:
        _check_scratch(pack, workers)
    stem, paths = pack.stem(shard), list[Path]()
    path = stem.with_name(stem.name + SUFFIX)
    try:
        if not _copy(store, pack.root, path, MOST_RECEIPT_BYTES):
            yield
            return
        paths.append(path)
        try:
            receipt = parse_receipt(path.read_bytes(), pack.table.receipt(shard), path)
        except DamagedError:  # the check of the shard meets it, too
            yield
            return
        for file in receipt.files:
            path = stem.with_name(stem.name + file.suffix)
            if path.is_file() and path.stat().st_size <= file.bytes + MOST_TOO_MANY:
                paths.append(path)
                _copy(store, pack.root, path, file.bytes + MOST_TOO_MANY)
        for field in counted_fields(pack, shard):
            path = cells_path(pack.root, stem.name, field.name)
            path.parent.mkdir(exist_ok=True)
            if _copy(store, pack.root, path, MOST_CELLS_BYTES):
                paths.append(path)
        yield
    finally:
        for path in paths:
            as_hole(path, path.stat().st_size)


def _check_scratch(pack: Pack, workers: int) -> None:
    needed = workers * max(pack.table.bytes(shard) for shard in range(len(pack.table)))
    advice = f" for a shard for each of {workers} cores; name another folder with --scratch, or use fewer --workers"
    check_free_space(pack.root, needed, advice, pack.root.parent)


def _copy(store: Store, root: Path, path: Path, most: int) -> bool:
    """Copy an object to its path in the shadow, and return whether it is there."""
    name = path.relative_to(root).as_posix()

    def fetch() -> None:
        done = 0
        with path.open("wb") as file:

            def write(data: memoryview) -> None:
                nonlocal done
                done += len(data)
                if done > most:
                    raise StoreBusyError(f"{store.url}/{name}: changed while it was read")
                file.write(data)

            store.fetch(name, write)

    try:
        answered(fetch)
    except FileNotFoundError:
        path.unlink(missing_ok=True)
        return False
    return True
