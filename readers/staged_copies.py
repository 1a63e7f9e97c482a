"""Staged copies: finding a verified copy of a pack's generation on this machine, and keeping it while it is read."""

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

FOLDERS_VARIABLE = "SEGPACK_STAGED"
"""The environment variable with the folders to search, written like PATH. If it is empty, no folder is searched."""
MEMORY = Path("/dev/shm")
MOST_REGISTRY_BYTES = 1 << 20


def open_pack(root: Path, generation: int | None = None, digests: bool = False, staged: bool = True) -> Pack:
    """Open the pack at `root`, or with `staged` the first copy that has the same generation."""
    manifest = Manifest.load(root, generation)
    copy = _staged(manifest, digests) if staged else None
    return copy or Pack(root, manifest, digests)


def reopen(copy: Path, generation: int, identity: str, digests: bool) -> Pack | None:
    """Open a copy that was open before, perhaps in another process; None if it has changed since."""
    if copy not in copies(copy.parent.parent):
        return None
    try:
        manifest = Manifest.load(copy, generation)
    except (ReadError, OSError):
        return None
    return _opened(copy, manifest, manifest.to_text().encode(), digests) if manifest.identity == identity else None


def find(manifest: Manifest) -> Path | None:
    """Return the copy that data sets of this generation read, if there is one."""
    pack = _staged(manifest, False)
    return None if pack is None else pack.root


def folders() -> list[Path]:
    """Return the folders to search: those of the environment variable, or else /dev/shm and the registered ones."""
    named = os.environ.get(FOLDERS_VARIABLE)
    if named is not None:
        return [Path(folder).absolute() for folder in named.split(os.pathsep) if folder]
    return [MEMORY, *registered()]


def registered() -> list[Path]:
    """Return the folders that `packer stage` has used on this machine; a missing or broken list counts as empty."""
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
    return [Path(text) for text in listed if isinstance(text, str) and text.startswith("/") and "\0" not in text]


def registry() -> Path | None:
    """Return the file with that list. Each machine has its own, because machines may share a home folder."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not cache.startswith("/"):
        home = os.path.expanduser("~")  # noqa: PTH111 - Path.home raises where the home is unknown
        if not home.startswith("/"):
            return None
        cache = f"{home}/.cache"
    return Path(cache, "segpack", f"staged-{os.uname().nodename}.json")


def copies(parent: Path) -> list[Path]:
    """Return this user's copies below a folder; none if other users could have written them."""
    folder = private_folder(parent)
    if not is_private(folder):
        return []
    try:
        with os.scandir(folder) as entries:
            folders = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
            names = [entry.name for entry in folders if not entry.name.startswith(".")]
    except OSError:
        return []
    return [folder / name for name in sorted(names)]


def private_folder(parent: Path) -> Path:
    """Return the folder of this user's copies below a folder."""
    return parent / f"segpack-{os.geteuid()}"


def is_private(folder: Path) -> bool:
    """Return whether a folder belongs to this user and is closed to all others: anyone can make folders in /dev/shm."""
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def _staged(manifest: Manifest, digests: bool) -> Pack | None:
    found = [copy for folder in folders() for copy in copies(folder)]
    text = manifest.to_text().encode() if found else b""
    opened = (_opened(copy, manifest, text, digests) for copy in found)
    return next((pack for pack in opened if pack is not None), None)


def _opened(copy: Path, manifest: Manifest, text: bytes, digests: bool) -> Pack | None:
    """Open a copy if it has this generation, with the same manifest; its read lock lasts as long as the pack."""
    try:
        lock = ReadLock(generation_path(copy, manifest.generation))
        return Pack(copy, manifest, digests, lock) if lock.head(len(text) + 1) == text else None
    except (ReadError, OSError):
        return None


class ReadLock:
    """A shared lock on the manifest of a copy's generation: while it lasts, `packer stage` keeps all its files.

    The kernel releases it with the last process that has it, also if that process is killed.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._file)
        fcntl.flock(self._file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(self._file), os.lstat(path)):
            raise FileNotFoundError(path)  # it was replaced before it was locked

    def head(self, count: int) -> bytes:
        """Return the first `count` bytes of the manifest."""
        return os.pread(self._file, count, 0)
