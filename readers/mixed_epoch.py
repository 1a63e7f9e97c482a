"""`MixedEpoch`: one pass through the rows of one side, with rows of the other side in each batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from readers.epoch import CHUNK, BatchRows, Epoch, Run
from readers.permutation import Numbers


@dataclass(frozen=True)
class MixedEpoch:
    """A pass through the rows of the side that ends it, for one rank, with `others` rows of the other side in a batch.

    The rows of the other side continue from pass to pass: when all of them were received, its next epoch begins, also
    in the middle of a batch. The ranks deal them out batch by batch.
    """

    ending: Epoch
    other: Epoch
    others: int
    position: int
    """The rows of the other side that all ranks had received before this pass, over all its epochs."""
    firsts: tuple[int, int]
    """The first row of the ending side and of the other, as indices in the split."""
    others_first: bool

    @property
    def count(self) -> int:
        """The number of rows of the ending side that this rank gets."""
        return self.ending.count

    def batch_count(self, size: int) -> int:
        """Return the number of batches that this rank gets, of `size` rows of both sides together."""
        return self.ending.batch_count(size - self.others)

    def batches(self, size: int) -> Iterator[BatchRows]:
        """Yield the batches of this rank. The last may have fewer rows of the ending side."""
        mine = size - self.others
        pairs = zip(self.ending.batches(mine), self._others_by_batch(mine), strict=True)
        for number, (batch, (others, runs)) in enumerate(pairs, 1):
            ending = batch.rows + self.firsts[0]
            run = Run(self.ending.seed, self.ending.number, len(ending))
            if self.others_first:
                yield BatchRows(np.concatenate([others, ending]), (*runs, run), self.after(number, size))
            else:
                yield BatchRows(np.concatenate([ending, others]), (run, *runs), self.after(number, size))

    def after(self, batches: int, size: int) -> tuple[int, int]:
        """Return how many rows of the ending side, and of the other over all its epochs, all ranks have received after
        this number of batches."""
        mine, last = size - self.others, batches - 1
        received = min(self.ending.rows, self.ending.start + batches * mine * self.ending.world_size)
        if not batches:
            return received, self.position
        ranks = last * self.ending.world_size + int(self._ranks(np.array([last]), mine)[0])
        return received, self.position + ranks * self.others

    def end(self, size: int) -> tuple[int, int]:
        """Return the same at the end of the pass, when all ranks have all their batches."""
        batches = replace(self, ending=replace(self.ending, rank=0)).batch_count(size)
        return self.ending.rows, self.after(batches, size)[1]

    def _ranks(self, batches: Numbers, mine: int) -> Numbers:
        """Return how many ranks have each of these batches: without padding, the last ranks may have one less."""
        everyone = np.full_like(batches, self.ending.world_size)
        if self.ending.end != "keep":
            return everyone
        rest = self.ending.rows - self.ending.start
        return np.minimum(everyone, rest - batches * mine * self.ending.world_size)

    def _others_by_batch(self, mine: int) -> Iterator[tuple[Numbers, list[Run]]]:
        """Yield this rank's rows of the other side for each batch."""
        count, computed = self.ending.batch_count(mine), max(1, CHUNK // self.others)
        for first in range(0, count, computed):
            batches = np.arange(first, min(first + computed, count), dtype=np.int64)
            begin = batches * self.ending.world_size * self.others + self.ending.rank
            steps = np.arange(self.others) * self._ranks(batches, mine)[:, None]
            yield from self._rows_at(begin[:, None] + steps)

    def _rows_at(self, positions: Numbers) -> Iterator[tuple[Numbers, list[Run]]]:
        """Yield each line of rows at these positions after `position`, and its runs of one epoch."""
        epoch, begun = divmod(self.position, self.other.rows)
        numbers, positions = np.divmod(positions + begun, self.other.rows)
        rows = np.empty_like(positions)
        for number in np.unique(numbers).tolist():
            inside = numbers == number
            rows[inside] = replace(self.other, number=epoch + number).at(positions[inside])
        for line, epochs in zip(rows + self.firsts[1], numbers, strict=True):
            lengths = zip(*(part.tolist() for part in np.unique(epochs, return_counts=True)), strict=True)
            yield line, [Run(self.other.seed, epoch + number, length) for number, length in lengths]
