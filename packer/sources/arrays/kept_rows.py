"""`KeptRows`: rows of a compressed array. Rows of the same chunks are decompressed together, and kept for a while."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.sources.arrays.stack_form import Stack

MOST_KEPT = 1 << 28
"""The most bytes of rows that are kept. Chunks of more are decompressed again for each row."""


class KeptRows:
    """The rows of an array, with `step` rows in the same chunks.

    `version` identifies what the chunks of a row hold now. If that changed, they are read again.
    """

    def __init__(self, stack: Stack, step: int, version: Callable[[int], object] = lambda row: None) -> None:
        self.dtype, self.shape = stack.dtype, stack.shape
        self._stack, self._step = stack, step
        self._keeps = step > 1 and step * self.dtype.itemsize * prod(self.shape[1:]) <= MOST_KEPT
        self._version = version
        self._first, self._kept = 0, np.empty(0)
        self._of: object = None
        self._lock = Lock()

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Return a copy of some rows. A single one is kept with its neighbours."""
        if stop - start > 1 or not self._keeps:
            return self._stack.rows(start, stop)
        with self._lock:
            now = self._version(start)
            if now != self._of or not self._first <= start < self._first + len(self._kept):
                first = start - start % self._step
                kept = self._stack.rows(first, min(first + self._step, self.shape[0]))  # it may be bad
                self._kept, self._first, self._of = kept, first, now
            return np.array(self._kept[start - self._first][None])
