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
ROOM = 4
"""So many times what is asked for is mapped, as shards are of many sizes; what is never touched takes no memory."""


def fresh(size: int) -> NDArray[np.uint8]:
    """Bytes that are nobody else's."""
    return np.empty(size, np.uint8)


class Scratch:
    """Gives the same bytes again and again: whoever asks is done with what was given before."""

    def __init__(self) -> None:
        self._block = fresh(0)

    def __call__(self, size: int) -> NDArray[np.uint8]:
        if size > len(self._block):
            self._block = fresh(0)  # goes back before more is taken
            try:
                self._block = _mapped(ROOM * size)
            except OSError:  # where memory that is only mapped counts, too
                self._block = fresh(size)
        return self._block[:size]


def _mapped(size: int) -> NDArray[np.uint8]:
    block = mmap.mmap(-1, -(-size // HUGE) * HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError, AttributeError):  # a kernel without huge pages
        block.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(block, np.uint8)
