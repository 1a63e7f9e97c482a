"""The folder of a user's copies on a local disk or in memory: `segpack-UID/`, closed to all other users."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from readers.contract.atomic import sync_folder
from readers.contract.system import user


def private_folder(parent: Path) -> Path:
    """Return the folder of this user's copies below a folder."""
    return parent / f"segpack-{user()}"


def is_private(folder: Path) -> bool:
    """Return whether a folder belongs to this user and is closed to others: any user can make folders in /dev/shm."""
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == user() and not status.st_mode & 0o077


def target_problem(target: Path) -> str | None:
    """Return what is wrong with a target: it is not a folder, or other users could replace our folder by theirs.

    A target that does not exist is made later. The folder around it must exist: a local disk may not be mounted.
    """
    if not os.path.lexists(target) and target.parent.is_dir():
        return None
    try:
        mode = target.stat().st_mode
    except OSError as error:
        hint = "" if target.parent.is_dir() else f"; {target.parent} does not exist either: is the disk mounted?"
        return f"{target}: cannot be used for copies ({error.strerror}{hint})"
    if not stat.S_ISDIR(mode):
        return f"{target}: is not a folder"
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        return f"{target}: every user may rename its files; name a folder that only you can write to"
    return None


def make_private_folder(target: Path) -> str | None:
    """Make the target and the folder in it; return what is wrong with that folder."""
    folder = private_folder(target)
    try:
        if not target.is_dir():
            with suppress(FileExistsError):
                target.mkdir(0o755)
            sync_folder(target.parent)
        with suppress(FileExistsError):
            folder.mkdir(0o700)
            folder.chmod(0o700)  # whatever the umask
            sync_folder(target)
    except OSError as error:
        return f"{folder}: cannot be made ({error.strerror})"
    return None if is_private(folder) else f"{folder}: is not yours, or is open to others; run chmod 700 {folder}"
