"""Staged copies: their folders, the list of them, which of their generations are being read, and dropping them.

The copies of a user are in `segpack-UID/` in each target folder, closed to others. A registry in the user's cache
remembers the target folders, so that `open_dataset` searches them.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from packer.errors import BusyError, InputError, PackError, TargetError
from packer.publish.atomic import write_atomic
from packer.publish.generation import current_manifest
from packer.publish.lock import locked
from readers import staged_copies as staged
from readers.contract.atomic import partial_path, sync_folder
from readers.contract.errors import VersionError
from readers.contract.json_entry import loads
from readers.contract.leftovers import sweep
from readers.contract.manifest import GENERATIONS, Manifest, generation_path
from readers.stores.open_store import open_store, url_of
from readers.stores.private_folder import make_private_folder, private_folder, target_problem
from readers.stores.store import Store

SOURCE = "source.json"
"""The file in a copy that names the folder of the pack."""


@dataclass(frozen=True)
class StagedCopy:
    """A copy on this machine. `manifest` is None if the copy was never finished."""

    path: Path
    source: Path | str
    """The folder of the pack, or its URL."""
    manifest: Manifest | None
    bytes: int
    """The bytes of all its files, including generations that are still being read."""


def source_of(out: str | os.PathLike[str]) -> str:
    """Return the URL of a pack, or its whole path."""
    return url_of(out) or os.fspath(Path(out).resolve())


def copy_folder(out: str | os.PathLike[str], target: Path) -> Path:
    """Return the path of the copy of OUT in a target folder. It depends on the whole path of OUT, not only the name."""
    source = source_of(out)
    name = re.sub(r"[^A-Za-z0-9._-]", "_", source.rpartition("/")[2]).lstrip(".")[:64] or "pack"
    return private_folder(target) / f"{name}-{hashlib.sha256(os.fsencode(source)).hexdigest()[:16]}"


def check_target(target: Path) -> None:
    """Refuse a target that is not a folder, or in which other users could replace our folder by theirs."""
    if problem := target_problem(target):
        raise TargetError(problem)


def prepare_folder(target: Path) -> None:
    """Make the folder for this user's copies, closed to all others, and add the target to the registry."""
    if problem := make_private_folder(target):
        raise TargetError(problem)
    sweep(private_folder(target))
    with suppress(OSError, PackError):  # without a registry, SEGPACK_STAGED must name the target
        _register(target)


def _register(target: Path) -> None:
    registry = staged.registry()
    if registry is None:
        return
    registry.parent.mkdir(parents=True, exist_ok=True)
    with (registry.parent / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        sweep(registry.parent)
        folders = staged.registered()
        targets = [target, *(folder for folder in folders if folder != target and folder.is_dir())]
        if targets != folders:
            write_atomic(registry, json.dumps([os.fspath(folder) for folder in targets]) + "\n")


def note_source(copy: Path, out: str | os.PathLike[str]) -> None:
    """Write the path of the pack into its copy."""
    text = json.dumps({"source": source_of(out)}) + "\n"
    path = copy / SOURCE
    if not path.is_file() or path.read_text(encoding="utf-8", errors="replace") != text:
        write_atomic(path, text)


def list_copies() -> list[StagedCopy]:
    """Return every copy of this user on this machine: in memory, in the registered folders, in SEGPACK_STAGED."""
    targets = dict.fromkeys([*staged.folders(), staged.MEMORY, *staged.registered()])
    copies = (_staged_copy(path) for target in targets for path in staged.copies(target))
    return [copy for copy in copies if copy is not None]


def _staged_copy(path: Path) -> StagedCopy | None:
    try:
        text = loads((path / SOURCE).read_text(encoding="utf-8"))["source"]
        source = url_of(text) or Path(text)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    size = 0
    for file in path.rglob("*"):
        with suppress(FileNotFoundError):  # another process may change the copy
            size += file.lstat().st_size if file.is_file() else 0
    with suppress(VersionError):  # a copy that an older release made
        return StagedCopy(path, source, current_manifest(path), size)
    return StagedCopy(path, source, None, size)


def outdated_copies(out: str | os.PathLike[str]) -> list[StagedCopy]:
    """Return the copies of a pack on this machine that were never finished, or have a generation that the pack lost.

    No data set that opens the pack reads them. The next `packer stage` copies only what differs, so they may stay.
    """
    store, source = open_store(os.fspath(out)), source_of(out)
    copies = [copy for copy in list_copies() if str(copy.source) == source]
    return [copy for copy in copies if copy.manifest is None or not _has_generation(store, copy.manifest)]


def _has_generation(store: Store, manifest: Manifest) -> bool:
    try:
        text, _ = store.read(generation_path(Path(), manifest.generation).as_posix())
    except FileNotFoundError:
        return False
    return text == manifest.to_text().encode()


def drop_copies(out: Path | str) -> list[StagedCopy]:
    """Remove every copy of the pack `out`, or the copy at the path `out`, and return what was removed.

    Raises InputError if there is no such copy. A copy that is being read or changed stays; BusyError names it after the
    others are removed.
    """
    source = source_of(out)
    copies = [copy for copy in list_copies() if source in (str(copy.source), str(copy.path.resolve()))]
    if not copies:
        raise InputError(f"{out}: has no known copy on this machine; packer stage --list shows all copies")
    dropped, busy = [], []
    for copy in copies:
        try:
            with locked(copy.path):
                _drop(copy.path)
            dropped.append(copy)
        except BusyError as error:
            busy.append(str(error))
    if busy:
        raise BusyError("\n".join(busy))
    return dropped


def _drop(path: Path) -> None:
    """Remove a copy: one rename hides it from readers, then its files are deleted."""
    with generations_in_use(path, None) as in_use:
        if in_use:
            numbers = ", ".join(map(str, sorted(in_use)))
            raise BusyError(f"{path}: a data set is reading generation {numbers}; end that program first")
        hidden = partial_path(path.parent, os.getpid(), path.name)
        path.rename(hidden)
        sync_folder(path.parent)
    shutil.rmtree(hidden)


@contextmanager
def generations_in_use(copy: Path, current: int | None) -> Iterator[set[int]]:
    """Yield the generations of a copy, other than `current`, that a data set is reading.

    The other generations stay locked in the body: no data set can begin to read them.
    """
    in_use = set()
    with ExitStack() as locks:
        for path in (copy / GENERATIONS).glob("*.json"):
            if not path.stem.isdigit() or int(path.stem) == current:
                continue
            file = locks.enter_context(path.open("rb"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                in_use.add(int(path.stem))
        yield in_use
