"""`SidedOrder`: batches of rows of several sides in a stated ratio, for each of many ranks; resumed exactly."""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from readers.contract.errors import RequestError
from readers.epoch import End, Epoch, Window
from readers.mixed_epoch import MixedEpoch
from readers.order import Order
from readers.permutation import keys_of


def seeds_of(sides: Sequence[str], seed: int) -> list[int]:
    """Return a seed for each side. With one seed for all and equally many rows, each row would meet the same row of
    another side in every epoch."""
    seed = operator.index(seed)
    return [seed, *(int(keys_of(seed, side)[0]) >> 11 for side in sides[1:])]


class SidedOrder:
    """Batches of rows of several sides, which each have an `Order`; the rows of the first side come first.

    An epoch ends with the rows of the side `ending`: each comes once, by the rules of `Order` for ranks, `drop_last`
    and `pad`. If they do not fill the last batch, it has fewer of them. The other sides continue from epoch to epoch,
    and begin their next epoch when they are used up.
    """

    def __init__(
        self, orders: Mapping[str, Order], firsts: Sequence[int], weights: Sequence[int], ending: str, batch_size: int
    ) -> None:
        """`firsts`: the first row of each side, as an index in the data set."""
        self.batch_size = batch_size
        self._orders, self._sides = dict(orders), tuple(orders)
        self._firsts, self._weights = tuple(firsts), tuple(weights)
        self._end = self._sides.index(ending)
        self._starts = (0,) * len(self._sides)
        """The rows of each other side that were received before the current pass."""
        self._begun = self._batches = 0
        """The batches of all ranks in this epoch: before the current pass, and until now."""
        self._resumed = False

    @property
    def shuffle(self) -> bool | Window:
        return self._ending.shuffle

    @property
    def seed(self) -> int:
        return self._orders[self._sides[0]].seed

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
    def end(self) -> End:
        """The treatment of rows of this side that do not fill a round of all ranks."""
        return self._ending.end

    @property
    def padding(self) -> int:
        """The number of rows of this side that come twice in the current or else the coming pass, over all ranks."""
        return self.coming().padding(self.batch_size)

    def __len__(self) -> int:
        """Return the number of batches that this rank gets in a whole epoch."""
        return self.whole().batch_count(self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        return self._lists(self.begin())

    def set_epoch(self, epoch: int) -> None:
        """Set the next epoch. If it follows the last one, the other sides continue, else they begin where they would be
        after this number of epochs. A resumed epoch goes on where it was."""
        if epoch == self.epoch + 1 and self._is_over:
            self._starts = self._positions
        elif epoch != self.epoch:
            self._starts = self._after_epochs(operator.index(epoch))
        if not (self._resumed and epoch == self.epoch):
            self._begun, self._resumed = 0, False
        self._ending.set_epoch(epoch)
        self._go_to(self._starts, self._begun)

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """Return the state of the order of each side: what all ranks have received.

        A DataLoader with workers asks for batches ahead of what it delivers: then pass how many `batches` of the pass
        were received.
        """
        if batches is None:
            return self._state()
        other = copy.copy(self)
        other._orders = {side: copy.copy(order) for side, order in self._orders.items()}
        other.receive(self.coming().after(batches, self.batch_size))
        return other._state()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken, also with another number of ranks or another mix."""
        states, batches = self._parts_of(state)
        if set(states) != set(self._sides) or not all(isinstance(part, Mapping) for part in states.values()):
            raise RequestError(f"this is not the state of a mixed order of {', '.join(self._sides)}: {dict(state)}")
        orders = {side: copy.copy(order) for side, order in self._orders.items()}
        for side, order in orders.items():
            try:
                order.load_state_dict(states[side])
            except RequestError as error:
                raise RequestError(f"{side} rows: {error}") from None
        self._orders = orders
        self._starts, self._begun, self._batches, self._resumed = self._positions, batches, batches, True

    def coming(self) -> MixedEpoch:
        """Return the current pass, or else the one that would begin now."""
        return self._pass(self._ending.coming(), self._begun)

    def whole(self) -> MixedEpoch:
        """Return the same pass from the first row of the ending side on."""
        return self._pass(self._ending.whole(), 0)

    def begin(self) -> MixedEpoch:
        """Begin a pass; the caller delivers its batches, and calls `receive` and `finish`."""
        if self._is_over:
            self._starts, self._resumed = self._positions, False
        if not self._resumed:
            self._begun = 0
        self._resumed = False
        ending = self._ending.begin()
        self._go_to(self._starts, self._begun)
        return self._pass(ending, self._begun)

    def receive(self, consumed: tuple[int, ...]) -> None:
        """Note how many rows of each side all ranks have received, and the batches of the epoch."""
        *positions, batches = consumed
        self._ending.consumed = positions[self._end] - self._ending.epoch * self._ending.rows
        self._go_to(tuple(positions), batches)

    def finish(self) -> None:
        """Note that the pass has ended."""
        self.receive(self.coming().end(self.batch_size))

    def _state(self) -> dict[str, Any]:
        return {side: order.state_dict() for side, order in self._orders.items()}

    def _parts_of(self, state: Mapping[str, Any]) -> tuple[Mapping[str, Any], int]:
        """Return the state of each side, and the batches of all ranks in the epoch."""
        return state, 0

    @property
    def _ending(self) -> Order:
        return self._orders[self._sides[self._end]]

    @property
    def _is_over(self) -> bool:
        return self._ending.consumed >= self._ending.rows

    @property
    def _positions(self) -> tuple[int, ...]:
        """The rows of each side that all ranks have received, over all its epochs."""
        return tuple(order.epoch * order.rows + order.consumed for order in self._orders.values())

    def _go_to(self, positions: tuple[int, ...], batches: int) -> None:
        """Set what was received of the other sides, and the batches of the epoch."""
        for order, received in zip(self._orders.values(), positions, strict=True):
            if order is not self._ending:
                order.epoch, order.consumed = divmod(received, order.rows)
        self._batches = batches

    def _after_epochs(self, epochs: int) -> tuple[int, ...]:
        """Return the rows of each side that are received in this number of whole epochs."""
        none = replace(self.whole(), positions=(0,) * len(self._sides))
        return tuple(epochs * rows for rows in none.end(self.batch_size)[:-1])

    def _pass(self, ending: Epoch, begun: int) -> MixedEpoch:
        epochs = [order.coming() for order in self._orders.values()]
        epochs[self._end] = ending
        positions = list(self._starts)
        positions[self._end] = ending.number * ending.rows + ending.start
        return MixedEpoch(tuple(epochs), self._end, self._weights, tuple(positions), self._firsts, begun)

    def _lists(self, epoch: MixedEpoch) -> Iterator[list[int]]:
        for batch in epoch.batches(self.batch_size):
            self.receive(batch.consumed)
            yield batch.rows.tolist()
        self.finish()
