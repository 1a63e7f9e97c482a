"""`MixedOrder`: batches of rows with and without a label in a stated ratio, for each of many ranks; resumed exactly."""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, Protocol

from readers.contract.errors import RequestError
from readers.epoch import Epoch, Window
from readers.mixed_epoch import MixedEpoch
from readers.order import Order, Shuffle
from readers.permutation import keys_of

Side = Literal["labelled", "unlabelled"]
SIDES: tuple[Side, Side] = ("labelled", "unlabelled")
Mix = Mapping[str, int]
"""The number of rows of each side in a batch."""


class PartlyLabelled(Protocol):
    """A data set that knows which of its rows have a label."""

    @property
    def labelled_rows(self) -> range: ...

    @property
    def unlabelled_rows(self) -> range: ...


class MixedOrder:
    """Batches of a data set's rows: with `mix={"labelled": 8, "unlabelled": 24}` first 8 with a label, then 24 without.
    Give it to a DataLoader as `batch_sampler`.

    Each side has an `Order` of its own. An epoch ends with the rows of the side `mix_end`: each comes once, by the
    rules of `Order` for ranks, `drop_last` and `pad`; if they do not fill the last batch, it has fewer of them. The
    other side continues from epoch to epoch, and begins its next epoch when it is used up.
    """

    def __init__(
        self,
        dataset: PartlyLabelled,
        mix: Mix,
        *,
        mix_end: Side = "labelled",
        shuffle: Shuffle = True,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        drop_last: bool = False,
        pad: bool | None = None,
    ) -> None:
        self.mix = _checked(mix, mix_end)
        if isinstance(shuffle, Window) and shuffle.apart:
            raise RequestError(
                f"mix= and shuffle={shuffle!r}: the rows of a batch come from two orders, so leave out apart="
            )
        self.mix_end = mix_end
        self.batch_size = sum(self.mix.values())
        self._rows = {"labelled": dataset.labelled_rows, "unlabelled": dataset.unlabelled_rows}
        for side, verb in (("labelled", "has"), ("unlabelled", "lacks")):
            if not self._rows[side]:
                raise RequestError(
                    f"mix= needs rows with and without a label, but no row here {verb} a label: open the data set "
                    "without labelled=, from a pack that was built with --missing keep"
                )
        options: dict[str, Any] = {"shuffle": shuffle, "rank": rank, "world_size": world_size, "drop_last": drop_last}
        # Not the same seed: with equally many rows, each row would meet the same row of the other side in every epoch.
        other_seed = int(keys_of(operator.index(seed), "unlabelled")[0]) >> 11
        self._orders = {
            "labelled": Order(len(self._rows["labelled"]), seed=seed, pad=pad, **options),
            "unlabelled": Order(len(self._rows["unlabelled"]), seed=other_seed, pad=pad, **options),
        }
        self._start = 0  # the rows of the other side that were received before the current pass

    @property
    def shuffle(self) -> bool | Window:
        return self._ending.shuffle

    @property
    def seed(self) -> int:
        return self._orders["labelled"].seed

    @property
    def rank(self) -> int:
        return self._ending.rank

    @property
    def world_size(self) -> int:
        return self._ending.world_size

    @property
    def epoch(self) -> int:
        """The epoch of the side that ends it."""
        return self._ending.epoch

    @property
    def consumed(self) -> int:
        """The number of rows of this side that all ranks have received."""
        return self._ending.consumed

    @property
    def padding(self) -> int:
        """The number of rows of this side that come twice in the current or else the coming pass, over all ranks."""
        return self._ending.padding

    def __len__(self) -> int:
        """Return the number of batches that this rank gets in a whole epoch."""
        return self.whole().batch_count(self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        return self._batches(self.begin())

    def set_epoch(self, epoch: int) -> None:
        """Set the next epoch. If it follows the last one, the other side continues, else it begins where it would be
        after this number of epochs. A resumed epoch goes on where it was."""
        if epoch == self.epoch + 1 and self._is_over:
            self._start = self._position
        elif epoch != self.epoch:
            self._start = operator.index(epoch) * replace(self.whole(), position=0).end(self.batch_size)[1]
        self._ending.set_epoch(epoch)
        self._position = self._start

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """Return the state of the order of each side: what all ranks have received.

        A DataLoader with workers asks for batches ahead of what it delivers: then pass how many `batches` of the pass
        were received.
        """
        if batches is None:
            return {side: order.state_dict() for side, order in self._orders.items()}
        other = copy.copy(self)
        other._orders = {side: copy.copy(order) for side, order in self._orders.items()}
        other.receive(self.coming().after(batches, self.batch_size))
        return other.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken, also with another number of ranks or another mix."""
        if set(state) != set(SIDES) or not all(isinstance(part, Mapping) for part in state.values()):
            raise RequestError(f"this is not the state of a mixed order: {dict(state)}")
        orders = {side: copy.copy(order) for side, order in self._orders.items()}
        for side, order in orders.items():
            try:
                order.load_state_dict(state[side])
            except RequestError as error:
                raise RequestError(f"{side} rows: {error}") from None
        self._orders = orders
        self._start = self._position

    def coming(self) -> MixedEpoch:
        """Return the current pass, or else the one that would begin now."""
        return self._pass(self._ending.coming())

    def whole(self) -> MixedEpoch:
        """Return the same pass from the first row of the ending side on."""
        return self._pass(self._ending.whole())

    def begin(self) -> MixedEpoch:
        """Begin a pass; the caller delivers its batches, and calls `receive` and `finish`."""
        if self._is_over:
            self._start = self._position
        ending = self._ending.begin()
        self._position = self._start
        return self._pass(ending)

    def receive(self, consumed: tuple[int, ...]) -> None:
        """Note how many rows of the ending side and of the other all ranks have received."""
        self._ending.consumed, self._position = consumed

    def finish(self) -> None:
        """Note that the pass has ended."""
        self.receive(self.coming().end(self.batch_size))

    @property
    def _ending(self) -> Order:
        return self._orders[self.mix_end]

    @property
    def _other(self) -> Order:
        return self._orders[_other_than(self.mix_end)]

    @property
    def _is_over(self) -> bool:
        return self._ending.consumed >= self._ending.rows

    @property
    def _position(self) -> int:
        """The rows of the other side that all ranks have received, over all its epochs."""
        return self._other.epoch * self._other.rows + self._other.consumed

    @_position.setter
    def _position(self, received: int) -> None:
        self._other.epoch, self._other.consumed = divmod(received, self._other.rows)

    def _pass(self, ending: Epoch) -> MixedEpoch:
        other = _other_than(self.mix_end)
        firsts = self._rows[self.mix_end].start, self._rows[other].start
        others_first = other == "labelled"
        return MixedEpoch(ending, self._other.coming(), self.mix[other], self._start, firsts, others_first)

    def _batches(self, epoch: MixedEpoch) -> Iterator[list[int]]:
        for batch in epoch.batches(self.batch_size):
            self.receive(batch.consumed)
            yield batch.rows.tolist()
        self.finish()


def _other_than(side: Side) -> Side:
    return "unlabelled" if side == "labelled" else "labelled"


def _checked(mix: Mix, mix_end: str) -> dict[str, int]:
    """Return the mix as whole numbers."""
    if mix_end not in SIDES:
        raise RequestError(f'mix_end={mix_end!r} is neither "labelled" nor "unlabelled"')
    expected = f'mix={mix!r}: expected the rows of each side in a batch, such as {{"labelled": 8, "unlabelled": 24}}'
    if not isinstance(mix, Mapping) or set(mix) != set(SIDES):
        raise RequestError(expected)
    try:
        numbers: dict[str, int] = {side: operator.index(mix[side]) for side in SIDES}
    except TypeError:
        raise RequestError(f"{expected}, as whole numbers") from None
    if min(numbers.values()) < 1:
        raise RequestError(f"{expected}, from 1 on; to read one side alone, open the data set with labelled=")
    return numbers
