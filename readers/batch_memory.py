"""`BatchMemory`: memory of batches that is used again once no array or tensor refers to it."""

from __future__ import annotations

import math
import mmap
import weakref
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from readers.huge_pages import map_memory

SMALL = 64 << 10
"""Smaller arrays get new memory each time: their page faults cost too little to be worth saving."""


class Lease(Protocol):
    """A function that returns memory for an array, not initialised."""

    def __call__(self, shape: tuple[int, ...], dtype: str) -> NDArray[Any]: ...


class BatchMemory:
    """Arrays from `lease(shape, dtype)`, whose memory is used again when the array and all views of it are gone.

    The block that came back last is used first, because it is still in the caches. At most `keep` blocks are idle.
    """

    def __init__(self, keep: int = 0) -> None:
        self.keep = keep
        self._idle: list[mmap.mmap] = []
        self._lent: dict[int, weakref.ref[NDArray[Any]]] = {}

    def lease(self, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
        kind = np.dtype(dtype)
        size = kind.itemsize * math.prod(shape)
        if size < SMALL:
            return np.empty(shape, kind)
        block = self._block(size)
        # numpy gives views of an array over a foreign buffer this array as `base`: views and tensors all keep it alive.
        owner = np.frombuffer(block, np.uint8, size)
        self._take_back(owner, block)
        return owner.view(kind).reshape(shape)

    def _take_back(self, owner: NDArray[Any], block: mmap.mmap) -> None:
        """Take the block back when `owner` is deleted. `weakref.finalize` does the same in four times the time."""
        idle, lent, keep = self._idle, self._lent, self.keep

        def gone(reference: weakref.ref[NDArray[Any]]) -> None:
            # No lock: this runs whenever an array is deleted, perhaps inside a `lease` of the same thread.
            del lent[id(reference)]
            idle.append(block)
            if len(idle) > keep:
                idle.pop(0)

        reference = weakref.ref(owner, gone)
        lent[id(reference)] = reference

    def _block(self, size: int) -> mmap.mmap:
        """Return an idle block that is large enough but not much too large, or a new one."""
        for block in reversed(self._idle.copy()):
            if size <= len(block) <= 2 * size + mmap.PAGESIZE:
                with suppress(ValueError):  # another thread took it
                    self._idle.remove(block)
                    return block
        return map_memory(size)
