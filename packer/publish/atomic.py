"""Write files and folders of a pack atomically; remove the leftovers of processes that were killed."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from packer.errors import BusyError, TargetError
from readers.contract import atomic
from readers.contract.atomic import PARTIAL, machine, partial_path
from readers.contract.errors import StoreBusyError, StoreError

MAX_AGE = 86_400
"""Seconds after which unfinished files are removed, whoever writes them. A shard takes minutes."""


@contextmanager
def target_errors(path: Path) -> Iterator[None]:
    """Turn every OSError inside into a TargetError that names this path."""
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error
        raise TargetError(f"{path}: cannot be written ({why})") from error


@contextmanager
def store_errors() -> Iterator[None]:
    """Turn the errors of a store into those of the packer."""
    try:
        yield
    except StoreBusyError as error:
        raise BusyError(str(error)) from error
    except StoreError as error:
        raise TargetError(str(error)) from error


def write_atomic(path: Path, data: str | bytes) -> None:
    """Write a small file atomically. Raises TargetError."""
    with target_errors(path):
        atomic.write_atomic(path, data)


def remove_partials(folder: Path, process: int) -> None:
    """Remove the unfinished files of a process of this machine that was killed."""
    for private in folder.glob(partial_path(folder, process, "*").name):
        shutil.rmtree(private, ignore_errors=True)


def sweep(folder: Path, max_age: float = MAX_AGE) -> None:
    """Remove the unfinished files of processes of this machine that have ended, and those older than `max_age`.

    Other machines may write here now, and whether their processes live is not known.
    """
    for private in folder.glob(f"{PARTIAL}*"):
        if private.is_dir() and not private.is_symlink() and (_has_ended(private) or _age(private) > max_age):
            shutil.rmtree(private, ignore_errors=True)


def _has_ended(private: Path) -> bool:
    """Return whether the process that made this folder ran on this machine and has ended."""
    where, _, rest = private.name.removeprefix(PARTIAL).partition("-")
    process = rest.partition("-")[0]
    return where == machine() and process.isdecimal() and not lives(int(process))


def _age(private: Path) -> float:
    """Return the seconds since a file in this folder was written."""
    try:
        written = max(path.lstat().st_mtime for path in (private, *private.iterdir()))
    except OSError:  # it is gone, or a folder of somebody else
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
