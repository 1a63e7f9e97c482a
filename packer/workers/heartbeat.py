"""The board: shared memory where each thread of a worker notes the pair it is at, for when it cannot tell any more."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

Cells: TypeAlias = "ctypes.Array[ctypes.c_uint64]"
Pulse: TypeAlias = ctypes.c_uint64
"""What a worker counts up as long as it lives and is not stopped."""
IDLE = 0


class Board:
    """The worker's side: a cell per thread, holding the place of a pair in its shard plus one, or IDLE."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._free = list(range(len(cells)))

    @contextmanager
    def at(self, place: int) -> Iterator[None]:
        """While a thread works on the pair at this place."""
        cell = self._free.pop()
        self._cells[cell] = place + 1
        try:
            yield
        finally:
            self._cells[cell] = IDLE
            self._free.append(cell)


class Watch:
    """The parent's side: for how long each thread has been at its pair, and how long the worker gave no sign of life.

    Only time that the parent was awake counts: a machine that slept, or a parent that was stopped, condemns nobody.
    """

    def __init__(self, cells: Cells, pulse: Pulse) -> None:
        self._cells, self._pulse = cells, pulse
        self._beat: tuple[int, float] = (0, 0.0)
        self._seen: list[tuple[int, float]] = [(IDLE, 0.0)] * len(cells)

    def places(self) -> tuple[int, ...]:
        """The pairs in work now, or when the worker died."""
        return tuple(sorted(cell - 1 for cell in list(self._cells) if cell != IDLE))

    def restart(self) -> None:
        """Count from now on: the places are those of another task."""
        self._seen = [(IDLE, 0.0)] * len(self._cells)

    def overdue(self, awake: float, limit: float) -> int | None:
        """After `awake` more seconds: the pair that has been in work the longest, if that is longer than `limit`."""
        now = list(self._cells)
        self._seen = [
            (cell, seconds + awake if cell == seen else 0.0)
            for cell, (seen, seconds) in zip(now, self._seen, strict=True)
        ]
        longest, cell = max(((seconds, cell) for cell, seconds in self._seen if cell != IDLE), default=(0.0, IDLE))
        return cell - 1 if longest > limit else None

    def silent(self, awake: float) -> float:
        """After `awake` more seconds: for how long there was no beat."""
        beat, seconds = self._beat
        self._beat = (self._pulse.value, seconds + awake if self._pulse.value == beat else 0.0)
        return self._beat[1]
