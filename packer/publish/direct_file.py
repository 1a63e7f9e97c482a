"""A new file that goes to the disk past the kernel's cache, and is hashed on the way.

The cache would cost more time than the disk: the bytes are copied into pages that others, such as raw files that are
yet to be read, have to make room for. Where a file system has no such way, files are written as ever.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import mmap
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

BLOCK = 4096
"""The file system's, or a multiple of it: such writes need whole blocks, from memory that begins at one."""
STAGED = 1 << 20
_DIRECT = getattr(os, "O_DIRECT", 0)


class DirectFile:
    """To be written from its beginning to its end; `digest` is the SHA-256 of all of it."""

    def __init__(self, path: Path) -> None:
        self.size = 0
        self._descriptor = _open(path)
        self._digest = hashlib.sha256()
        self._staged, self._filled = _taken(), 0

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    @property
    def closed(self) -> bool:
        return self._descriptor < 0

    def __enter__(self) -> DirectFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        elif not self.closed:
            self._let_go()

    def close(self) -> None:
        """Write what is left, in whole blocks, and cut off what is too much."""
        if self.closed:
            return
        try:
            self._put(-(-self._filled // BLOCK) * BLOCK)
            os.ftruncate(self._descriptor, self.size)
        finally:
            self._let_go()

    def write(self, data: Any) -> int:
        """Take any bytes."""
        with memoryview(data) as whole, whole.cast("B") as view:
            for start in range(0, len(view), STAGED):
                self._stage(view[start : start + STAGED])
            self.size += len(view)
            return len(view)

    def fill(self, read: Callable[[memoryview], int]) -> int:
        """Take what `read` puts into memory that it is given, with no copy between; how many bytes it was."""
        count = read(self._staged[self._filled :])
        self._digest.update(self._staged[self._filled : self._filled + count])
        self._filled += count
        self.size += count
        if self._filled == STAGED:
            self._put(STAGED)
            self._filled = 0
        return count

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        """Nothing is to be seen before the end."""

    def _stage(self, part: memoryview) -> None:
        self._digest.update(part)
        taken = min(len(part), STAGED - self._filled)
        self._staged[self._filled : self._filled + taken] = part[:taken]
        self._filled += taken
        if self._filled == STAGED:
            self._put(STAGED)
            self._filled = len(part) - taken
            self._staged[: self._filled] = part[taken:]

    def _let_go(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)
        _idle.append(self._staged)

    def _put(self, count: int) -> None:
        done = 0
        while done < count:
            try:
                done += os.write(self._descriptor, self._staged[done:count])
            except OSError as error:
                if error.errno != errno.EINVAL or not _forget_direct(self._descriptor):
                    raise


_idle: list[memoryview] = []
"""Of files that are done, for those that come: new memory would cost a third of the writing."""


def _taken() -> memoryview:
    try:
        return _idle.pop()
    except IndexError:
        return memoryview(mmap.mmap(-1, STAGED, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


def _open(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    try:
        return os.open(path, flags | _DIRECT, 0o666)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    return os.open(path, flags, 0o666)


def _forget_direct(descriptor: int) -> bool:
    """Go on through the cache: the file system wants larger blocks, or had not said yet that it has no other way."""
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    if not flags & _DIRECT:
        return False
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags & ~_DIRECT)
    return True
