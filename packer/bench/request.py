"""`BenchRequest`: what to measure and for how long. PyTorch is not imported here: its import counts as spent time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from packer.bench.settings import LOADER, SLOTS, STOCK, LoaderSettings
from readers.contract.fields import Sides

LabelForm = Literal["onehot", "index"]
BATCHES, MOST_THREADS = (4, 8, 16, 32, 64), 32
MOST_WORKERS = 4
"""The default number of worker processes: each is a Python process with its own PyTorch."""
LEAST_PART = 0.5
"""The part of the time that is left to measure in, even if starting took longer."""


@dataclass(frozen=True)
class BenchRequest:
    """The pack and the settings to try. Empty values are chosen to suit the pack and the machine."""

    out: Path
    split: str | None = None
    labels: LabelForm | None = None
    crop: Sides | None = None
    fields: tuple[str, ...] | None = None
    batches: tuple[int, ...] = ()
    threads: tuple[int, ...] = ()
    workers: tuple[int, ...] = ()
    seconds: float = 30
    started: float = field(default_factory=time.perf_counter)

    def seconds_left(self) -> float:
        """Return the rest of `seconds`, counted from `started`; at least half of them."""
        return max(LEAST_PART * self.seconds, self.started + self.seconds - time.perf_counter())

    def settings(self, rows: int, cores: int) -> list[LoaderSettings]:
        """Return all settings to consider: loaders with each number of threads at each batch size, then DataLoaders.

        SlotDataLoaders, which do not crop, are compared too. Worker processes are tried at one batch size, unless
        requested.
        """
        batches = self.batches or batches_for(rows)
        compared = batches if self.workers else batches[(len(batches) - 1) // 2 :][:1]
        workers = self.workers or (0, min(cores, MOST_WORKERS))
        counts = self.threads or threads(cores)
        settings = [LoaderSettings(LOADER, batch, count) for batch in batches for count in counts]
        for batch in compared:
            settings += [LoaderSettings(SLOTS, batch, count) for count in workers if count and not self.crop]
            settings += [LoaderSettings(STOCK, batch, count) for count in workers]
        return settings


def batches_for(rows: int) -> tuple[int, ...]:
    """Return the batch sizes to try with this number of rows. The largest may hold all of them."""
    return tuple(size for size, smaller in zip(BATCHES, (0, *BATCHES), strict=False) if smaller < max(1, rows))


def threads(cores: int) -> tuple[int, ...]:
    """Return 1, 2, 4 and so on, and the number of cores."""
    most = min(cores, MOST_THREADS)
    return tuple(sorted({most, *(1 << power for power in range(most.bit_length()))}))
