"""Remove the unfinished files of processes that were killed."""

from __future__ import annotations

import os
import time
from pathlib import Path

from readers.contract.atomic import PARTIAL, machine, remove_unfinished

MAX_AGE = 86_400
"""Seconds after which unfinished files are removed, even if a process still writes them. A shard takes minutes."""


def sweep(folder: Path, max_age: float = MAX_AGE) -> None:
    """Remove the unfinished files of processes of this machine that have ended, and those older than `max_age`.

    Other machines may write here now, and whether their processes live is not known.
    """
    for private in folder.glob(f"{PARTIAL}*"):
        if not private.is_symlink() and (_has_ended(private) or _age(private) > max_age):
            remove_unfinished(private)


def _has_ended(private: Path) -> bool:
    """Return whether the process that made this file or folder ran on this machine and has ended."""
    where, _, rest = private.name.removeprefix(PARTIAL).partition("-")
    process = rest.partition("-")[0]
    return where == machine() and process.isdecimal() and not lives(int(process))


def _age(private: Path) -> float:
    """Return the seconds since this file, or one in this folder, was written."""
    try:
        inside = [*private.iterdir()] if private.is_dir() else []
        written = max(path.lstat().st_mtime for path in (private, *inside))
    except OSError:  # it is gone, or a folder of another user
        return 0
    return time.time() - written


def lives(process: int) -> bool:
    """Return whether a process of this machine lives."""
    try:
        os.kill(process, 0)
        status = Path(f"/proc/{process}/stat").read_text(errors="replace")
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # the process of another user, or a system without /proc
        return True
    return status.rpartition(")")[2].split()[:1] != ["Z"]  # it was killed, and its parent has not asked yet
