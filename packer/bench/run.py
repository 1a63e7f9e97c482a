"""Run a benchmark: a first pass, then every loader and a copy loop in rounds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from packer.bench.cached_share import cached_share
from packer.bench.copy_loop import CopyLoop
from packer.bench.loaders import TrialRunner
from packer.bench.recommend import LoaderResult
from packer.bench.request import MOST_WORKERS, BenchRequest
from packer.bench.settings import LOADER, LoaderSettings
from packer.bench.trial_plan import TrialPlan, Workload
from packer.progress import Advance, Progress, no_progress
from readers.dataset import SegDataset
from readers.machine import Machine

FIRST_PASS, PACE = 0.2, 0.03
"""Parts of the time: for the first pass over rows that may not be in memory, and for timing a single row."""
FIRST_BATCH = 4
"""A small batch, so that a slow disk and large images show early: which batches fit into memory is not known yet."""
REST = 0.1
"""The part of the time that is kept for the end."""


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
    """All measurements. `bytes` is the stored size of what is read, `copy_rates` the copy loop's rate in each round."""

    request: BenchRequest
    dataset: SegDataset
    bytes: int
    machine: Machine
    first_pass: FirstPass
    workload: Workload
    plan: TrialPlan
    loaders: tuple[LoaderResult, ...]
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
    planned: Callable[[FirstPass, TrialPlan], object] = lambda first_pass, plan: None,
) -> BenchResult:
    """Measure for about as many seconds as the request has left. `planned` is called before the trials.

    Raises UsageError if the split has no rows or a native pack needs a crop, EngineError if worker processes fail.
    """
    seconds = request.seconds_left()
    end = time.perf_counter() + (1 - REST) * seconds
    runner = TrialRunner(request)
    settings = request.settings(len(runner.dataset), machine.cores, runner.slots)
    cached = cached_share(runner.pack, runner.pack_rows)
    with warnings.catch_warnings():
        # PyTorch warns about more workers than cores and about forks, which are tried on purpose.
        warnings.simplefilter("ignore")
        first_seconds = runner.first_pass(FIRST_BATCH, min(machine.cores, MOST_WORKERS), FIRST_PASS * seconds)
        first_pass = FirstPass(len(runner.rows), first_seconds, cached)
        row_seconds = 1 / runner.rate(LoaderSettings(LOADER, FIRST_BATCH, 1), PACE * seconds)
        workload = Workload(len(runner.rows), runner.complete, runner.row_bytes, row_seconds)
        plan = TrialPlan.make(settings, workload, machine, end - time.perf_counter() - PACE * seconds)
        loop = runner.copy_loop(machine.cores, min(each.batch for each in settings))
        loop.rate(PACE * seconds)
        planned(first_pass, plan)
        with progress("measuring", plan.trials, "trials") as advance:
            loaders, copy_rates = _run_trials(plan, runner, loop, end, advance)
    manifest = runner.dataset.manifest
    read, stored = (sum(field.pixel_bytes for field in fields) for fields in (runner.pack.fields, manifest.fields))
    size = manifest.bytes * read * len(runner.dataset) // (stored * manifest.rows)
    return BenchResult(request, runner.dataset, size, machine, first_pass, workload, plan, loaders, copy_rates)


def _run_trials(
    plan: TrialPlan, runner: TrialRunner, loop: CopyLoop, end: float, advance: Advance
) -> tuple[tuple[LoaderResult, ...], tuple[float, ...]]:
    """Run all trials in rounds, every other round backwards. The first round is always complete; later ones stop at the
    `end` of the time."""
    rates: dict[LoaderSettings, list[float]] = {settings: [] for settings in plan.settings}
    of_copy: dict[LoaderSettings, list[float]] = {settings: [] for settings in plan.settings}
    copy_rates: list[float] = []
    for number in range(plan.rounds):
        for settings in plan.settings[:: -1 if number % 2 else 1]:
            if number and time.perf_counter() + plan.seconds > end:
                break
            if len(copy_rates) == number:
                copy_rates.append(loop.rate(plan.seconds))
                advance(1)
            rate = runner.rate(settings, plan.seconds)
            rates[settings].append(rate)
            of_copy[settings].append(rate / copy_rates[-1])
            advance(1)
    results = (LoaderResult(each, tuple(rates[each]), tuple(of_copy[each])) for each in plan.settings)
    return tuple(results), tuple(copy_rates)
