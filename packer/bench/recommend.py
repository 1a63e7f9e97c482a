"""Recommend the cheapest loader that is fast enough."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from packer.bench.settings import KINDS, LoaderSettings

NEAR = 0.95
"""The part of the best rate that counts as equally fast."""


@dataclass(frozen=True)
class LoaderResult:
    """The samples per second of a loader in each round, and their ratios to the copy loop's rate in the same round."""

    settings: LoaderSettings
    rates: tuple[float, ...]
    of_copy: tuple[float, ...]

    @property
    def rate(self) -> float:
        """The median rate."""
        return statistics.median(self.rates)

    @property
    def ratio(self) -> float:
        """The median ratio to the copy loop's rate."""
        return statistics.median(self.of_copy)


def cheapest(results: Sequence[LoaderResult], target: float | None = None) -> LoaderResult:
    """Return the cheapest loader that reaches the target rate; without one, or if none does, the cheapest within 5 % of
    the best rate.

    A thread is cheaper than a worker process, then fewer are cheaper than more, then less memory than more.
    """
    best = max(result.rate for result in results)
    enough = [result for result in results if target is not None and result.rate >= target]
    enough = enough or [result for result in results if result.rate >= NEAR * best]
    return min(enough, key=lambda result: _cost(result.settings))


def by_batch(results: Sequence[LoaderResult], target: float | None = None) -> dict[int, LoaderResult]:
    """Return the cheapest loader at each batch size."""
    sizes = sorted({result.settings.batch for result in results})
    return {size: cheapest([each for each in results if each.settings.batch == size], target) for size in sizes}


def _cost(settings: LoaderSettings) -> tuple[int, int, int]:
    return KINDS.index(settings.kind), settings.workers, settings.batches * settings.batch
