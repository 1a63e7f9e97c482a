"""Staged copies: where on this machine verified copies of packs lie, and whether one is of a pack's very generation."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import weakref
from pathlib import Path

from readers.contract.errors import ReadError
from readers.contract.manifest import Manifest, generation_path
from readers.pack import Pack

PLACES = "SEGPACK_STAGED"
"""The environment variable that names the folders to look in, as PATH does; empty: nowhere."""
MEMORY = Path("/dev/shm")
MOST_REGISTRY_BYTES = 1 << 20


def open_pack(root: Path, generation: int | None = None, digests: bool = False, staged: bool = True) -> Pack:
    """The pack at `root`; of `staged` copies the first that is of the same generation, if there is one."""
    manifest = Manifest.load(root, generation)
    near = _staged(manifest, digests) if staged else None
    return near or Pack(root, manifest, digests)


def reopen(copy: Path, generation: int, identity: str, digests: bool) -> Pack | None:
    """A copy that was open before, perhaps in another process; None where it is no longer what it was."""
    if copy not in copies(copy.parent.parent):
        return None
    try:
        manifest = Manifest.load(copy, generation)
    except (ReadError, OSError):
        return None
    return _opened(copy, manifest, manifest.to_text().encode(), digests) if manifest.identity == identity else None


def find(manifest: Manifest) -> Path | None:
    """Where the copy lies that data sets of this generation read."""
    pack = _staged(manifest, False)
    return None if pack is None else pack.root


def places() -> list[Path]:
    """The folders to look in: those that the environment names, or else memory and what `packer stage` remembers."""
    named = os.environ.get(PLACES)
    if named is not None:
        return [Path(one).absolute() for one in named.split(os.pathsep) if one]
    return [MEMORY, *registered()]


def registered() -> list[Path]:
    """The folders that `packer stage` has used on this machine; a list that is missing or broken is none."""
    path = registry()
    if path is None:
        return []
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            listed = json.loads(os.read(file, MOST_REGISTRY_BYTES))
        finally:
            os.close(file)
    except (OSError, ValueError, RecursionError):
        return []
    if not isinstance(listed, list):
        return []
    return [Path(one) for one in listed if isinstance(one, str) and one.startswith("/") and "\0" not in one]


def registry() -> Path | None:
    """The file with that list, for each machine one of its own, as a home may be shared by many."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not cache.startswith("/"):
        home = os.path.expanduser("~")  # noqa: PTH111 - Path.home raises where nobody knows a home
        if not home.startswith("/"):
            return None
        cache = f"{home}/.cache"
    return Path(cache, "segpack", f"staged-{os.uname().nodename}.json")


def copies(place: Path) -> list[Path]:
    """The folders of this user's copies in a place; none where others could have put them there."""
    folder = private_folder(place)
    if not is_private(folder):
        return []
    try:
        with os.scandir(folder) as found:
            names = [one.name for one in found if one.is_dir(follow_symlinks=False) and not one.name.startswith(".")]
    except OSError:
        return []
    return [folder / name for name in sorted(names)]


def private_folder(place: Path) -> Path:
    """Where in a place this user's copies lie."""
    return place / f"segpack-{os.geteuid()}"


def is_private(folder: Path) -> bool:
    """Whether a folder is this user's and closed to all others: everybody may make folders in /dev/shm."""
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def _staged(manifest: Manifest, digests: bool) -> Pack | None:
    folders = [folder for place in places() for folder in copies(place)]
    text = manifest.to_text().encode() if folders else b""
    opened = (_opened(folder, manifest, text, digests) for folder in folders)
    return next((pack for pack in opened if pack is not None), None)


def _opened(folder: Path, manifest: Manifest, text: bytes, digests: bool) -> Pack | None:
    """The copy in this folder, if it has this very generation; it is held for as long as the pack is used."""
    try:
        hold = Hold(generation_path(folder, manifest.generation))
        return Pack(folder, manifest, digests, hold) if hold.begins(len(text) + 1) == text else None
    except (ReadError, OSError):
        return None


class Hold:
    """A shared lock on a generation's manifest: until it ends, `packer stage` takes nothing away that this one names.

    The kernel ends it with the last process that has it, however that ends.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._file)
        fcntl.flock(self._file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(self._file), os.lstat(path)):
            raise FileNotFoundError(path)  # it went away before it was held, and another came

    def begins(self, count: int) -> bytes:
        """The first `count` bytes of the manifest."""
        return os.pread(self._file, count, 0)
