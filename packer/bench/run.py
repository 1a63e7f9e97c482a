"""Run a benchmark: a first pass, then every loader and a copy loop in rounds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from packer.bench.cached_share import cached_share
from packer.bench.copy_loop import CopyLoop
from packer.bench.loaders import TrialRunner
from packer.bench.recommend import LoaderResult
from packer.bench.request import MOST_WORKERS, BenchRequest
from packer.bench.settings import LoaderSettings
from packer.bench.workload import TIME, Skipped, Workload
from packer.progress import Advance, Progress, no_progress
from readers.dataset import SegDataset
from readers.machine import Machine

FIRST_PASS, FIRST_ROUND = 0.2, 0.33
"""Parts of the time: the most for the first pass over rows that may not be in memory, and of the rest for the first
round of trials."""
FIRST_BATCH = 4
"""A small batch, so that a slow disk and large images show early: which batches fit into memory is not known yet."""
ROUNDS, LEAST_SECONDS = 5, 0.1
"""The rounds, and the seconds of a trial: a shorter one hangs on a single pause of the machine."""


@dataclass(frozen=True)
class FirstPass:
    """Rows that were read as in the first epoch. `cached` is the part of the split that was in memory before; None if
    it is not known."""

    rows: int
    seconds: float
    cached: float | None

    @property
    def rate(self) -> float:
        return self.rows / self.seconds


@dataclass(frozen=True)
class BenchResult:
    """All measurements. `bytes` is the stored size of what is read, `copy_rates` the copy loop's rate in each round,
    `trial_seconds` the time of each trial."""

    request: BenchRequest
    dataset: SegDataset
    bytes: int
    machine: Machine
    first_pass: FirstPass
    workload: Workload
    trial_seconds: float
    loaders: tuple[LoaderResult, ...]
    skipped: tuple[Skipped, ...]
    copy_rates: tuple[float, ...]

    @property
    def larger_than_memory(self) -> bool:
        """True if the split does not fit into memory: its first rows leave the page cache before an epoch ends."""
        return self.bytes > self.machine.memory


def run_bench(
    request: BenchRequest,
    machine: Machine,
    *,
    progress: Progress = no_progress,
    after_first_pass: Callable[[FirstPass], object] = lambda first_pass: None,
) -> BenchResult:
    """Measure for about as many seconds as the request has left. `after_first_pass` is called before the trials.

    Raises UsageError if the split has no rows or a native pack needs a crop, EngineError if worker processes fail.
    """
    seconds = request.seconds_left()
    end = time.perf_counter() + seconds
    runner = TrialRunner(request)
    candidates = request.settings(len(runner.dataset), machine.cores)
    cached = cached_share(runner.pack, runner.pack_rows)
    with warnings.catch_warnings():
        # PyTorch warns about more workers than cores and about forks, which are tried on purpose.
        warnings.simplefilter("ignore")
        first_seconds = runner.first_pass(FIRST_BATCH, min(machine.cores, MOST_WORKERS), FIRST_PASS * seconds)
        first_pass = FirstPass(len(runner.rows), first_seconds, cached)
        after_first_pass(first_pass)
        workload = runner.workload
        skipped = [lack for settings in candidates if (lack := workload.too_much(settings, machine))]
        fitting = [settings for settings in candidates if workload.too_much(settings, machine) is None]
        loop = runner.copy_loop(machine.cores, min(settings.batch for settings in candidates))
        loop.rate(LEAST_SECONDS)
        # Worker processes warm up for as long again.
        turns = 1 + sum(2 if settings.processes else 1 for settings in fitting)
        trial = max(LEAST_SECONDS, (end - time.perf_counter()) / (ROUNDS * turns))
        with progress("measuring", ROUNDS * len(fitting), "trials") as advance:
            rates, copy_rates = _run_trials(runner, loop, fitting, trial, end, advance)
    manifest = runner.dataset.manifest
    read, stored = (sum(field.pixel_bytes for field in fields) for fields in (runner.pack.fields, manifest.fields))
    size = manifest.bytes * read * len(runner.dataset) // (stored * manifest.rows)
    skipped += [Skipped(settings, TIME, trial, 0) for settings in fitting if settings not in rates]
    loaders = tuple(LoaderResult.of(settings, loader_rates, copy_rates) for settings, loader_rates in rates.items())
    measured = workload, trial, loaders, tuple(skipped), tuple(copy_rates)
    return BenchResult(request, runner.dataset, size, machine, first_pass, *measured)


def _run_trials(
    runner: TrialRunner,
    loop: CopyLoop,
    candidates: Sequence[LoaderSettings],
    seconds: float,
    end: float,
    advance: Advance,
) -> tuple[dict[LoaderSettings, list[float]], list[float]]:
    """Run trials in rounds, every other round backwards, until the time is over.

    Settings that the first round has no time for are left out, the last first: the slow ones come last.
    """
    rates, copy_rates = dict[LoaderSettings, list[float]](), list[float]()
    until = time.perf_counter() + FIRST_ROUND * (end - time.perf_counter())
    for number in range(ROUNDS if candidates else 0):
        copy_rates.append(loop.rate(seconds))
        for settings in list(rates)[:: -1 if number % 2 else 1] or candidates:
            if rates and time.perf_counter() > until:
                break
            rates.setdefault(settings, []).append(runner.rate(settings, seconds))
            advance(1)
        until = end - seconds
        if time.perf_counter() > until:
            break
    return rates, copy_rates
