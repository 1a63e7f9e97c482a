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

    @classmethod
    def of(cls, settings: LoaderSettings, rates: Sequence[float], copy_rates: Sequence[float]) -> LoaderResult:
        """Return the result of a loader that took part in the first rounds, and perhaps not in the last."""
        return cls(settings, tuple(rates), tuple(rate / copy for rate, copy in zip(rates, copy_rates, strict=False)))

    @property
    def rate(self) -> float:
        """The median rate."""
        return statistics.median(self.rates)

    @property
    def low(self) -> float:
        """The lower quartile of the rates."""
        return statistics.quantiles(self.rates, method="inclusive")[0] if len(self.rates) > 1 else self.rate

    @property
    def ratio(self) -> float:
        """The median ratio to the copy loop's rate."""
        return statistics.median(self.of_copy)


def cheapest(results: Sequence[LoaderResult], target: float | None = None) -> LoaderResult:
    """Return the cheapest loader that reaches the target rate; without one, or if none does, the cheapest that is as
    fast as the best.

    A thread is cheaper than a worker process, then fewer are cheaper than more, then less memory than more.
    """
    enough = [result for result in results if target is not None and result.rate >= target]
    enough = enough or [result for result in results if result.rate >= fast_from(results)]
    return min(enough, key=lambda result: _cost(result.settings))


def fast_from(results: Sequence[LoaderResult]) -> float:
    """Return the rate from which a loader counts as fast as the best: 5 % below it, or the lower quartile of its rounds
    if these differ by more. A smaller difference is noise, which does not justify a dearer loader."""
    best = max(results, key=lambda result: result.rate)
    return min(NEAR * best.rate, best.low)


def by_batch(results: Sequence[LoaderResult], target: float | None = None) -> dict[int, LoaderResult]:
    """Return the cheapest loader at each batch size."""
    sizes = sorted({result.settings.batch for result in results})
    return {size: cheapest([result for result in results if result.settings.batch == size], target) for size in sizes}


def _cost(settings: LoaderSettings) -> tuple[int, int, int]:
    return KINDS.index(settings.kind), settings.workers, settings.batches * settings.batch
