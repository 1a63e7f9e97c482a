"""Read packs of the same rows in turns, with the same loader."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from packer.bench.loaders import TrialRunner
from packer.bench.request import MOST_WORKERS, BenchRequest
from packer.bench.settings import LOADER, LoaderSettings
from packer.progress import Progress, no_progress
from readers.contract.manifest import ALL
from readers.machine import Machine

ROUNDS = 5
BATCH = 16
READING = 60.0
"""The most seconds of the first pass over the rows of a pack: they are few."""


def loader_settings(request: BenchRequest, machine: Machine, rows: int) -> LoaderSettings:
    """Return the loader to read with: the last numbers that were asked for, or a usual one."""
    threads = request.threads or (min(machine.cores, MOST_WORKERS),)
    return LoaderSettings(LOADER, min(rows, (request.batches or (BATCH,))[-1]), threads[-1])


def read_in_turns(
    request: BenchRequest, packs: Sequence[Path], settings: LoaderSettings, progress: Progress = no_progress
) -> list[tuple[float, ...]]:
    """Return the samples per second of each pack in each round, of all rows and from memory."""
    runners = [TrialRunner(replace(request, out=pack, split=ALL)) for pack in packs]
    rates: list[list[float]] = [[] for _ in packs]
    seconds = request.seconds_left() / (ROUNDS * len(packs))
    with warnings.catch_warnings(), progress("reading", ROUNDS * len(packs), "trials") as advance:
        warnings.simplefilter("ignore")
        for runner in runners:
            runner.first_pass(settings.batch, settings.workers, READING)
        for number in range(ROUNDS):
            for each in range(len(packs))[:: -1 if number % 2 else 1]:
                rates[each].append(runners[each].rate(settings, seconds))
                advance(1)
    return [tuple(each) for each in rates]
