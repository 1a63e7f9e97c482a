"""Every file below a folder, in an order that does not depend on the disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from packer.errors import InputError

Identity = tuple[int, int]


def list_files(raw: Path, leave_out: Path | None = None) -> list[str]:
    """The paths below `raw`, sorted, without hidden ones and without the folder `leave_out`.

    Folders behind links count as well; a link that leads back to where it lies is not followed.
    """
    if not raw.is_dir():
        raise InputError(f"{raw}: " + ("is a file, not a folder" if raw.exists() else "there is no such folder"))
    left_out = _identity(leave_out) if leave_out is not None and leave_out.is_dir() else None
    return sorted(_walk(str(raw), "", frozenset(), left_out))


def _walk(folder: str, prefix: str, above: frozenset[Identity], left_out: Identity | None) -> Iterator[str]:
    try:
        above |= {_identity(folder)}
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if not entry.name.startswith(".")]
    except OSError as error:
        raise InputError(f"{folder}: the folder cannot be listed ({error.strerror})") from error
    for entry in found:
        if not entry.is_dir():
            yield prefix + entry.name
        elif (identity := _identity(entry.path)) not in above and identity != left_out:
            yield from _walk(entry.path, f"{prefix}{entry.name}/", above, left_out)


def _identity(folder: str | Path) -> Identity:
    status = os.stat(folder)  # noqa: PTH116 - texts, since there may be a million
    return status.st_dev, status.st_ino
