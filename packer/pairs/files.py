"""List every file below a folder, in an order that does not depend on the disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from packer.errors import InputError
from readers.contract.manifest import MANIFEST, MARK, SHARDS

Identity = tuple[int, int]
BROKEN = (errno.ELOOP, errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
"""Errors of a link that leads nowhere. It is listed as a file, so only a pair that needs it is bad."""


def list_files(raw: Path, leave_out: Path | None = None, packs: list[str] | None = None) -> list[str]:
    """Return the paths below `raw`, sorted, without hidden files and without the folder `leave_out`.

    Links to folders are followed, except links to a folder that contains them. Packed data sets are passed over; their
    folders are added to `packs`.
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
    if packs is not None:
        packs += sorted(walk.packs)
    return sorted(walk.files)


class _Walk:
    """The files and the packed data sets found so far."""

    def __init__(self, excluded: Identity | None) -> None:
        self._excluded = excluded
        self.files: list[str] = []
        self.packs: list[str] = []

    def into(self, folder: str, prefix: str, above: frozenset[Identity]) -> None:
        """Add the files of a folder and of all folders below it. Their paths begin with `prefix`."""
        try:
            above |= {_identity(folder)}
            with os.scandir(folder) as scanned:
                entries = [entry for entry in scanned if entry.name[0] != "." or entry.name == MARK]
        except OSError as error:
            raise InputError(f"{folder}: the folder cannot be listed ({error.strerror})") from error
        if prefix and any(entry.name == MARK for entry in entries):
            self.packs.append(prefix[:-1])
            return
        folders = []
        for entry in entries:
            if _is_folder(entry):
                folders.append(entry.name)
            elif entry.name != MARK:
                self.files.append(prefix + entry.name)
        for name in folders:
            path = f"{folder}/{name}"
            if (identity := _identity(path)) not in above and identity != self._excluded:
                self.into(path, f"{prefix}{name}/", above)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:
        if error.errno in BROKEN:
            return False
        raise InputError(f"{entry.path}: the link cannot be followed ({error.strerror})") from error


def _identity(folder: str | Path) -> Identity:
    status = os.stat(folder)  # noqa: PTH116 - str is faster than Path, and there may be a million
    return status.st_dev, status.st_ino
