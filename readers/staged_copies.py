"""Staged copies: finding a verified copy of a pack's generation on this machine, and keeping it while it is read."""

from __future__ import annotations

import os
from pathlib import Path

from readers.contract.errors import ReadError
from readers.contract.json_entry import loads
from readers.contract.manifest import Manifest, generation_path
from readers.contract.system import host, open_to_read
from readers.pack import Pack
from readers.stores.locks import ReadLock
from readers.stores.private_folder import is_private, private_folder

FOLDERS_VARIABLE = "SEGPACK_STAGED"
"""The environment variable with the folders to search, written like PATH. If it is empty, no folder is searched."""
MEMORY = Path("/dev/shm")
MOST_REGISTRY_BYTES = 1 << 20


def open_pack(root: Path, generation: int | None = None, digests: bool = False, staged: bool = True) -> Pack:
    """Open the pack at `root`, or with `staged` the first copy that has the same generation."""
    manifest = Manifest.load(root, generation)
    copy = staged_copy(manifest, digests) if staged else None
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
    pack = staged_copy(manifest, False)
    return None if pack is None else pack.root


def folders() -> list[Path]:
    """Return the folders to search: from the environment variable, or else /dev/shm and the registered ones."""
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
        file = open_to_read(path, "O_NONBLOCK")
        try:
            listed = loads(os.read(file, MOST_REGISTRY_BYTES))
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
    return Path(cache, "segpack", f"staged-{host()}.json")


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


def staged_copy(manifest: Manifest, digests: bool) -> Pack | None:
    """Open the first copy of this generation."""
    paths = [copy for folder in folders() for copy in copies(folder)]
    text = manifest.to_text().encode() if paths else b""
    opened = (_opened(copy, manifest, text, digests) for copy in paths)
    return next((pack for pack in opened if pack is not None), None)


def _opened(copy: Path, manifest: Manifest, text: bytes, digests: bool) -> Pack | None:
    """Open a copy if it has this generation, with the same manifest; its read lock lasts as long as the pack."""
    try:
        lock = ReadLock(generation_path(copy, manifest.generation))
        return Pack(copy, manifest, digests, lock) if lock.head(len(text) + 1) == text else None
    except (ReadError, OSError):
        return None
