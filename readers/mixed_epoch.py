"""`MixedEpoch`: one pass through the rows of one side, with rows of other sides in each batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import add
from typing import NamedTuple

import numpy as np

from readers.epoch import CHUNK, BatchRows, Epoch, Run
from readers.fair_shares import fair_shares
from readers.permutation import Numbers


class RowsOfSide(NamedTuple):
    """The rows of one side in a batch, and their runs of one epoch."""

    rows: Numbers
    runs: list[Run]


@dataclass(frozen=True)
class MixedEpoch:
    """A pass through the rows of the side that ends it, for one rank. Each batch has rows of every side, by weights.

    The rows of the other sides continue from pass to pass: when all rows of a side were received, its next epoch
    begins, also in the middle of a batch. The batches are numbered over all ranks. The ranks deal out the rows of a
    round, a batch for each of them, one by one.
    """

    sides: tuple[Epoch, ...]
    ending: int
    """The number of the side that ends the pass."""
    weights: tuple[int, ...]
    positions: tuple[int, ...]
    """The rows of each side that all ranks had received before this pass, over all epochs of the side."""
    firsts: tuple[int, ...]
    """The first row of each side, as an index in the data set."""
    begun: int = 0
    """The batches of all ranks since the epoch of the ending side began, before this pass."""

    def batch_count(self, size: int) -> int:
        """Return the number of batches that this rank gets, of `size` rows of all sides together."""
        rounds = self.rounds(size)
        return rounds - (rounds > 0 and not self._is_in(rounds - 1, size))

    def rounds(self, size: int) -> int:
        """Return the number of rounds in which each rank, or in the last one some of them, get a batch."""
        return _rounds(self, size)

    def batches(self, size: int) -> Iterator[BatchRows]:
        """Yield the batches of this rank. The last may have fewer rows of the ending side."""
        count, computed = self.batch_count(size), max(1, CHUNK // size)
        for first in range(0, count, computed):
            numbers = range(first, min(first + computed, count))
            counts = [self._counts(number, size) for number in numbers]
            sides = [self._rows_of(side, first, counts, size) for side in range(len(self.sides))]
            for number, parts in zip(numbers, zip(*sides, strict=True), strict=True):
                rows = np.concatenate([part.rows for part in parts])
                yield BatchRows(rows, tuple(run for part in parts for run in part.runs), self.after(number + 1, size))

    def after(self, batches: int, size: int) -> tuple[int, ...]:
        """Return how many rows of each side, over all its epochs, all ranks have received after this number of batches.
        The last number is the batches of all ranks in the epoch."""
        whole = min(batches, max(0, self.rounds(size) - 1))
        dealt = self.dealt_before(whole, size)
        if whole < batches:
            dealt = _sums(dealt, self._counts(whole, size).sum(0).tolist())
        received = list(_sums(self.positions, dealt))
        received[self.ending] = self.positions[self.ending] + min(dealt[self.ending], self.rest)
        return (*received, self.begun + batches * self._ranks)

    def end(self, size: int) -> tuple[int, ...]:
        """Return the same at the end of the pass, when all ranks have all their batches."""
        received = list(self.after(self.rounds(size), size))
        received[self.ending] = self.positions[self.ending] + self.rest
        return tuple(received)

    def padding(self, size: int) -> int:
        """Return the number of rows of the ending side that come twice, over all ranks."""
        rounds = self.rounds(size)
        if self._pass.end != "pad" or not rounds:
            return 0
        dealt = self.dealt_before(rounds - 1, size)[self.ending] + self._counts(rounds - 1, size)[:, self.ending].sum()
        return int(dealt) - self.rest

    @property
    def _pass(self) -> Epoch:
        return self.sides[self.ending]

    @property
    def _ranks(self) -> int:
        return self._pass.world_size

    @property
    def rest(self) -> int:
        """The rows of the ending side that are left."""
        return self._pass.rows - self._pass.start

    def dealt_before(self, rounds: int, size: int) -> tuple[int, ...]:
        """Return the rows of each side in this number of rounds, if all of them are whole."""
        shares = fair_shares(self.weights, size)
        before = zip(shares.before(self.begun), shares.before(self.begun + rounds * self._ranks), strict=True)
        return tuple(rows - earlier for earlier, rows in before)

    def _counts(self, number: int, size: int) -> Numbers:
        """Return the rows that each rank gets of each side in a round: fewer of the ending side in the last one."""
        first = self.begun + number * self._ranks
        counts = fair_shares(self.weights, size).counts(first, first + self._ranks)
        left = self.rest - self.dealt_before(number, size)[self.ending]
        if counts[:, self.ending].sum() <= left:
            return counts
        ending = _limited(counts[:, self.ending], left, self._pass.end == "pad")
        counts[:, self.ending] = ending
        if self._pass.end == "keep":
            counts[ending == 0] = 0  # a rank without a row of this side has no batch
        return counts

    def _is_in(self, number: int, size: int) -> bool:
        """Return whether this rank has a batch in a round."""
        return bool(self._counts(number, size)[self._pass.rank].any())

    def _rows_of(self, side: int, first: int, counts: list[Numbers], size: int) -> list[RowsOfSide]:
        """Return this rank's rows of a side for each of these rounds, from the round `first` on."""
        position, parts = 0, []
        for ranks in counts:
            parts.append(position + dealt_to(self._pass.rank, ranks[:, side]))
            position += int(ranks[:, side].sum())
        epoch, start = self.sides[side], self.positions[side] + self.dealt_before(first, size)[side]
        number, begun = divmod(start, epoch.rows)
        numbers, positions = np.divmod(np.concatenate(parts) + begun, epoch.rows)
        if side == self.ending:
            numbers[...] = 0  # rows that come twice are rows of the epoch's beginning
        rows = np.empty_like(positions)
        for later in np.unique(numbers).tolist():
            inside = numbers == later
            rows[inside] = replace(epoch, number=number + later).at(positions[inside])
        ends = np.cumsum([len(part) for part in parts])[:-1]
        lines = zip(np.split(rows + self.firsts[side], ends), np.split(numbers + number, ends), strict=True)
        return [RowsOfSide(line, _runs(epoch.seed, epochs)) for line, epochs in lines]


@lru_cache(maxsize=16)
def _rounds(epoch: MixedEpoch, size: int) -> int:
    """Return the rounds of a pass; cached, because each batch asks for them."""
    if not epoch.rest:
        return 0
    shares, side, ending = fair_shares(epoch.weights, size), epoch.ending, epoch.sides[epoch.ending]
    needed = shares.before(epoch.begun)[side] + epoch.rest
    rounds = -(-(shares.least(side, needed) - epoch.begun) // ending.world_size)
    is_short = epoch.dealt_before(rounds, size)[side] > epoch.rest
    return rounds - (ending.end == "drop" and is_short)


def dealt_to(rank: int, counts: Numbers) -> Numbers:
    """Return the positions that a rank gets if ranks take them one by one in turns, each until it has its count."""
    steps: Numbers = np.arange(counts[rank])
    if len(counts) == 1:
        return steps
    turns: Numbers = np.minimum(counts[:, None], steps).sum(0) + (counts[:rank, None] > steps).sum(0)
    return turns


def _limited(counts: Numbers, rows: int, pad: bool) -> Numbers:
    """Return how many of these rows each rank gets, in turns. With `pad`, all ranks take the last turn that begins."""
    turns = 0
    while np.minimum(counts, turns).sum() < rows:
        turns += 1
    full = np.minimum(counts, turns)
    if pad:
        return full
    return np.array([int((dealt_to(rank, full) < rows).sum()) for rank in range(len(counts))])


def _runs(seed: int, epochs: Numbers) -> list[Run]:
    """Return the runs of rows that are in these epochs, which follow each other."""
    if len(epochs) and epochs[0] == epochs[-1]:
        return [Run(seed, int(epochs[0]), len(epochs))]
    numbers, lengths = np.unique(epochs, return_counts=True)
    return [Run(seed, number, length) for number, length in zip(numbers.tolist(), lengths.tolist(), strict=True)]


def _sums(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(add, first, second))
