"""`Workload`: the rows that trials read, and the memory that a loader needs for them."""

from __future__ import annotations

from dataclasses import dataclass

from packer.bench.settings import LoaderSettings
from readers.machine import Machine

MOST_OF_MEMORY = 0.5
"""The part of the free memory that a loader may take: a model needs memory, too."""
MEMORY, SHARED, ROWS, TIME = ("memory", "shared memory", "rows", "time")
"""Reasons to skip a setting."""


@dataclass(frozen=True)
class Skipped:
    """Settings that are not tried, the reason, and how much of it was needed and available."""

    settings: LoaderSettings
    reason: str
    needed: float
    available: float


@dataclass(frozen=True)
class Workload:
    """The number of rows, the bytes of a delivered row. `complete` if they are all rows of the split."""

    rows: int
    complete: bool
    row_bytes: int

    def batch_rows(self, settings: LoaderSettings) -> int:
        """Return the rows of a batch: fewer than the batch size if the split has fewer rows."""
        return min(settings.batch, self.rows)

    def memory(self, settings: LoaderSettings) -> int:
        return settings.batches * self.batch_rows(settings) * self.row_bytes

    def shared_memory(self, settings: LoaderSettings) -> int:
        return settings.shared_batches * self.batch_rows(settings) * self.row_bytes

    def too_much(self, settings: LoaderSettings, machine: Machine) -> Skipped | None:
        """Return what a loader lacks on this machine, if anything."""
        for reason, needed, available in (
            (SHARED, self.shared_memory(settings), machine.shared),
            (MEMORY, self.memory(settings), MOST_OF_MEMORY * machine.available),
            (ROWS, settings.batch if not self.complete else 0, self.rows),
        ):
            if needed > available:
                return Skipped(settings, reason, needed, available)
        return None
