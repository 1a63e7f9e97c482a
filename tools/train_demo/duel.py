"""A duel: the best number of workers for the raw files is found, then both train the same model, epoch by epoch."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from train_demo.contenders import Setting, pack, raw_files, same_batches
from train_demo.training import Epoch, Training

TRIALS = 2
"""Epochs that each number of workers is tried for; the faster one counts, as workers start in the first."""


@dataclass(frozen=True)
class Duel:
    """Epochs of both in turns; `tried` are seconds of an epoch of raw files, by the number of workers."""

    width: int
    weights: int
    tried: dict[int, float]
    raw: tuple[Epoch, ...]
    pack: tuple[Epoch, ...]

    @property
    def workers(self) -> int:
        """The number that was best for the raw files."""
        return fastest(self.tried)

    @property
    def difference(self) -> float:
        """The largest between the losses of a step; infinite where one is no number."""
        gaps = [abs(mine - theirs) for mine, theirs in zip(curve(self.raw), curve(self.pack), strict=True)]
        return max(math.inf if math.isnan(gap) else gap for gap in gaps)

    @property
    def gain(self) -> float:
        """How many times as fast the pack's epoch is."""
        return median_seconds(self.raw) / median_seconds(self.pack)


def fight(setting: Setting, width: int, epochs: int, workers: Sequence[int]) -> Duel:
    """Raw files, pack, raw files, pack; before that all batches are compared, and so have been read once."""
    tried = {number: _trial(setting, width, number) for number in workers}
    raw, packed = raw_files(setting, fastest(tried)), pack(setting)
    batches = same_batches([raw, packed])
    print(f"width {width}: the {batches} batches of an epoch are the same, bit for bit", file=sys.stderr, flush=True)
    before, after = Training(setting, width), Training(setting, width)
    pairs = [(before.epoch(raw, number), after.epoch(packed, number)) for number in range(epochs)]
    return Duel(width, before.weights, tried, tuple(one for one, _ in pairs), tuple(one for _, one in pairs))


def _trial(setting: Setting, width: int, workers: int) -> float:
    contender, training = raw_files(setting, workers), Training(setting, width)
    seconds = min(training.epoch(contender, number).seconds for number in range(TRIALS))
    print(f"width {width}: raw files, {workers} workers: {seconds:.2f} s an epoch", file=sys.stderr, flush=True)
    return seconds


def fastest(tried: dict[int, float]) -> int:
    """The number of workers whose epoch was the shortest."""
    return min(tried, key=lambda workers: tried[workers])


def curve(epochs: Sequence[Epoch]) -> list[float]:
    """The loss of every step."""
    return [loss for epoch in epochs for loss in epoch.losses]


def median_seconds(epochs: Sequence[Epoch]) -> float:
    """Of an epoch."""
    return statistics.median(epoch.seconds for epoch in epochs)
