"""Memory for the columns of one shard after the other: taken anew for each, its pages would cost as much as hashing."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

Memory = Callable[[int], NDArray[np.uint8]]
"""Gives so many bytes, of any content."""
HUGE = 2 << 20
FAR_LESS = 8
"""Memory goes back when it is so many times what is asked for: it was of a picture without its like."""


def fresh(size: int) -> NDArray[np.uint8]:
    """Bytes that are nobody else's."""
    return np.empty(size, np.uint8)


class Scratch:
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
