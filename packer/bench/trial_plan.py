"""`TrialPlan`: the settings that fit into memory and time, the rounds, and the seconds of each trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from packer.bench.settings import LOADER, LoaderSettings
from readers.machine import Machine

MOST_OF_MEMORY = 0.5
"""The part of the free memory that a loader may take: a model needs memory, too."""
LEAST_ROUNDS, MOST_ROUNDS = 3, 15
LEAST_SECONDS, GOOD_SECONDS, MOST_SECONDS = 0.1, 0.25, 1.0
"""Seconds of a trial. A shorter one hangs on a single pause of the machine."""
STARTING, STARTING_WORKER = 0.005, 0.1
"""Approximate seconds to start and end a trial, and each of its worker processes."""

MEMORY, SHARED, ROWS, TIME = ("memory", "shared memory", "rows", "time")
"""Reasons to skip a setting."""


@dataclass(frozen=True)
class Workload:
    """The rows that trials read from memory: their number, the bytes of a delivered row, the seconds of a thread for
    it. `complete` if they are all rows of the split."""

    rows: int
    complete: bool
    row_bytes: int
    row_seconds: float

    def batch_rows(self, settings: LoaderSettings) -> int:
        """Return the rows of a batch: fewer than the batch size if there are not so many rows."""
        return min(settings.batch, self.rows)

    def memory(self, settings: LoaderSettings) -> int:
        return settings.batches * self.batch_rows(settings) * self.row_bytes

    def shared_memory(self, settings: LoaderSettings) -> int:
        return settings.shared_batches * self.batch_rows(settings) * self.row_bytes

    def overhead(self, settings: LoaderSettings) -> float:
        """Return the seconds of a trial that are needed in addition to the measured time."""
        batches = settings.warm_up + settings.least_batches
        reading = batches * self.batch_rows(settings) * self.row_seconds / max(1, settings.workers)
        return STARTING + STARTING_WORKER * settings.processes + reading


@dataclass(frozen=True)
class Skipped:
    """Settings that are not tried, the reason, and how much of it was needed and available."""

    settings: LoaderSettings
    reason: str
    needed: float
    available: float


@dataclass(frozen=True)
class TrialPlan:
    """All settings to try, the number of rounds, and the seconds of a trial. Each round begins with the copy loop."""

    settings: tuple[LoaderSettings, ...]
    skipped: tuple[Skipped, ...]
    rounds: int
    seconds: float

    @property
    def trials(self) -> int:
        """The number of trials in all rounds, with those of the copy loop."""
        return self.rounds * (len(self.settings) + 1)

    @classmethod
    def make(cls, settings: Sequence[LoaderSettings], workload: Workload, machine: Machine, budget: float) -> TrialPlan:
        """Select the settings that fit into memory and into `budget` seconds.

        If there is not enough time, the slowest are skipped first, and DataLoaders, which are only compared,
        before loaders.
        """
        skipped = {each: reason for each in settings if (reason := _skipped(each, workload, machine))}
        kept = [each for each in settings if each not in skipped]
        while True:
            overhead = sum(map(workload.overhead, kept))
            turns = 1 + sum(2 if each.processes else 1 for each in kept)  # worker processes warm up for as long again
            rounds = max(LEAST_ROUNDS, min(MOST_ROUNDS, int(budget / (overhead + GOOD_SECONDS * turns))))
            seconds = (budget / rounds - overhead) / turns
            if seconds >= LEAST_SECONDS or len(kept) <= 1:
                seconds = max(LEAST_SECONDS, min(seconds, MOST_SECONDS))
                return cls(tuple(kept), tuple(skipped[each] for each in settings if each in skipped), rounds, seconds)
            slowest = max(kept, key=lambda each: (each.kind != LOADER, workload.overhead(each)))
            kept.remove(slowest)
            skipped[slowest] = Skipped(slowest, TIME, LEAST_ROUNDS * workload.overhead(slowest), budget)


def _skipped(settings: LoaderSettings, workload: Workload, machine: Machine) -> Skipped | None:
    if workload.shared_memory(settings) > machine.shared:
        return Skipped(settings, SHARED, workload.shared_memory(settings), machine.shared)
    if workload.memory(settings) > MOST_OF_MEMORY * machine.available:
        return Skipped(settings, MEMORY, workload.memory(settings), MOST_OF_MEMORY * machine.available)
    if settings.batch > workload.rows and not workload.complete:
        return Skipped(settings, ROWS, settings.batch, workload.rows)
    return None
