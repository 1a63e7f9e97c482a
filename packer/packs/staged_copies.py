"""Staged copies: where they are made, which there are, which of their generations are being read, and dropping them."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from packer.errors import BusyError, InputError, PackError, TargetError
from packer.publish.atomic import PARTIAL, put_text, sweep, sync_folder
from packer.publish.generation import current_manifest
from packer.publish.lock import locked
from readers import staged_copies as staged
from readers.contract.manifest import GENERATIONS, Manifest

SOURCE = "source.json"
"""In a copy: of which folder it is one."""


@dataclass(frozen=True)
class Copy:
    """A copy on this machine; `manifest` is None where none was finished yet."""

    path: Path
    source: Path
    manifest: Manifest | None
    bytes: int
    """What all its files have, also those of generations that are still being read."""


def copy_folder(out: Path, place: Path) -> Path:
    """Where in a place the copy of OUT lies; packs of the same name in different folders do not meet."""
    source = out.resolve()
    name = re.sub(r"[^A-Za-z0-9._-]", "_", source.name).lstrip(".")[:64] or "pack"
    return staged.private_folder(place) / f"{name}-{hashlib.sha256(os.fsencode(source)).hexdigest()[:16]}"


def check_place(place: Path) -> None:
    """Refuse to stage to what is no folder, or to one where others could put theirs in the place of ours."""
    try:
        mode = place.stat().st_mode
    except OSError as error:
        raise TargetError(f"{place}: cannot be staged to ({error.strerror})") from error
    if not stat.S_ISDIR(mode):
        raise TargetError(f"{place}: is no folder")
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise TargetError(f"{place}: everybody may rename what lies there; name a folder that is yours alone")


def make_private_folder(place: Path) -> None:
    """Make the folder in which this user's copies lie, closed to all others, and remember the place."""
    folder = staged.private_folder(place)
    try:
        with suppress(FileExistsError):
            folder.mkdir(0o700)
            folder.chmod(0o700)  # whatever the umask
            sync_folder(place)
    except OSError as error:
        raise TargetError(f"{folder}: cannot be made ({error.strerror})") from error
    if not staged.is_private(folder):
        raise TargetError(f"{folder}: is not yours, or not closed to others; mend that: chmod 700 {folder}")
    sweep(folder)
    with suppress(OSError, PackError):  # then SEGPACK_STAGED must name it
        _remember(place)


def _remember(place: Path) -> None:
    """Have data sets of this user look there."""
    registry = staged.registry()
    if registry is None:
        return
    registry.parent.mkdir(parents=True, exist_ok=True)
    with (registry.parent / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        sweep(registry.parent)
        known = staged.registered()
        places = [place, *(one for one in known if one != place and one.is_dir())]
        if places != known:
            put_text(json.dumps([os.fspath(one) for one in places]) + "\n", registry)


def note_source(copy: Path, out: Path) -> None:
    """Write down of which folder a copy is one."""
    text = json.dumps({"source": os.fspath(out.resolve())}) + "\n"
    path = copy / SOURCE
    if not path.is_file() or path.read_text(encoding="utf-8", errors="replace") != text:
        put_text(text, path)


def copies() -> list[Copy]:
    """Every copy of this user on this machine, as far as is known."""
    places = dict.fromkeys([*staged.places(), staged.MEMORY, *staged.registered()])
    found = (_copy(path) for place in places for path in staged.copies(place))
    return [copy for copy in found if copy is not None]


def _copy(path: Path) -> Copy | None:
    try:
        source = Path(json.loads((path / SOURCE).read_text(encoding="utf-8"))["source"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    size = 0
    for file in path.rglob("*"):
        with suppress(FileNotFoundError):  # somebody may be at it
            size += file.lstat().st_size if file.is_file() else 0
    return Copy(path, source, current_manifest(path), size)


def drop(out: Path) -> list[Copy]:
    """Remove every copy of OUT, or the one that OUT is. One that is being read, or changed, stays, and is told."""
    wanted = out.resolve()
    found = [copy for copy in copies() if wanted in (copy.source, copy.path.resolve())]
    if not found:
        raise InputError(f"{out}: no copy of it is known on this machine; packer stage --list tells which are")
    dropped, busy = [], []
    for copy in found:
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
    """Away with its name by one rename, then with the files."""
    with unread(path, None) as read:
        if read:
            numbers = ", ".join(map(str, sorted(read)))
            raise BusyError(f"{path}: generation {numbers} is being read by a data set that is open; end that first")
        doomed = path.with_name(f"{PARTIAL}{os.getpid()}-{path.name}")
        path.rename(doomed)
        sync_folder(path.parent)
    shutil.rmtree(doomed)


@contextmanager
def unread(copy: Path, current: int | None) -> Iterator[set[int]]:
    """The generations of a copy, but for the current one, that some data set is reading; nobody begins to read another
    while this lasts."""
    read = set()
    with ExitStack() as held:
        for path in (copy / GENERATIONS).glob("*.json"):
            if not path.stem.isdigit() or int(path.stem) == current:
                continue
            file = held.enter_context(path.open("rb"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                read.add(int(path.stem))
        yield read
