"""`Epoch`: one pass through the rows, computed for each rank and never stored; `Window`: a shuffle near the disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np

from readers.apart import NOTHING_OPEN, Apart, Opened
from readers.contract.errors import RequestError
from readers.permutation import Numbers, Permutation, Permutations, Words, keys_of

CHUNK = 1024
"""Rows that are computed at once: a quarter of a millisecond."""


@dataclass(frozen=True)
class Window:
    """The range of `shuffle="window"`: blocks of rows in random order, then rows within `blocks` blocks.

    Each row is as likely in one batch as in another, but neighbours meet more often than by chance: a batch is drawn
    from `block * blocks` rows, of `blocks` random positions in the data set.

    `apart`: each rank gets windows of its own, and reads the shards of these alone; else all ranks share each window.
    Then a batch of a rank is drawn from its window. Fewer windows than ranks are left at the end: all share them.
    """

    block: int = 64
    blocks: int = 32
    apart: bool = False

    def __post_init__(self) -> None:
        if min(self.block, self.blocks) < 1:
            raise RequestError(f"{self!r}: expected numbers from 1 on")

    def __repr__(self) -> str:
        """Return what states of orders are compared by: those that were saved before `apart` name two numbers."""
        return f"Window(block={self.block}, blocks={self.blocks}{', apart=True' if self.apart else ''})"

    @property
    def size(self) -> int:
        """The number of rows of a window."""
        return self.block * self.blocks


End = Literal["drop", "pad", "keep"]
"""The treatment of rows that do not fill a round of all ranks: they are left out, other rows are added, or some ranks
get one row more."""


class Run(NamedTuple):
    """At most `length` rows of a batch that follow each other in one epoch of one order."""

    seed: int
    epoch: int
    length: int


class BatchRows(NamedTuple):
    """The rows of a batch, as indices in the split."""

    rows: Numbers
    runs: Sequence[Run]
    consumed: tuple[int, ...]
    """For each order the number of rows that all ranks have received after this batch."""


@dataclass(frozen=True)
class Epoch:
    """A pass through the rows from `start` on, for one rank. It holds no list of rows."""

    rows: int
    seed: int
    number: int
    shuffle: bool | Window
    start: int
    rank: int
    world_size: int
    end: End
    opened: Opened = NOTHING_OPEN

    @property
    def count(self) -> int:
        """The number of rows that this rank gets."""
        rest = self.rows - self.start
        if self.end == "drop":
            return rest // self.world_size
        short = 0 if self.end == "pad" else self.rank
        return max(0, -(-(rest - short) // self.world_size))

    @property
    def padding(self) -> int:
        """The number of rows that come twice, over all ranks, so that all get the same number."""
        return max(0, self.count * self.world_size - (self.rows - self.start)) if self.end == "pad" else 0

    def take(self, first: int, stop: int) -> Numbers:
        """Return this rank's rows from its `first` up to `stop`."""
        steps = np.arange(first, min(stop, self.count), dtype=np.int64)
        return self.at((self.start + self.rank + steps * self.world_size) % self.rows)

    def chunks(self, size: int) -> Iterator[Numbers]:
        """Yield all rows of this rank, `size` at a time; the last may be fewer."""
        computed = max(1, CHUNK // size) * size
        for first in range(0, self.count, computed):
            rows = self.take(first, first + computed)
            for begin in range(0, len(rows), size):
                yield rows[begin : begin + size]

    def batch_count(self, size: int) -> int:
        """Return the number of batches of `size` rows that this rank gets."""
        return self.count // size if self.end == "drop" else -(-self.count // size)

    def batches(self, size: int) -> Iterator[BatchRows]:
        """Yield the batches of this rank."""
        runs, received = (Run(self.seed, self.number, size),), 0
        for rows in islice(self.chunks(size), self.batch_count(size)):
            received += len(rows)
            yield BatchRows(rows, runs, (self.consumed(received),))

    def at(self, positions: Numbers) -> Numbers:
        """Return the rows at these positions of the epoch's order, which is the same for all ranks. With windows apart
        it depends on the number of ranks."""
        if self.shuffle is False or not len(positions):
            return positions
        if self.shuffle is True:
            return Permutation(self.rows, self._keys("rows"))(positions)
        if self.shuffle.apart:
            positions = self.dealing(self.shuffle).positions(positions)
        return self._of_blocks(self._within_windows(positions, self.shuffle), self.shuffle.block)

    def dealing(self, window: Window) -> Apart:
        """Return which rank gets which window."""
        return Apart(self.rows, window.size, self.world_size, self.opened)

    def consumed(self, received: int) -> int:
        """Return how many rows all ranks have received when each has received `received`."""
        return min(self.rows, self.start + received * self.world_size)

    def _within_windows(self, positions: Numbers, window: Window) -> Numbers:
        numbers, mine = np.unique(positions // window.size, return_inverse=True)
        keys = np.array([self._keys("window", number) for number in numbers.tolist()])
        inside = positions % window.size
        whole, rest = divmod(self.rows, window.size)
        if numbers[-1] < whole:
            return positions - inside + Permutations(window.size, keys)(mine, inside)
        last, out = mine == len(numbers) - 1, np.empty_like(positions)
        out[last] = Permutation(rest, keys[-1])(inside[last])
        out[~last] = Permutations(window.size, keys)(mine[~last], inside[~last])
        return positions - inside + out

    def _of_blocks(self, positions: Numbers, block: int) -> Numbers:
        """Return the rows at these positions when whole blocks are shuffled. The rows that fill no block lie together
        between two blocks, or at either end."""
        blocks, rest = divmod(self.rows, block)
        if not blocks:
            return positions
        before = int(self._keys("rest")[0] % np.uint64(blocks + 1)) * block
        in_rest = (positions >= before) & (positions < before + rest)
        whole = np.where(positions >= before + rest, positions - rest, np.minimum(positions, blocks * block - 1))
        numbers, steps = np.divmod(whole, block)
        shuffled = Permutation(blocks, self._keys("blocks"))
        return np.where(in_rest, blocks * block + positions - before, shuffled(numbers) * block + steps)

    def _keys(self, *words: int | str) -> Words:
        return keys_of(self.seed, self.number, *words)
