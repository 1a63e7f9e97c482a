"""`Order`: the order of rows for each of many ranks; a sampler that is computed, and that can be resumed exactly."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sized
from dataclasses import replace
from typing import Any, Literal, Protocol, runtime_checkable

from readers.apart import NOTHING_OPEN, Opened
from readers.contract.errors import RequestError
from readers.epoch import CHUNK, End, Epoch, Run, Window
from readers.permutation import MOST_ROWS
from readers.row_weights import RowWeights, Weights

Shuffle = bool | Literal["window"] | Window


@runtime_checkable
class Weighable(Protocol):
    """A data set that weighs its rows by their classes."""

    def row_weights(self, weights: Weights) -> RowWeights: ...


class Order:
    """The order of `rows` rows (a number, or a data set), epoch by epoch; give it to a DataLoader as `sampler`.

    `shuffle`: True, False, "window", or a `Window`. All ranks follow one global order, which depends on seed and epoch
    alone, and with `Window(apart=True)` also on their number. Ranks get equal numbers of rows: the rest is left out
    with `drop_last`, or filled up with rows from the epoch's beginning with `pad` (`padding` is their number), the
    default where rows are shuffled. With neither, as for evaluation, each row comes once and ranks may differ by one.

    `weights="repeat-factor"` or `"class-uniform"`, of a data set: rows with rare classes come more often. An epoch has
    as many rows as before; each comes as often as its weight says, rounded up or down. See `RowWeights`.

    A pass received to its end is followed by the next epoch, or by the one that `set_epoch` sets. A pass that was left
    early starts again.
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
        weights: Weights | None = None,
    ) -> None:
        self.weights = None if weights is None else _weights(rows, weights)
        self.rows = rows if isinstance(rows, int) else len(rows)
        self.shuffle: bool | Window = Window() if shuffle == "window" else _shuffle(shuffle)
        self.seed = operator.index(seed)
        self.rank, self.world_size = rank, world_size
        self.end: End = _end(drop_last, bool(self.shuffle) if pad is None else pad)
        self.epoch = 0
        self.consumed = self._start = 0
        self._opened = NOTHING_OPEN
        self._resumed = self._epoch_set = False
        if not 0 <= self.rows <= MOST_ROWS:
            raise RequestError(f"an order of {self.rows} rows: expected 0 to 2**62")
        if not 0 <= rank < world_size:
            raise RequestError(f"rank={rank} of world_size={world_size}: expected 0 to {world_size - 1}")

    def __len__(self) -> int:
        """Return the number of rows that this rank gets in a whole epoch; a resumed pass has the rest of one."""
        return self.whole().count

    def __repr__(self) -> str:
        weights = "" if self.weights is None else f", weights={self.weights.name}"
        rank = f", rank {self.rank} of {self.world_size}" if self.world_size > 1 else ""
        return (
            f"Order({self.rows:,} rows, shuffle={self.shuffle!r}, seed={self.seed}{weights}, epoch {self.epoch}{rank})"
        )

    @property
    def padding(self) -> int:
        """The number of rows that come twice in the current or else the coming pass, over all ranks: at most one for
        each rank, its last."""
        return self.coming().padding

    def __iter__(self) -> Iterator[int]:
        return self._rows(self.begin())

    def set_epoch(self, epoch: int) -> None:
        """Set the next epoch. A resumed epoch goes on where it was."""
        if not (self._resumed and epoch == self.epoch):
            self.consumed = self._start = 0
            self._opened = NOTHING_OPEN
            self._resumed = False
        self.epoch = operator.index(epoch)
        self._epoch_set = True

    def state_dict(self, consumed: int | None = None) -> dict[str, Any]:
        """Return seed, epoch, and how many rows all ranks have received. With windows apart, also the first window that
        is open, and how many are.

        A DataLoader with workers asks for rows ahead of what it delivers: then pass how many were `consumed`.
        """
        received = self.consumed if consumed is None else min(consumed, self.rows)
        state = {
            "rows": self.rows,
            "shuffle": repr(self.shuffle),
            "seed": self.seed,
            "epoch": self.epoch,
            "consumed": received,
        }
        if self.weights is not None:
            state["weights"] = self.weights.name
        if self._apart is None:
            return state
        first, windows = self.coming().dealing(self._apart).open_after(received)
        return {**state, "first_open": first, "open": windows}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken, also with another number of ranks."""
        wrong = [
            f"{name} is {mine} here and was {state[name]}"
            for name, mine in (("rows", self.rows), ("shuffle", repr(self.shuffle)))
            if state.get(name, mine) != mine
        ]
        mine = None if self.weights is None else self.weights.name
        if state.get("weights") != mine:
            wrong.append(f"weights is {mine} here and was {state.get('weights')}")
        if wrong:
            same = f"; pass shuffle={state['shuffle']} to go on" if state.get("rows") == self.rows else ""
            raise RequestError(f"the state is of another order: {'; '.join(wrong)}{same}")
        expected = set(self.state_dict())
        if set(state) != expected or not all(
            isinstance(state[name], int) for name in expected - {"shuffle", "weights"}
        ):
            raise RequestError(f"this is not the state of an order: {dict(state)}")
        if not 0 <= state["consumed"] <= self.rows:
            raise RequestError(f"the state is of another order: consumed {state['consumed']}")
        self._opened = NOTHING_OPEN if self._apart is None else self._open_in(state, self._apart)
        self.seed, self.epoch, self.consumed = state["seed"], state["epoch"], state["consumed"]
        self._start = self.consumed
        self._resumed, self._epoch_set = True, False

    def coming(self) -> Epoch:
        """Return the current pass, or else the one that would begin now."""
        ranks = self.rank, self.world_size
        return Epoch(self.rows, self.seed, self.epoch, self.shuffle, self._start, *ranks, self.end, self._opened)

    def whole(self) -> Epoch:
        """Return the same pass from its first row on."""
        return replace(self.coming(), start=0)

    def begin(self) -> Epoch:
        """Begin a pass; the caller delivers its rows and keeps `consumed` up to date."""
        is_over = bool(self.rows) and self.consumed >= self.rows and not self._epoch_set
        if is_over or not self._resumed:
            self._start, self._opened = 0, NOTHING_OPEN
        self.epoch += is_over
        self.consumed = self._start
        self._resumed = self._epoch_set = False
        return self.coming()

    def receive(self, consumed: tuple[int, ...]) -> None:
        """Note how many rows all ranks have received."""
        (self.consumed,) = consumed

    def finish(self) -> None:
        """Note that the pass has ended: the rows that were left out are over as well."""
        self.consumed = self.rows

    @property
    def _apart(self) -> Window | None:
        return self.shuffle if isinstance(self.shuffle, Window) and self.shuffle.apart else None

    def _open_in(self, state: Mapping[str, Any], window: Window) -> Opened:
        """Return the windows that a state leaves open. They must hold the row that comes next."""
        first, windows = opened = Opened(state["first_open"], state["open"])
        begun, size = state["consumed"] - first * window.size, window.size
        if windows > 1 and (first + windows) * size > self.rows:
            windows = 0  # only whole windows have rounds
        if first < 0 or not 0 <= begun < max(0, windows) * size:
            raise RequestError(f"the state is of another order: {opened} after {state['consumed']} rows")
        return opened if begun else Opened(first, 0)

    def _rows(self, epoch: Epoch) -> Iterator[int]:
        received = 0
        for rows in epoch.chunks(CHUNK):
            if self.weights is not None:
                rows = self.weights.rows(rows, [Run(epoch.seed, epoch.number, len(rows))])
            for row in rows.tolist():
                received += 1
                self.consumed = epoch.consumed(received)
                yield row
        self.finish()


def _weights(rows: object, weights: Weights) -> RowWeights:
    if isinstance(rows, Weighable):
        return rows.row_weights(weights)
    raise RequestError(f"weights={weights!r}: needs a data set, whose rows have classes: Order(dataset, weights=…)")


def _shuffle(shuffle: object) -> bool | Window:
    if isinstance(shuffle, (bool, Window)):
        return shuffle
    raise RequestError(f'shuffle={shuffle!r}: expected True, False, "window" or a Window')


def _end(drop_last: bool, pad: bool) -> End:
    if drop_last:
        return "drop"
    return "pad" if pad else "keep"
