"""List every file below a folder, in an order that does not depend on the disk."""

from __future__ import annotations

import os
from pathlib import Path

from packer.errors import InputError

Identity = tuple[int, int]


def list_files(raw: Path, leave_out: Path | None = None) -> list[str]:
    """Return the paths below `raw`, sorted, without hidden files and without the folder `leave_out`.

    Links to folders are followed, except links to a folder that contains them.
    """
    if not raw.is_dir():
        raise InputError(f"{raw}: " + ("is a file, not a folder" if raw.exists() else "there is no such folder"))
    excluded = _identity(leave_out) if leave_out is not None and leave_out.is_dir() else None
    files: list[str] = []
    _walk(str(raw), "", frozenset(), excluded, files)
    return sorted(files)


def _walk(folder: str, prefix: str, above: frozenset[Identity], excluded: Identity | None, files: list[str]) -> None:
    folders = []
    try:
        above |= {_identity(folder)}
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if name.startswith("."):
                    continue
                if entry.is_dir():
                    folders.append(name)
                else:
                    files.append(prefix + name)
    except OSError as error:
        raise InputError(f"{folder}: the folder cannot be listed ({error.strerror})") from error
    for name in folders:
        path = f"{folder}/{name}"
        if (identity := _identity(path)) not in above and identity != excluded:
            _walk(path, f"{prefix}{name}/", above, excluded, files)


def _identity(folder: str | Path) -> Identity:
    status = os.stat(folder)  # noqa: PTH116 - str is faster than Path, and there may be a million
    return status.st_dev, status.st_ino
