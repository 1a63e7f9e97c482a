"""`PackOrder`: batches of rows of several packs in a stated ratio, for each of many ranks; resumed exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from readers.contract.errors import RequestError
from readers.order import Order, Shuffle
from readers.sided_order import SidedOrder, seeds_of


class PackOrder(SidedOrder):
    """Batches of rows of several packs: the rows of the first pack come first. The ratio is kept over all batches.

    Every batch, and the batches of an epoch up to every one of them, over all ranks, have the whole number of rows
    below or above the share of each pack. `weights` are whole numbers. Each pack has an `Order`; see `SidedOrder`.
    """

    def __init__(
        self,
        rows: Mapping[str, int],
        weights: Mapping[str, int],
        batch_size: int,
        *,
        end: str,
        shuffle: Mapping[str, Shuffle],
        seed: int = 0,
        **options: Any,
    ) -> None:
        names: Sequence[str] = tuple(rows)
        self.mix = {name: weights[name] for name in names}
        firsts = [sum(rows[other] for other in names[:number]) for number in range(len(names))]
        orders = {
            name: Order(rows[name], shuffle=shuffle[name], seed=own, **options)
            for name, own in zip(names, seeds_of(names, seed), strict=True)
        }
        super().__init__(orders, firsts, [weights[name] for name in names], end, batch_size)

    def _state(self) -> dict[str, Any]:
        """Return the states of the packs, and the rows of all of them in this epoch, which say where the ratio is."""
        return {"packs": super()._state(), "rows": self._batches * self.batch_size}

    def _parts_of(self, state: Mapping[str, Any]) -> tuple[Mapping[str, Any], int]:
        packs, rows = state.get("packs"), state.get("rows")
        if set(state) != {"packs", "rows"} or not isinstance(packs, Mapping) or not isinstance(rows, int) or rows < 0:
            raise RequestError(f"this is not the state of an order of several packs: {dict(state)}")
        return packs, rows // self.batch_size
