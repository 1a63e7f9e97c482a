"""Run a benchmark: a first pass, then every setting in turn beside a copy loop."""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from packer.bench.copy_loop import CopyLoop
from packer.bench.loaders import Ground, LabelForm
from packer.bench.settings import LOADER, LeftOut, Load, Setting, Sweep, Trial, batches_for, candidates, threads_for
from readers.dataset import SegDataset
from readers.machine import Machine
from readers.pack import Pack

PLACES, NEIGHBOURS = 64, 8
"""Rows are looked at in so many places, each of which may mean to open a shard, and so many in each."""


def cached_share(pack: Pack, rows: range) -> float | None:
    """From 0 to 1; None where the kernel does not tell."""
    there = pages = 0
    for first in sorted(random.sample(rows, min(PLACES, len(rows)))):
        number, place = pack.table.locate(first)
        shard = pack.shard(number)
        neighbours = range(place, min(place + NEIGHBOURS, shard.facts.rows))
        for field in pack.manifest.fields:
            told = shard.resident(field, neighbours)
            if told is None:
                return None
            there, pages = there + told[0], pages + told[1]
    return there / pages if pages else None


FIRST_PASS, PACE = 0.2, 0.03
"""Parts of the time: for reading rows that may not be in memory yet, and for finding out how long a row takes."""
FIRST_BATCH = 4
"""Few, so that a slow disk and large pictures are soon known as such: what fits into memory is not known yet."""
REST = 0.1
"""The part that is kept for the end."""
MOST_WORKERS = 4
"""Worker processes where nothing else is said: each is a Python with PyTorch of its own."""


@dataclass(frozen=True)
class Question:
    """What is to be found out. What is empty is chosen by what the pack and the machine are."""

    out: Path
    split: str | None = None
    labels: LabelForm | None = None
    crop: tuple[int, int] | None = None
    batches: tuple[int, ...] = ()
    threads: tuple[int, ...] = ()
    workers: tuple[int, ...] = ()
    seconds: float = 30

    def settings(self, rows: int, cores: int, slots: bool) -> list[Setting]:
        """All that could be tried. Worker processes are only compared, unless they are asked for."""
        batches = self.batches or batches_for(rows)
        middle = batches[(len(batches) - 1) // 2 :][:1]
        workers = self.workers or (0, min(cores, MOST_WORKERS))
        return candidates(
            batches, self.threads or threads_for(cores), workers, batches if self.workers else middle, slots
        )


@dataclass(frozen=True)
class FirstPass:
    """Rows that were read as a training begins, and which part of the split was in memory before, if that is known."""

    rows: int
    seconds: float
    cached: float | None

    @property
    def rate(self) -> float:
        return self.rows / self.seconds


@dataclass(frozen=True)
class Answer:
    """What was found out. `bytes` are those of the split as it is stored, `copy` the copy loop's rate in each round."""

    question: Question
    dataset: SegDataset
    bytes: int
    machine: Machine
    first: FirstPass
    load: Load
    sweep: Sweep
    trials: tuple[Trial, ...]
    copy: tuple[float, ...]

    @property
    def larger_than_memory(self) -> bool:
        """Whether an epoch drives its own beginning out of the page cache."""
        return self.bytes > self.machine.memory

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return self.sweep.left_out


Advance = Callable[[int], None]
"""Called with the number of trials that were just run."""
Begin = Callable[[FirstPass, Sweep], Advance]
"""Told what is planned."""


def answer(question: Question, machine: Machine, begin: Begin) -> Answer:
    """Measure, in about as many seconds as the question says."""
    end = time.perf_counter() + (1 - REST) * question.seconds
    ground = Ground(question.out, question.split, question.labels, question.crop)
    settings = question.settings(len(ground.dataset), machine.cores, ground.slots)
    cached = cached_share(ground.pack, ground.pack_rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's, of more workers than cores and of forks: they are what is tried
        taken = ground.first_pass(FIRST_BATCH, min(machine.cores, MOST_WORKERS), FIRST_PASS * question.seconds)
        first = FirstPass(len(ground.rows), taken, cached)
        row_seconds = 1 / ground.rate(Setting(LOADER, FIRST_BATCH, 1), PACE * question.seconds)
        load = Load(len(ground.rows), ground.every, ground.row_bytes, row_seconds)
        sweep = Sweep.plan(settings, load, machine, end - time.perf_counter() - PACE * question.seconds)
        loop = ground.copy_loop(machine.cores, min(setting.batch for setting in settings))
        loop.rate(PACE * question.seconds)
        trials, copy = _run(sweep, ground, loop, end, begin(first, sweep))
    manifest = ground.dataset.manifest
    size = manifest.bytes * len(ground.dataset) // manifest.rows
    return Answer(question, ground.dataset, size, machine, first, load, sweep, trials, copy)


def _run(
    sweep: Sweep, ground: Ground, loop: CopyLoop, end: float, advance: Advance
) -> tuple[tuple[Trial, ...], tuple[float, ...]]:
    """All trials in rounds, every other one backwards; the first is run to its end, later ones while there is time."""
    rates: dict[Setting, list[float]] = {setting: [] for setting in sweep.settings}
    parts: dict[Setting, list[float]] = {setting: [] for setting in sweep.settings}
    copy: list[float] = []
    for number in range(sweep.rounds):
        turn = sweep.settings[:: -1 if number % 2 else 1]
        for setting in turn:
            if number and time.perf_counter() + sweep.seconds > end:
                break
            if len(copy) == number:
                copy.append(loop.rate(sweep.seconds))
                advance(1)
            rates[setting].append(ground.rate(setting, sweep.seconds))
            parts[setting].append(rates[setting][-1] / copy[-1])
            advance(1)
    return tuple(Trial(one, tuple(rates[one]), tuple(parts[one])) for one in sweep.settings), tuple(copy)
