"""The lock: one process at a time changes a pack. The kernel releases it when its owner ends, even by a crash."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

from packer.errors import BusyError, TargetError
from readers.contract.json_entry import loads
from readers.contract.leftovers import lives
from readers.contract.manifest import LOCK

_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
_held: set[Path] = set()


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Hold the lock of a pack. Raises BusyError at once if another process holds it. One process may nest it."""
    path = out.resolve() / LOCK
    if path in _held:
        yield
        return
    file = _open(path)
    try:
        _take(file, path)
        if not _is_there(file, path):
            raise BusyError(f"{path.parent}: another process has just given it up; try again")
        _held.add(path)
        yield
        os.ftruncate(file, 0)
    finally:
        _held.discard(path)
        os.close(file)


def _is_there(file: int, path: Path) -> bool:
    """Return whether the lock is still at its path: its last owner may have removed it with the folder."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except FileNotFoundError as error:
        raise TargetError(f"{path.parent}: there is no such folder") from error
    except OSError as error:
        raise TargetError(f"{path}: the lock cannot be opened ({error.strerror})") from error


def _take(file: int, path: Path) -> None:
    """Take the lock, or raise BusyError.

    An owner writes its name just after it takes the lock, and erases it just before it releases it: while there is
    none, wait for up to a second.
    """
    tries = 100
    while not _taken(file, path):
        owner = _owner(file)
        if owner or not tries:
            raise BusyError(f"{path.parent}: is being changed by {owner or 'another process'}")
        tries -= 1
        time.sleep(0.01)
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    mine = {"host": socket.gethostname(), "process": os.getpid(), "since": started}
    os.ftruncate(file, 0)
    os.pwrite(file, json.dumps(mine).encode() + b"\n", 0)


def _taken(file: int, path: Path) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        raise TargetError(
            f"{path}: this file system has no locks ({error.strerror}); pack to another one, or mount it with locks"
        ) from error
    return True


def _owner(file: int) -> str | None:
    """Describe the process that is named in the lock; None without a name, or if that process has ended."""
    try:
        owner = loads(os.pread(file, 4096, 0))
        if owner["host"] != socket.gethostname() or lives(int(owner["process"])):
            return f"process {owner['process']} on {owner['host']}, since {owner['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None
