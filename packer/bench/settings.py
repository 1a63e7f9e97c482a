"""`Setting`, `Sweep`, `Trial`: which ways to read are tried, for how long, which is chosen; nothing is read here."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from readers.machine import Machine

LOADER, SLOTS, STOCK = KINDS = ("loader", "SlotDataLoader", "DataLoader")
"""The cheapest first: a thread takes less of a machine than a process."""
PREFETCH, SLOTS_HELD = 2, 2
"""Batches that a worker process of a DataLoader is ahead, and slots of a SlotDataLoader's worker beyond these."""
NEAR = 0.95
"""What delivers such a part of the best rate is as good."""
MOST_OF_MEMORY = 0.5
"""A setting may take such a part of what is free: a model wants memory as well."""
MOST_THREADS = 32
BATCHES = (4, 8, 16, 32, 64)

LEAST_ROUNDS, MOST_ROUNDS = 3, 15
LEAST_SECONDS, GOOD_SECONDS, MOST_SECONDS = 0.02, 0.25, 1.0
"""Of a trial."""
STARTING, STARTING_WORKER = 0.005, 0.1
"""About how many seconds it takes to start and end a trial, and each of its worker processes."""

MEMORY, SHARED, ROWS, TIME = REASONS = ("memory", "shared memory", "rows", "time")


@dataclass(frozen=True)
class Setting:
    """A way to read: whose batches, of how many rows, by how many threads of a loader or worker processes."""

    kind: str
    batch: int
    workers: int
    """0 for a DataLoader that works in the process of the training."""

    @property
    def ahead(self) -> int:
        """How many batches a loader gathers ahead: a thread can be at each, and one is ready."""
        return max(3, self.workers + 1)

    @property
    def processes(self) -> int:
        """Worker processes."""
        return 0 if self.kind == LOADER else self.workers

    @property
    def batches(self) -> int:
        """How many batches are in memory at once: on their way, ready, and two that the user holds for a moment."""
        if self.kind == LOADER:
            return self.ahead + 2
        return self.shared_batches + (self.workers if self.kind == STOCK else 0) + (0 if self.workers else 2)

    @property
    def shared_batches(self) -> int:
        """How many of these are in /dev/shm."""
        if self.kind == SLOTS:
            return self.workers * (PREFETCH + SLOTS_HELD)
        return self.processes * PREFETCH + min(1, self.processes)

    @property
    def warm_up(self) -> int:
        """So many batches come before a loader is in its stride."""
        return self.ahead + 2 if self.kind == LOADER else self.workers * PREFETCH + 1

    @property
    def least_batches(self) -> int:
        """A trial delivers so many, however long they take: one of each worker, and one more."""
        return max(3, self.workers + 1)


@dataclass(frozen=True)
class Load:
    """What trials read: rows that are in memory, how many bytes each is when delivered, how long a thread takes for it.
    `every`: whether they are all rows of the split."""

    rows: int
    every: bool
    row_bytes: int
    row_seconds: float

    def batch_rows(self, setting: Setting) -> int:
        """How many rows a batch has: fewer than wanted where there are not more."""
        return min(setting.batch, self.rows)

    def memory(self, setting: Setting) -> int:
        return setting.batches * self.batch_rows(setting) * self.row_bytes

    def shared(self, setting: Setting) -> int:
        return setting.shared_batches * self.batch_rows(setting) * self.row_bytes

    def lost(self, setting: Setting) -> float:
        """Seconds of a trial that are not measured, or that it needs in any case."""
        batches = setting.warm_up + setting.least_batches
        reading = batches * self.batch_rows(setting) * self.row_seconds / max(1, setting.workers)
        return STARTING + STARTING_WORKER * setting.processes + reading


@dataclass(frozen=True)
class LeftOut:
    """A setting that is not tried, for which of REASONS, and of this how much would be needed and how much there is."""

    setting: Setting
    why: str
    needed: float
    there: float


@dataclass(frozen=True)
class Sweep:
    """All settings that are tried, so long each time, in so many rounds; a copy loop comes first in each."""

    settings: tuple[Setting, ...]
    left_out: tuple[LeftOut, ...]
    rounds: int
    seconds: float

    @property
    def trials(self) -> int:
        """How many there are in all rounds."""
        return self.rounds * (len(self.settings) + 1)

    @classmethod
    def plan(cls, settings: Sequence[Setting], load: Load, machine: Machine, budget: float) -> Sweep:
        """What fits into memory, and into so many seconds; if not all does, what is only compared gives way first."""
        refused = {setting: left for setting in settings if (left := _refused(setting, load, machine))}
        kept = [setting for setting in settings if setting not in refused]
        while True:
            lost = sum(map(load.lost, kept))
            times = 1 + sum(2 if one.processes else 1 for one in kept)  # worker processes also warm up for as long
            rounds = max(LEAST_ROUNDS, min(MOST_ROUNDS, int(budget / (lost + GOOD_SECONDS * times))))
            each = (budget / rounds - lost) / times
            if each >= LEAST_SECONDS or len(kept) <= 1:
                seconds = max(LEAST_SECONDS, min(each, MOST_SECONDS))
                return cls(tuple(kept), tuple(refused[one] for one in settings if one in refused), rounds, seconds)
            longest = max(kept, key=lambda one: (one.kind != LOADER, load.lost(one)))
            kept.remove(longest)
            refused[longest] = LeftOut(longest, TIME, LEAST_ROUNDS * load.lost(longest), budget)


def _refused(setting: Setting, load: Load, machine: Machine) -> LeftOut | None:
    if load.shared(setting) > machine.shared:
        return LeftOut(setting, SHARED, load.shared(setting), machine.shared)
    if load.memory(setting) > MOST_OF_MEMORY * machine.available:
        return LeftOut(setting, MEMORY, load.memory(setting), MOST_OF_MEMORY * machine.available)
    if setting.batch > load.rows and not load.every:
        return LeftOut(setting, ROWS, setting.batch, load.rows)
    return None


def batches_for(rows: int) -> tuple[int, ...]:
    """The sizes of batches that are tried of so many rows: the last may be all of them."""
    return tuple(one for one, before in zip(BATCHES, (0, *BATCHES), strict=False) if before < max(1, rows))


def threads_for(cores: int) -> tuple[int, ...]:
    """1, 2, 4 and so on, and as many as there are cores."""
    most = min(cores, MOST_THREADS)
    return tuple(sorted({most, *(1 << power for power in range(most.bit_length()))}))


def candidates(
    batches: Sequence[int], threads: Sequence[int], workers: Sequence[int], compared: Sequence[int], slots: bool
) -> list[Setting]:
    """Loaders with every number of threads at every size of batches; DataLoaders with every number of workers at those
    sizes at which they are compared, where `slots` are possible of both kinds."""
    found = [Setting(LOADER, batch, many) for batch in batches for many in threads]
    for batch in compared:
        found += [Setting(SLOTS, batch, many) for many in workers if many and slots]
        found += [Setting(STOCK, batch, many) for many in workers]
    return found


@dataclass(frozen=True)
class Trial:
    """What came of a setting: samples a second in each round, and which part of the copy loop's rate that was."""

    setting: Setting
    rates: tuple[float, ...]
    of_copy: tuple[float, ...]

    @property
    def rate(self) -> float:
        """The median."""
        return statistics.median(self.rates)

    @property
    def part(self) -> float:
        """Of the copy loop's rate in the same round, the median."""
        return statistics.median(self.of_copy)


def cheapest(trials: Sequence[Trial], target: float | None = None) -> Trial:
    """The cheapest of what delivers the target; without one, or where nothing does, of what comes near the best.

    A thread is cheaper than a worker process, then fewer are cheaper than more, then less memory than more.
    """
    best = max(one.rate for one in trials)
    enough = [one for one in trials if target is not None and one.rate >= target]
    enough = enough or [one for one in trials if one.rate >= NEAR * best]
    return min(enough, key=lambda one: _cost(one.setting))


def by_batch(trials: Sequence[Trial], target: float | None = None) -> dict[int, Trial]:
    """The cheapest at each size of batches."""
    sizes = sorted({one.setting.batch for one in trials})
    return {size: cheapest([one for one in trials if one.setting.batch == size], target) for size in sizes}


def _cost(setting: Setting) -> tuple[int, int, int]:
    return KINDS.index(setting.kind), setting.workers, setting.batches * setting.batch
