"""The heartbeat of a worker, in shared memory: which pair each thread works on, and a pulse while the process runs.

The parent reads it when the worker cannot answer any more.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

SharedCells: TypeAlias = "ctypes.Array[ctypes.c_uint64]"
Pulse: TypeAlias = ctypes.c_uint64
IDLE = 0


class Heartbeat:
    """The worker's side: a cell per thread holds the index of its pair plus one, or IDLE."""

    def __init__(self, cells: SharedCells, pulse: Pulse) -> None:
        self._cells, self._pulse = cells, pulse
        self._free = list(range(len(cells)))

    def beat(self) -> None:
        """Count the pulse up."""
        self._pulse.value += 1

    @contextmanager
    def at(self, index: int) -> Iterator[None]:
        """Show that a thread works on the pair with this index."""
        cell = self._free.pop()
        self._cells[cell] = index + 1
        try:
            yield
        finally:
            self._cells[cell] = IDLE
            self._free.append(cell)


class HeartbeatMonitor:
    """The parent's side: how long each thread has worked on its pair, and how long the worker gave no sign of life.

    Only time in which the parent was awake counts: a machine that slept, or a parent that was stopped, kills no worker.
    """

    def __init__(self, cells: SharedCells, pulse: Pulse) -> None:
        self._cells, self._pulse = cells, pulse
        self._last_pulse: tuple[int, float] = (0, 0.0)
        self._last_cells: list[tuple[int, float]] = [(IDLE, 0.0)] * len(cells)

    def indices(self) -> tuple[int, ...]:
        """Return the pairs in work, now or when the worker crashed."""
        return tuple(sorted(cell - 1 for cell in list(self._cells) if cell != IDLE))

    def restart(self) -> None:
        """Count from now on, because a new task begins."""
        self._last_cells = [(IDLE, 0.0)] * len(self._cells)

    def overdue(self, awake: float, limit: float) -> int | None:
        """Add `awake` seconds; return the pair that has been in work the longest if that is longer than `limit`."""
        now = list(self._cells)
        self._last_cells = [
            (cell, seconds + awake if cell == last else 0.0)
            for cell, (last, seconds) in zip(now, self._last_cells, strict=True)
        ]
        longest, cell = max(
            ((seconds, cell) for cell, seconds in self._last_cells if cell != IDLE), default=(0.0, IDLE)
        )
        return cell - 1 if longest > limit else None

    def silent(self, awake: float) -> float:
        """Add `awake` seconds; return for how many seconds there was no pulse."""
        pulse, seconds = self._last_pulse
        self._last_pulse = (self._pulse.value, seconds + awake if self._pulse.value == pulse else 0.0)
        return self._last_pulse[1]
