"""`BenchRequest`: what to measure and for how long. PyTorch is not imported here: its import counts as spent time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from packer.bench.settings import LoaderSettings, batches_for, candidates, threads_for
from readers.contract.fields import Sides

LabelForm = Literal["onehot", "index"]
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

    def settings(self, rows: int, cores: int, slots: bool) -> list[LoaderSettings]:
        """Return all settings to consider. Worker processes are tried at one batch size, unless requested."""
        batches = self.batches or batches_for(rows)
        middle = batches[(len(batches) - 1) // 2 :][:1]
        return candidates(
            batches,
            self.threads or threads_for(cores),
            self.workers or (0, min(cores, MOST_WORKERS)),
            batches if self.workers else middle,
            slots,
        )
