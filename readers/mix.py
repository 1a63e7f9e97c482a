"""`MixedOrder`: batches of rows with and without a label in a stated ratio, for each of many ranks; resumed exactly."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, Literal, Protocol

from readers.contract.errors import RequestError
from readers.epoch import Window
from readers.order import Order, Shuffle
from readers.sided_order import SidedOrder, seeds_of

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


class MixedOrder(SidedOrder):
    """Batches of a data set's rows: with `mix={"labelled": 8, "unlabelled": 24}` first 8 with a label, then 24 without.
    Give it to a DataLoader as `batch_sampler`.

    An epoch ends with the rows of the side `mix_end`; see `SidedOrder`.
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
        rows: dict[str, range] = {"labelled": dataset.labelled_rows, "unlabelled": dataset.unlabelled_rows}
        for side, verb in (("labelled", "has"), ("unlabelled", "lacks")):
            if not rows[side]:
                raise RequestError(
                    f"mix= needs rows with and without a label, but no row here {verb} a label: open the data set "
                    "without labelled=, from a pack that was built with --missing keep"
                )
        options: dict[str, Any] = {"shuffle": shuffle, "rank": rank, "world_size": world_size, "drop_last": drop_last}
        orders: dict[str, Order] = {
            side: Order(len(rows[side]), seed=own, pad=pad, **options)
            for side, own in zip(SIDES, seeds_of(SIDES, seed), strict=True)
        }
        firsts, weights = ([rows[side].start for side in SIDES], [self.mix[side] for side in SIDES])
        super().__init__(orders, firsts, weights, mix_end, sum(weights))


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
