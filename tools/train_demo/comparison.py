"""A comparison: find the best number of workers for raw files, then train the same model on both, epoch by epoch."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from train_demo.pipelines import Setup, pack, raw_files, same_batches
from train_demo.training import Epoch, Training

TRIALS = 2
"""Epochs of a trial of one number of workers. The faster one counts, because workers start in the first."""


@dataclass(frozen=True)
class Comparison:
    """The epochs of both, in turns. `tried` is the time of an epoch of raw files by number of workers."""

    width: int
    weights: int
    tried: dict[int, float]
    raw: tuple[Epoch, ...]
    pack: tuple[Epoch, ...]

    @property
    def workers(self) -> int:
        """The best number of workers for raw files."""
        return fastest(self.tried)

    @property
    def difference(self) -> float:
        """The largest difference between the losses of a step; infinite if one is NaN."""
        gaps = [abs(mine - theirs) for mine, theirs in zip(curve(self.raw), curve(self.pack), strict=True)]
        return max(math.inf if math.isnan(gap) else gap for gap in gaps)

    @property
    def gain(self) -> float:
        """The factor by which an epoch of the pack is faster."""
        return median_seconds(self.raw) / median_seconds(self.pack)


def compare(setup: Setup, width: int, epochs: int, workers: Sequence[int]) -> Comparison:
    """Compare all batches, which warms both pipelines, then train in turns: raw files, pack, raw files, pack."""
    tried = {number: _trial(setup, width, number) for number in workers}
    raw, packed = raw_files(setup, fastest(tried)), pack(setup)
    batches = same_batches([raw, packed])
    print(f"width {width}: the {batches} batches of an epoch are the same, bit for bit", file=sys.stderr, flush=True)
    before, after = Training(setup, width), Training(setup, width)
    turns = [(before.epoch(raw, number), after.epoch(packed, number)) for number in range(epochs)]
    raw_epochs, pack_epochs = zip(*turns, strict=True)
    return Comparison(width, before.weights, tried, raw_epochs, pack_epochs)


def _trial(setup: Setup, width: int, workers: int) -> float:
    pipeline, training = raw_files(setup, workers), Training(setup, width)
    seconds = min(training.epoch(pipeline, number).seconds for number in range(TRIALS))
    print(f"width {width}: raw files, {workers} workers: {seconds:.2f} s an epoch", file=sys.stderr, flush=True)
    return seconds


def fastest(tried: dict[int, float]) -> int:
    """Return the number of workers with the shortest epoch."""
    return min(tried, key=lambda workers: tried[workers])


def curve(epochs: Sequence[Epoch]) -> list[float]:
    """Return the loss of every step."""
    return [loss for epoch in epochs for loss in epoch.losses]


def median_seconds(epochs: Sequence[Epoch]) -> float:
    """Return the median time of an epoch."""
    return statistics.median(epoch.seconds for epoch in epochs)
