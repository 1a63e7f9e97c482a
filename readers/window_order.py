"""`WindowOrder`: all windows of all rows, in order, a row whole on one of many ranks; resumed exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import RequestError
from readers.epoch import CHUNK
from readers.permutation import Numbers
from readers.sliding_windows import SlidingWindows

Sizes = Callable[[Numbers], NDArray[np.int64]]
"""`sizes(rows)` returns the sides of rows of the data set."""


class WindowRows(NamedTuple):
    """The windows of a batch: the row of each, as an index in the data set, and its number among the row's windows."""

    rows: Numbers
    numbers: Numbers
    consumed: tuple[int, ...]
    """The windows that this rank has received after this batch."""


@dataclass(frozen=True)
class WindowPass:
    """A pass through the windows of the rows `rank`, `rank + world_size`, …, without the first `start` windows."""

    rows: int
    sizes: Sizes
    windows: SlidingWindows
    start: int
    rank: int
    world_size: int

    @property
    def count(self) -> int:
        """The number of windows that this rank gets."""
        return max(0, sum(int(counts.sum()) for _, counts in self._counted()) - self.start)

    def batch_count(self, size: int) -> int:
        """Return the number of batches of `size` windows that this rank gets."""
        return -(-self.count // size)

    def batches(self, size: int) -> Iterator[WindowRows]:
        """Yield the batches of this rank; the last may have fewer windows."""
        rows: list[Numbers] = []
        numbers: list[Numbers] = []
        missing, received = size, self.start
        for row, first, count in self._left():
            while first < count:
                many = min(missing, count - first)
                rows.append(np.full(many, row, np.int64))
                numbers.append(np.arange(first, first + many, dtype=np.int64))
                first, missing, received = first + many, missing - many, received + many
                if not missing:
                    yield WindowRows(np.concatenate(rows), np.concatenate(numbers), (received,))
                    rows, numbers, missing = [], [], size
        if rows:
            yield WindowRows(np.concatenate(rows), np.concatenate(numbers), (received,))

    def _left(self) -> Iterator[tuple[int, int, int]]:
        """Yield each row with windows that are left, the first of these, and the number of all its windows."""
        skipped = self.start
        for rows, counts in self._counted():
            if skipped >= counts.sum():
                skipped -= int(counts.sum())
                continue
            for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
                if skipped < count:
                    yield row, skipped, count
                skipped = max(0, skipped - count)

    def _counted(self) -> Iterator[tuple[Numbers, Numbers]]:
        """Yield the rows of this rank, some at a time, and the number of windows of each."""
        for first in range(self.rank, self.rows, CHUNK * self.world_size):
            rows = np.arange(first, min(first + CHUNK * self.world_size, self.rows), self.world_size, dtype=np.int64)
            yield rows, self.windows.counts(self.sizes(rows))


class WindowOrder:
    """The order of windows, pass by pass: rows in order, and in a row the windows line by line, as `stitch` takes them.

    Rank r of W has the rows r, r + W, …, with all their windows. So a picture is stitched on one rank, and ranks may
    differ in their number of batches. The state counts the windows that this rank has received.
    """

    shuffle = False
    seed = padding = 0

    def __init__(self, rows: int, sizes: Sizes, windows: SlidingWindows, rank: int, world_size: int) -> None:
        if not 0 <= rank < world_size:
            raise RequestError(f"rank={rank} of world_size={world_size}: expected 0 to {world_size - 1}")
        self.windows, self.rank, self.world_size = windows, rank, world_size
        self._rows, self._sizes = rows, sizes
        self.epoch = self.consumed = self._start = 0
        self._is_over = self._resumed = False

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the pass; all passes are alike. A resumed pass goes on where it was."""
        if epoch != self.epoch:
            self.consumed, self._resumed = 0, False
        self.epoch, self._is_over = epoch, False

    def state_dict(self) -> dict[str, Any]:
        """Return what this rank has received, and the facts that a state must agree with."""
        return {**self._facts, "epoch": self.epoch, "consumed": self.consumed, "over": self._is_over}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken, also with another batch size, but with as many ranks."""
        expected = self.state_dict()
        if set(state) != set(expected) or not all(type(state[name]) is type(was) for name, was in expected.items()):
            raise RequestError(f"this is not the state of an order of windows: {dict(state)}")
        wrong = [
            f"{name} is {mine} here and was {state[name]}" for name, mine in self._facts.items() if state[name] != mine
        ]
        if wrong or state["consumed"] < 0:
            raise RequestError(f"the state is of other windows: {'; '.join(wrong) or state['consumed']}")
        self.epoch, self.consumed, self._is_over = state["epoch"], state["consumed"], state["over"]
        self._start, self._resumed = self.consumed, True

    def whole(self) -> WindowPass:
        """Return a pass from the first window on."""
        return self._pass(0)

    def coming(self) -> WindowPass:
        """Return the current pass, or else the one that would begin now."""
        return self._pass(self._start)

    def begin(self) -> WindowPass:
        """Begin a pass; the caller delivers its batches, and calls `receive` and `finish`."""
        self.epoch += self._is_over
        self.consumed = self._start = self.consumed if self._resumed and not self._is_over else 0
        self._is_over = self._resumed = False
        return self.coming()

    def receive(self, consumed: tuple[int, ...]) -> None:
        """Note how many windows this rank has received."""
        (self.consumed,) = consumed

    def finish(self) -> None:
        """Note that the pass has ended."""
        self._is_over = True

    @property
    def _facts(self) -> dict[str, Any]:
        return {"rows": self._rows, "windows": repr(self.windows), "world_size": self.world_size}

    def _pass(self, start: int) -> WindowPass:
        return WindowPass(self._rows, self._sizes, self.windows, start, self.rank, self.world_size)
