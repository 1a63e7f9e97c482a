"""`Order`: which row comes when, for each rank of many; a sampler that is computed, and that can be resumed exactly."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sized
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from readers.contract.errors import RequestError
from readers.permutation import MOST_ROWS, Numbers, Permutation, Words, keys_of

CHUNK = 1024
"""So many rows are computed at once: a quarter of a millisecond."""


@dataclass(frozen=True)
class Window:
    """How far `shuffle="window"` shuffles: blocks of rows in random order, then rows within so many blocks.

    Each row is as likely in one batch as in another, but neighbours meet more often than by chance: a batch is drawn
    from `block * blocks` rows, of `blocks` random places of the data set.
    """

    block: int = 64
    blocks: int = 32

    def __post_init__(self) -> None:
        if min(self.block, self.blocks) < 1:
            raise RequestError(f"{self!r}: expected numbers from 1 on")


Shuffle = bool | Literal["window"] | Window
End = Literal["drop", "pad", "keep"]
"""What becomes of the rows that do not fill a round of all ranks: left out, filled up with others, or given to some."""


@dataclass(frozen=True)
class Epoch:
    """A pass through the rows from `start` on, as one rank sees it. It holds no list of rows."""

    rows: int
    seed: int
    number: int
    shuffle: bool | Window
    start: int
    rank: int
    world_size: int
    end: End

    @property
    def count(self) -> int:
        """How many rows this rank gets."""
        rest = self.rows - self.start
        if self.end == "drop":
            return rest // self.world_size
        short = 0 if self.end == "pad" else self.rank
        return max(0, -(-(rest - short) // self.world_size))

    @property
    def padding(self) -> int:
        """How many rows come twice, all ranks together, so that all get the same number."""
        return max(0, self.count * self.world_size - (self.rows - self.start)) if self.end == "pad" else 0

    def take(self, first: int, stop: int) -> Numbers:
        """This rank's rows from its `first` up to `stop`."""
        places = np.arange(first, min(stop, self.count), dtype=np.int64)
        return self.at((self.start + self.rank + places * self.world_size) % self.rows)

    def chunks(self, size: int) -> Iterator[Numbers]:
        """All rows of this rank, `size` at a time; the last may be fewer."""
        many = max(1, CHUNK // size) * size
        for first in range(0, self.count, many):
            rows = self.take(first, first + many)
            for begin in range(0, len(rows), size):
                yield rows[begin : begin + size]

    def at(self, positions: Numbers) -> Numbers:
        """The rows at these positions of the epoch's order, which is the same for all ranks."""
        if self.shuffle is False or not len(positions):
            return positions
        if self.shuffle is True:
            return Permutation(self.rows, self._keys("rows"))(positions)
        return self._of_blocks(self._within_windows(positions, self.shuffle), self.shuffle.block)

    def consumed(self, received: int) -> int:
        """How many rows all ranks have received when each has received so many."""
        return min(self.rows, self.start + received * self.world_size)

    def _within_windows(self, positions: Numbers, window: Window) -> Numbers:
        size = window.block * window.blocks
        out = np.empty_like(positions)
        numbers = positions // size
        for number in np.unique(numbers).tolist():
            mine, first = numbers == number, number * size
            inside = Permutation(min(size, self.rows - first), self._keys("window", number))
            out[mine] = first + inside(positions[mine] - first)
        return out

    def _of_blocks(self, positions: Numbers, block: int) -> Numbers:
        """The rows at these positions when whole blocks are shuffled; the rest of the rows lies between any two."""
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


class Order:
    """The order of `rows` rows (a number, or a data set), epoch by epoch; give it to a DataLoader as `sampler`.

    `shuffle`: True, False, "window", or a `Window`. All ranks follow one global order, which depends on seed and epoch
    alone. Ranks get equal numbers of rows: the rest is left out with `drop_last`, or filled up with rows from the
    epoch's beginning with `pad` (`padding` tells how many), which is the default where rows are shuffled. With neither,
    as for evaluation, each row comes once and ranks may differ by one.

    A pass received to its end is followed by the next epoch; `set_epoch` says which. A pass that was left early starts
    again.
    """

    def __init__(
        self,
        rows: int | Sized,
        *,
        shuffle: Shuffle = True,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        drop_last: bool = False,
        pad: bool | None = None,
    ) -> None:
        self.rows = rows if isinstance(rows, int) else len(rows)
        self.shuffle: bool | Window = Window() if shuffle == "window" else _shuffle(shuffle)
        self.seed = operator.index(seed)
        self.rank, self.world_size = rank, world_size
        self.end: End = _end(drop_last, bool(self.shuffle) if pad is None else pad)
        self.epoch = 0
        self.consumed = self._start = 0
        self._resumed = self._told = False
        if not 0 <= self.rows <= MOST_ROWS:
            raise RequestError(f"an order of {self.rows} rows: expected 0 to 2**62")
        if not 0 <= rank < world_size:
            raise RequestError(f"rank={rank} of world_size={world_size}: expected 0 to {world_size - 1}")

    def __len__(self) -> int:
        """How many rows this rank gets in a whole epoch; a pass that was resumed brings the rest of one."""
        return self.whole().count

    @property
    def padding(self) -> int:
        """How many rows come twice in the pass that is under way, or else in the coming one, all ranks together: at
        most one for each rank, its last.
        """
        return self.coming().padding

    def __iter__(self) -> Iterator[int]:
        return self._rows(self.begin())

    def set_epoch(self, epoch: int) -> None:
        """Which epoch comes next. One that was resumed goes on where it was."""
        if not (self._resumed and epoch == self.epoch):
            self.consumed = self._start = 0
            self._resumed = False
        self.epoch = operator.index(epoch)
        self._told = True

    def state_dict(self, consumed: int | None = None) -> dict[str, Any]:
        """Seed, epoch, and how many rows all ranks have received.

        A DataLoader with workers asks for rows ahead of what it delivers: then say how many were `consumed`.
        """
        return {
            "rows": self.rows,
            "shuffle": repr(self.shuffle),
            "seed": self.seed,
            "epoch": self.epoch,
            "consumed": self.consumed if consumed is None else min(consumed, self.rows),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken; the number of ranks may be another one."""
        expected = set(self.state_dict())
        if set(state) != expected or not all(isinstance(state[name], int) for name in expected - {"shuffle"}):
            raise RequestError(f"this is no state of an order: {dict(state)}")
        wrong = [
            f"{name} is {mine} here and was {state[name]}"
            for name, mine in (("rows", self.rows), ("shuffle", repr(self.shuffle)))
            if state[name] != mine
        ]
        if wrong or not 0 <= state["consumed"] <= self.rows:
            raise RequestError(
                "the state is of another order: " + ("; ".join(wrong) or f"consumed {state['consumed']}")
            )
        self.seed, self.epoch, self.consumed = state["seed"], state["epoch"], state["consumed"]
        self._start = self.consumed
        self._resumed, self._told = True, False

    def coming(self) -> Epoch:
        """The pass that is under way, or else would begin now."""
        return Epoch(self.rows, self.seed, self.epoch, self.shuffle, self._start, self.rank, self.world_size, self.end)

    def whole(self) -> Epoch:
        """The same from its first row on."""
        return replace(self.coming(), start=0)

    def begin(self) -> Epoch:
        """Begin a pass; who delivers its rows keeps `consumed` up to date."""
        if not self._resumed:
            self._start = 0
        if self.rows and self.consumed >= self.rows and not self._told:
            self.epoch += 1
            self._start = 0
        self.consumed = self._start
        self._resumed = self._told = False
        return self.coming()

    def _rows(self, epoch: Epoch) -> Iterator[int]:
        received = 0
        for rows in epoch.chunks(CHUNK):
            for row in rows.tolist():
                received += 1
                self.consumed = epoch.consumed(received)
                yield row
        self.consumed = self.rows  # whatever was left out is over as well


def _shuffle(shuffle: object) -> bool | Window:
    if isinstance(shuffle, (bool, Window)):
        return shuffle
    raise RequestError(f'shuffle={shuffle!r}: expected True, False, "window" or a Window')


def _end(drop_last: bool, pad: bool) -> End:
    if drop_last:
        return "drop"
    return "pad" if pad else "keep"
