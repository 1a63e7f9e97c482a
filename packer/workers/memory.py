"""The memory of a worker process: kept from picture to picture and from shard to shard."""

from __future__ import annotations

import ctypes
import sys

import numpy as np
from numpy.typing import NDArray

from readers.huge_pages import HUGE, map_memory, whole_pages

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_KEPT = 32 << 20
"""The largest array, in bytes, whose memory the process keeps. The columns of a shard have memory of their own."""
MOST_KEPT = 256 << 20
SHRINK_FACTOR = 8
"""Memory that is too large by this factor goes back to the kernel: it was for a single huge picture."""


def keep_memory() -> None:
    """Have glibc keep freed memory: it would return pages to the kernel with every picture. Only glibc can do this."""
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT)
        mallopt(M_TRIM_THRESHOLD, MOST_KEPT)


class ColumnMemory:
    """Returns the same bytes at each call: the caller must be done with the bytes of the call before."""

    def __init__(self) -> None:
        self._block = map_memory(HUGE)

    def __call__(self, size: int) -> NDArray[np.uint8]:
        if len(self._block) > SHRINK_FACTOR * max(size, HUGE):
            self._block = map_memory(max(size, HUGE))
        elif len(self._block) < size:
            self._grow(size)
        return np.frombuffer(self._block, np.uint8, size)

    def _grow(self, size: int) -> None:
        """Grow in place, so that pages that were written before stay."""
        try:
            self._block.resize(whole_pages(size))
        except (BufferError, OSError, SystemError, ValueError):  # in use, or this system cannot move maps
            self._block = map_memory(max(size, HUGE))
