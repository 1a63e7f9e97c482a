"""Calls on files that Linux, macOS and Windows do not share. Windows reads packs; locks raise an error there."""

from __future__ import annotations

import os
import platform
from functools import cache
from threading import Lock

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from readers.contract.errors import ReadError

_ALWAYS = ("O_CLOEXEC", "O_BINARY", "O_NOINHERIT")
_SEEKING = Lock()


@cache
def open_flags(*names: str) -> int:
    """Return flags of `os.open`, such as "O_NOFOLLOW", without those that this system does not have."""
    return sum(getattr(os, name, 0) for name in {*_ALWAYS, *names})


def open_to_read(path: os.PathLike[str] | str, *names: str) -> int:
    """Open a file for reading, with these flags where the system has them. Return its descriptor."""
    return os.open(path, os.O_RDONLY | open_flags(*names))


def read_into(file: int, out: memoryview, start: int) -> int:
    """Read bytes of an open file from a position on. Return how many came, as `os.preadv` does."""
    if hasattr(os, "preadv"):
        return os.preadv(file, [out], start)
    with _SEEKING:
        os.lseek(file, start, os.SEEK_SET)
        data = os.read(file, len(out))
    out[: len(data)] = data
    return len(data)


def read_at(file: int, count: int, start: int) -> bytes:
    """Return bytes of an open file, fewer at its end."""
    data = bytearray(count)
    return bytes(data[: read_into(file, memoryview(data), start)])


def lock_file(file: int, shared: bool = False, wait: bool = True) -> None:
    """Lock an open file until it is unlocked, or until the last process that has it open ends."""
    if fcntl is None:
        raise ReadError(
            "this system has no locks of files, which caches, copies and stores need: read the pack in its folder"
        )
    fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))


def unlock_file(file: int) -> None:
    """Release a lock, also for processes that were forked with it."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_UN)


def host() -> str:
    """Return the name of this machine in its network."""
    return platform.node()


def user() -> int:
    """Return the number of this user; -1 where users have none."""
    return os.geteuid() if hasattr(os, "geteuid") else -1
