"""Memory of a worker process, kept from picture to picture and from shard to shard."""

from __future__ import annotations

import ctypes
import mmap
import sys
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_KEPT = 32 << 20
"""Bytes of an array; larger ones still come from the kernel and go back to it at once, but for a shard's columns, which
have memory of their own."""
MOST_KEPT = 256 << 20


def keep_memory() -> None:
    """Tell glibc, which would hand pages back to the kernel with every picture; other C libraries have no such wish."""
    if not sys.platform.startswith("linux"):
        return
    tell = getattr(ctypes.CDLL(None), "mallopt", None)
    if tell is not None:
        tell(M_MMAP_THRESHOLD, LARGEST_KEPT)
        tell(M_TRIM_THRESHOLD, MOST_KEPT)


HUGE = 2 << 20
FAR_LESS = 8
"""Memory goes back when it is so many times what is asked for: it was of a picture without its like."""


class ColumnMemory:
    """Gives the same bytes again and again: whoever asks is done with what was given before."""

    def __init__(self) -> None:
        self._block = _mapped(HUGE)

    def __call__(self, size: int) -> NDArray[np.uint8]:
        if len(self._block) > FAR_LESS * max(size, HUGE):
            self._block = _mapped(size)
        elif len(self._block) < size:
            self._grow(size)
        return np.frombuffer(self._block, np.uint8, size)

    def _grow(self, size: int) -> None:
        """Keep the pages that are there."""
        try:
            self._block.resize(_rounded(size))
        except (BufferError, OSError, SystemError, ValueError):  # still in use; or a system that moves no maps
            self._block = _mapped(size)


def _mapped(size: int) -> mmap.mmap:
    try:
        block = mmap.mmap(-1, _rounded(size), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{size:,} bytes for the columns of a shard") from error
    with suppress(OSError, AttributeError):  # a kernel without huge pages
        block.madvise(mmap.MADV_HUGEPAGE)
    return block


def _rounded(size: int) -> int:
    return max(1, -(-size // HUGE)) * HUGE
