"""Locks on files. The kernel releases a lock when its last owner ends, also if that is killed."""

from __future__ import annotations

import errno
import os
import stat
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from readers.contract.system import lock_file, open_flags, open_to_read, read_at, unlock_file


class ReadLock:
    """A shared lock on a file of a pack: while it lasts, neither `packer stage` nor a cache deletes what it stands for.

    The kernel releases it with the last process that has it, also if that process is killed. With `wait`, a process
    that is about to delete the file is waited for. Raises FileNotFoundError if the file is deleted or replaced, or if
    a link, a folder or a pipe has its name.
    """

    def __init__(self, path: Path, wait: bool = False) -> None:
        self.file = _opened(path)
        self._close = weakref.finalize(self, os.close, self.file)
        lock_file(self.file, shared=True, wait=wait)
        if not _is_at(self.file, path) or not stat.S_ISREG(os.fstat(self.file).st_mode):
            self.close()
            raise FileNotFoundError(path)  # it was replaced before it was locked

    def close(self) -> None:
        """Release the lock. It is also released when this object is deleted."""
        self._close()

    def is_at(self, path: Path) -> bool:
        """Return whether the file still has this name."""
        return _is_at(self.file, path)

    def head(self, count: int) -> bytes:
        """Return the first `count` bytes of the file."""
        return read_at(self.file, count, 0)


@contextmanager
def only_owner(path: Path) -> Iterator[int]:
    """Wait until no other thread or process has the lock of this file, which is made; hold it, and yield the file."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | open_flags("O_NOFOLLOW"), 0o600)
    try:
        lock_file(file)
        yield file
    finally:
        _release(file)


@contextmanager
def only_fetcher(path: Path) -> Iterator[None]:
    """Do the same with a file that exists only while a process has its lock, or until the next one after a kill."""
    while True:
        with only_owner(path) as file:
            if not _is_at(file, path):
                continue  # who had the lock before has deleted the file
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def is_locked(path: Path, counts_shared: bool = False) -> bool:
    """Return whether a process has the lock of a file, alone or, if that counts, shared with others."""
    try:
        file = open_to_read(path)
    except FileNotFoundError:
        return False
    try:
        lock_file(file, shared=not counts_shared, wait=False)
    except BlockingIOError:
        return True
    finally:
        _release(file)
    return False


def _opened(path: Path) -> int:
    """Open a file to lock it. A link is not followed, and a pipe not waited for."""
    try:
        return open_to_read(path, "O_NOFOLLOW", "O_NONBLOCK")
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise FileNotFoundError(path) from error
        raise


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.lstat(path))
    except FileNotFoundError:
        return False


@contextmanager
def if_unused(path: Path) -> Iterator[bool]:
    """Yield whether no process has a lock of this file. If so, no process gets one in the body."""
    try:
        file = _opened(path)
    except FileNotFoundError:
        yield True
        return
    try:
        try:
            lock_file(file, wait=False)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        _release(file)


def _release(file: int) -> None:
    """Release a lock and close its file. Closing alone would leave it to processes that were forked with the file."""
    unlock_file(file)
    os.close(file)
