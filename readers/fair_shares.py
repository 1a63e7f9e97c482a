"""`FairShares`: how many rows of each side a batch has, so that all batches together follow the stated ratio.

Each batch has the whole number below or above the share of a side, and so have the first n batches together, for every
n. That is a schedule of tasks on several processors: the row that a batch gives a side beyond its whole share is a time
slot of a task. The rule PD2 finds one whenever the shares add up to whole numbers (Anderson and Srinivasan, "Mixed
Pfair/ERfair scheduling of asynchronous periodic tasks", 2004).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from readers.permutation import Numbers


class FairShares:
    """The rows of each side in batches of `size` rows, by whole numbers as weights. They repeat after `period` batches.

    The shares are computed up to the last batch that was asked for, and kept: some bytes for each batch of a period.
    """

    def __init__(self, weights: Sequence[int], size: int) -> None:
        self.total = sum(weights)
        self.whole = [size * weight // self.total for weight in weights]
        """The rows of each side that every batch has."""
        self._rests = [size * weight % self.total for weight in weights]
        self._more = sum(self._rests) // self.total
        """The rows of a batch beyond the whole ones."""
        self.period = self.total // math.gcd(self.total, *self._rests)
        self._extra = np.zeros((0, len(weights)), np.uint8)
        self._sums: list[tuple[int, ...]] = [(0,) * len(weights)]
        self._lock = threading.Lock()  # a thread that fetches shards ahead computes the same batches

    def counts(self, first: int, stop: int) -> Numbers:
        """Return the rows of each side, a line for each batch from `first` up to `stop`."""
        batches = np.array([batch % self.period for batch in range(first, stop)], np.int64)
        self._compute(int(batches.max(initial=-1)) + 1)
        counts: Numbers = self._extra[batches].astype(np.int64) + self.whole
        return counts

    def before(self, batches: int) -> tuple[int, ...]:
        """Return the rows of each side in this number of batches from the first on."""
        periods, rest = divmod(batches, self.period)
        self._compute(rest)
        sums = zip(self.whole, self._rests, self._sums[rest], strict=True)
        return tuple(
            batches * whole + periods * (self.period * part // self.total) + extra for whole, part, extra in sums
        )

    def least(self, side: int, rows: int) -> int:
        """Return the least number of batches that have this number of rows of a side."""
        low, high = 0, rows * self.total // max(1, self.whole[side] * self.total + self._rests[side]) + 2
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.before(middle)[side] >= rows else (middle + 1, high)
        return low

    def _compute(self, batches: int) -> None:
        """Compute the shares of the first batches, twice as many as before at least."""
        if batches <= len(self._extra):
            return
        with self._lock:
            first, extra, sums = len(self._extra), [], list(self._sums[-1])
            for batch in range(first, min(self.period, max(batches, 2 * first))):
                chosen = self._chosen(batch, sums)
                for side in chosen:
                    sums[side] += 1
                extra.append([side in chosen for side in range(len(sums))])
                self._sums.append(tuple(sums))
            self._extra = np.concatenate([self._extra, np.array(extra, np.uint8).reshape(-1, len(sums))])

    def _chosen(self, batch: int, counts: Sequence[int]) -> list[int]:
        """Return the sides that a batch gives one row more, after these counts of each: the most urgent ones."""
        waiting = [
            (*self._urgency(rest, number), side)
            for side, (rest, number) in enumerate(zip(self._rests, counts, strict=True))
            if rest and number * self.total // rest <= batch
        ]
        return [side for *_, side in sorted(waiting)[: self._more]]

    def _urgency(self, rest: int, rows: int) -> tuple[int, bool, int]:
        """Return the deadline of the next row of a side, and what decides between equal deadlines: whether the row
        after it can wait for the next batch, and until when rows in a row may be late."""
        total = self.total
        deadline = -(-(rows + 1) * total // rest)
        is_apart = (rows + 1) * total % rest == 0
        if 2 * rest < total:
            return deadline, is_apart, 0
        skipped = -(-deadline * (total - rest) // total)
        return deadline, is_apart, skipped * total // -(total - rest)


@lru_cache(maxsize=64)
def fair_shares(weights: tuple[int, ...], size: int) -> FairShares:
    """Return the shares of batches of `size` rows; loaders of one ratio compute them once."""
    return FairShares(weights, size)
