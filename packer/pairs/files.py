"""List every file below a folder, in an order that does not depend on the disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from packer.errors import InputError
from packer.pairs.folder_names import Folders
from readers.contract.manifest import MANIFEST, MARK, SHARDS

Identity = tuple[int, int]
BROKEN = (errno.ELOOP, errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
"""Errors of a link that leads nowhere. It is listed as a file, so only a pair that needs it is bad."""


class RawFiles:
    """The files below a raw folder, without hidden ones. The order does not depend on the disk."""

    def __init__(self, folders: dict[str, list[str]], packs: Sequence[str] = ()) -> None:
        self.folders: Folders = {folder: sorted(folders[folder]) for folder in sorted(folders)}
        self.packs = sorted(packs)
        """The folders of packed data sets, which are passed over."""

    @cached_property
    def paths(self) -> list[str]:
        """All paths, sorted."""
        return sorted(folder + name for folder, names in self.folders.items() for name in names)


def list_files(raw: Path) -> list[str]:
    """Return the paths below `raw`, sorted, without hidden files and packed data sets."""
    return find_files(raw).paths


def find_files(raw: Path, leave_out: Path | None = None) -> RawFiles:
    """Find the files below `raw`, without the folder `leave_out`.

    Links to folders are followed, except links to a folder that contains them.
    """
    if not raw.is_dir():
        raise InputError(f"{raw}: " + ("is a file, not a folder" if raw.exists() else "there is no such folder"))
    if (raw / SHARDS).is_dir() and ((raw / MARK).is_file() or (raw / MANIFEST).is_file()):
        raise InputError(
            f"{raw}: is a packed data set, not a raw folder; packer info {raw} shows what it holds, "
            f"packer verify {raw} checks it"
        )
    excluded = _identity(leave_out) if leave_out is not None and leave_out.is_dir() else None
    walk = _Walk(excluded)
    walk.into(str(raw), "", frozenset())
    return RawFiles(walk.folders, walk.packs)


class _Walk:
    """The files and the packed data sets found so far."""

    def __init__(self, excluded: Identity | None) -> None:
        self._excluded = excluded
        self.folders: dict[str, list[str]] = {}
        self.packs: list[str] = []

    def into(self, folder: str, prefix: str, above: frozenset[Identity]) -> None:
        """Add the files of a folder and of all folders below it. Their paths begin with `prefix`."""
        try:
            above |= {_identity(folder)}
            if prefix and os.path.lexists(f"{folder}/{MARK}"):
                self.packs.append(prefix[:-1])
                return
            names, folders = _scan(folder)
        except OSError as error:
            raise InputError(f"{folder}: the folder cannot be listed ({error.strerror})") from error
        if names:
            self.folders[prefix] = names
        for name in folders:
            path = f"{folder}/{name}"
            if (identity := _identity(path)) not in above and identity != self._excluded:
                self.into(path, f"{prefix}{name}/", above)


def _scan(folder: str) -> tuple[list[str], list[str]]:
    """Return the names of the files and of the folders in a folder, without hidden ones."""
    names: list[str] = []
    folders: list[str] = []
    with os.scandir(folder) as scanned:
        for entry in scanned:
            if (name := entry.name)[0] != ".":
                try:
                    is_folder = entry.is_dir()
                except OSError as error:
                    if error.errno not in BROKEN:
                        raise InputError(f"{entry.path}: the link cannot be followed ({error.strerror})") from error
                    is_folder = False
                (folders if is_folder else names).append(name)
    return names, folders


def _identity(folder: str | Path) -> Identity:
    status = os.stat(folder)  # noqa: PTH116 - str is faster than Path, and there may be a million
    return status.st_dev, status.st_ino
