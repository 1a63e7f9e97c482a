"""`LoaderSettings`: a loader to compare, its batch size and number of threads or worker processes."""

from __future__ import annotations

from dataclasses import dataclass

LOADER, SLOTS, STOCK = KINDS = ("loader", "SlotDataLoader", "DataLoader")
"""The cheapest first: a thread costs less than a process."""
PREFETCH, SLOTS_HELD = 2, 2
"""Batches that a worker process of a DataLoader prefetches; additional slots of a SlotDataLoader's worker."""


@dataclass(frozen=True)
class LoaderSettings:
    """A kind of loader, its batch size, and its threads or worker processes."""

    kind: str
    batch: int
    workers: int
    """Threads of a loader, processes of a DataLoader; 0 for a DataLoader in the process of the training."""

    @property
    def ahead(self) -> int:
        """Batches that a loader gathers ahead: one for each thread, and one that is ready."""
        return max(3, self.workers + 1)

    @property
    def processes(self) -> int:
        """The number of worker processes."""
        return 0 if self.kind == LOADER else self.workers

    @property
    def batches(self) -> int:
        """The most batches in memory at the same time: unfinished, ready, and two that the training holds."""
        if self.kind == LOADER:
            return self.ahead + 2
        return self.shared_batches + (self.workers if self.kind == STOCK else 0) + (0 if self.workers else 2)

    @property
    def shared_batches(self) -> int:
        """The number of these batches that are in /dev/shm."""
        if self.kind == SLOTS:
            return self.workers * (PREFETCH + SLOTS_HELD)
        return self.processes * PREFETCH + min(1, self.processes)

    @property
    def warm_up(self) -> int:
        """Batches to read before the rate of a loader is steady."""
        return self.ahead + 2 if self.kind == LOADER else self.workers * PREFETCH + 1

    @property
    def least_batches(self) -> int:
        """The least number of batches of a trial, however long they take: one from each worker, and one more."""
        return max(3, self.workers + 1)
