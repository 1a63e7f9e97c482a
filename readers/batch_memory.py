"""Memory of batches: handed out, and written again only when nothing of what was handed out is left."""

from __future__ import annotations

import math
import mmap
import weakref
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

SMALL = 64 << 10
"""Arrays of fewer bytes are plain new memory: they cost no page faults worth saving."""
HUGE = 2 << 20
"""Blocks of this many bytes are mapped in huge pages, which are faster to fill."""


class Lease(Protocol):
    """Whoever gives memory for an array."""

    def __call__(self, shape: tuple[int, ...], dtype: str) -> NDArray[Any]: ...


class Slots:
    """`lease(shape, dtype)` gives an array. When it and all that was made of it without a copy are gone, its memory is
    given out again, that of the last comer first: it is still in the caches. At most `keep` blocks lie idle.
    """

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._idle: list[mmap.mmap] = []
        self._lent: dict[int, weakref.ref[NDArray[Any]]] = {}

    def lease(self, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
        kind = np.dtype(dtype)
        size = kind.itemsize * math.prod(shape)
        if size < SMALL:
            return np.empty(shape, kind)
        block = self._block(size)
        # An array over a buffer that is no array: all views of it, and tensors over these, keep this very object alive.
        owner = np.frombuffer(block, np.uint8, size)
        self._take_back(owner, block)
        return owner.view(kind).reshape(shape)

    def _take_back(self, owner: NDArray[Any], block: mmap.mmap) -> None:
        """Have the block back when the owner is gone; `weakref.finalize` does so too, in four times the time."""
        idle, lent, keep = self._idle, self._lent, self._keep

        def gone(reference: weakref.ref[NDArray[Any]]) -> None:
            # No lock: this runs whenever an array dies, perhaps while its own thread is about to lease.
            del lent[id(reference)]
            idle.append(block)
            if len(idle) > keep:
                idle.pop(0)

        reference = weakref.ref(owner, gone)
        lent[id(reference)] = reference

    def _block(self, size: int) -> mmap.mmap:
        """An idle block that is large enough and not much too large, or a new one."""
        for block in reversed(self._idle.copy()):
            if size <= len(block) <= 2 * size + mmap.PAGESIZE:
                with suppress(ValueError):  # another thread was faster
                    self._idle.remove(block)
                    return block
        return _new_block(size)


def _new_block(size: int) -> mmap.mmap:
    page = HUGE if size >= HUGE else mmap.PAGESIZE
    block = mmap.mmap(-1, -(-size // page) * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if size >= HUGE:
        with suppress(OSError):  # a kernel without huge pages
            block.madvise(mmap.MADV_HUGEPAGE)
    return block
