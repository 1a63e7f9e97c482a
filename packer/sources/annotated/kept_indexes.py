"""Indexes of annotation files in a temporary folder of this user, which workers on the same machine map.

An index stays until the process that made it ends. The folder is a help only: without it, each worker reads the file.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from blake3 import blake3

from packer.annotations.picture_index import PictureIndex
from packer.sources.file_states import MIN_FILE_AGE, FileState

LONGEST = 24 * 3600
"""Seconds that the index of a killed process stays."""
_made_here: dict[Path, int] = {}
"""The folder of each index that this process made, and its number: a process that is forked from it has another one."""


def index_folder(path: str, state: FileState) -> Path | None:
    """Return the folder for the index of a file with this state; None if there is none, or others could write there."""
    try:
        mine = Path(tempfile.gettempdir()) / f"segpack-{os.getuid()}"
        mine.mkdir(mode=0o700, exist_ok=True)
        status = mine.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        return None
    return mine / blake3(f"{path}\0{state}".encode("utf-8", "surrogateescape")).hexdigest()[:32]


def kept_index(folder: Path) -> PictureIndex | None:
    """Return the index in a folder. One that is damaged is deleted."""
    if not folder.is_dir():
        return None
    with suppress(OSError, ValueError):  # another program may clean temporary folders, or the machine crashed
        return PictureIndex.load(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return None


def made_here(folder: Path, state: FileState) -> bool:
    """Return whether an index fits the present file: from this process, and not while the file was young.

    On some file systems a file can change and keep its state, so a new build does not take the index of a killed one.
    """
    with suppress(OSError):
        return folder in _made_here and folder.stat().st_mtime_ns >= max(state[1], state[2]) + MIN_FILE_AGE
    return False


def keep_index(index: PictureIndex, folder: Path) -> None:
    """Save an index for other processes, until this one ends. What a killed process left is deleted a day later."""
    temporary = None
    try:
        shutil.rmtree(folder, ignore_errors=True)  # it may be of a file that was here before
        _delete_old(folder.parent)
        temporary = Path(tempfile.mkdtemp(dir=folder.parent))
        index.save(temporary)
        temporary.rename(folder)
    except OSError:  # the disk is full, or another build was faster
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        return
    _made_here[folder] = os.getpid()


@atexit.register
def forget_indexes() -> None:
    """Delete the indexes that this process made."""
    for folder, maker in _made_here.items():
        if maker == os.getpid():
            shutil.rmtree(folder, ignore_errors=True)
    _made_here.clear()


def _delete_old(parent: Path) -> None:
    for old in parent.iterdir():
        with suppress(OSError):
            if old.stat().st_mtime < time.time() - LONGEST:
                shutil.rmtree(old, ignore_errors=True)
