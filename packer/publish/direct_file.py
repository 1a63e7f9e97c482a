"""Write a new file with direct I/O, past the kernel's page cache, and hash it on the way.

The cache would cost more time than the disk: the bytes are copied into pages, and these displace others, such as raw
files that are still to be read. A file system without direct I/O gets an ordinary file.

A file has two buffers: a thread writes one while the other is hashed and filled.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

from blake3 import blake3

from readers.contract.files import Hash

BLOCK = 4096
"""The file system's block size, or a multiple of it. Direct writes need whole blocks, from aligned memory."""
BUFFER = 1 << 20
"""The size of the buffer of a file, in bytes."""
_DIRECT = getattr(os, "O_DIRECT", 0)


class DirectFile:
    """A file that is written once, from beginning to end; `digest` is its BLAKE3, or the digest of another hash."""

    def __init__(self, path: Path, hasher: Hash | None = None) -> None:
        self.size = 0
        self._descriptor = _open(path)
        self._digest = blake3() if hasher is None else hasher
        self._buffer, self._filled = _new_buffer(), 0
        self._other: memoryview | None = None
        """The second buffer. A file that fits into one never gets it, nor a thread."""
        self._writer: ThreadPoolExecutor | None = None
        self._writing: Future[None] | None = None

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
            self._release()

    def close(self) -> None:
        """Write the rest of the buffer in whole blocks, then cut the file to its size."""
        if self.closed:
            return
        try:
            self._wait()
            self._flush(self._buffer, -(-self._filled // BLOCK) * BLOCK)
            os.ftruncate(self._descriptor, self.size)
        finally:
            self._release()

    def write(self, data: Any) -> int:
        """Write bytes, or an array of any type, and return their number."""
        with memoryview(data) as whole, whole.cast("B") as view:
            for start in range(0, len(view), BUFFER):
                self._copy(view[start : start + BUFFER])
            self.size += len(view)
            return len(view)

    def fill(self, read: Callable[[memoryview], int]) -> int:
        """Call `read` with the free part of the buffer, which saves a copy. Return the number of bytes that it read."""
        count = read(self._buffer[self._filled :])
        self._digest.update(self._buffer[self._filled : self._filled + count])
        self._filled += count
        self.size += count
        if self._filled == BUFFER:
            self._flush_beside()
            self._filled = 0
        return count

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        """Do nothing: the file is complete only when it is closed."""

    def _copy(self, part: memoryview) -> None:
        self._digest.update(part)
        copied = min(len(part), BUFFER - self._filled)
        self._buffer[self._filled : self._filled + copied] = part[:copied]
        self._filled += copied
        if self._filled == BUFFER:
            self._flush_beside()
            self._filled = len(part) - copied
            self._buffer[: self._filled] = part[copied:]

    def _release(self) -> None:
        if self._writer is not None:
            self._writer.shutdown()
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)
        _idle_buffers.extend(buffer for buffer in (self._buffer, self._other) if buffer is not None)

    def _flush_beside(self) -> None:
        """Have the full buffer written while the other one is filled. Raise the error of the write before."""
        if self._writer is None:
            self._writer, self._other = ThreadPoolExecutor(1), _new_buffer()
        self._wait()
        assert self._other is not None, "made with the thread"
        self._buffer, self._other = self._other, self._buffer
        self._writing = self._writer.submit(self._flush, self._other, BUFFER)

    def _wait(self) -> None:
        """Wait until the other buffer is written."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def _flush(self, buffer: memoryview, count: int) -> None:
        done = 0
        while done < count:
            try:
                done += os.write(self._descriptor, buffer[done:count])
            except OSError as error:
                if error.errno != errno.EINVAL or not _switch_to_cache(self._descriptor):
                    raise


_idle_buffers: list[memoryview] = []
"""Buffers of closed files, for the next files: new memory would cost a third of the writing."""


def _new_buffer() -> memoryview:
    try:
        return _idle_buffers.pop()
    except IndexError:
        return memoryview(mmap.mmap(-1, BUFFER, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


def _open(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    try:
        return os.open(path, flags | _DIRECT, 0o666)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    return os.open(path, flags, 0o666)


def _switch_to_cache(descriptor: int) -> bool:
    """Switch to the page cache; False if that is already so.

    The file system wants larger blocks, or it accepted O_DIRECT at opening and refuses it at writing.
    """
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    if not flags & _DIRECT:
        return False
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags & ~_DIRECT)
    return True
