"""Orders: every row once, one order for all ranks, resumed exactly, and as random as documented."""

from __future__ import annotations

import json
import tracemalloc
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from conftest import calls_of
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import BatchSampler, DataLoader

from readers import Order, RequestError, Window
from readers.epoch import CHUNK
from readers.permutation import FEW, Permutation, Permutations, keys_of

ROWS = st.one_of(st.integers(1, 40), st.integers(FEW - 3, FEW + 40), st.integers(1, 3 * CHUNK))
SHUFFLES = st.one_of(st.booleans(), st.builds(Window, st.integers(1, 50), st.integers(1, 9)))
WORLD = st.integers(1, 7)


def ranks(state: dict[str, Any], world_size: int, **options: Any) -> list[Order]:
    """Return an order for each rank, resumed from a state."""
    shuffle = options.pop("shuffle")
    orders = [
        Order(state["rows"], shuffle=shuffle, rank=rank, world_size=world_size, **options) for rank in range(world_size)
    ]
    for order in orders:
        order.load_state_dict(state)
        order.set_epoch(state["epoch"])
    return orders


def in_turns(orders: list[Order]) -> list[int]:
    """Return the rows of all ranks, in the order in which they get them."""
    passes = [list(order) for order in orders]
    most = max(map(len, passes))
    return [rows[step] for step in range(most) for rows in passes if step < len(rows)]


@given(ROWS, SHUFFLES, st.integers(-(2**70), 2**70), st.integers(0, 10**9))
def test_an_epoch_is_every_row_once(rows: int, shuffle: bool | Window, seed: int, epoch: int) -> None:
    order = Order(rows, shuffle=shuffle, seed=seed)
    order.set_epoch(epoch)
    got = list(order)
    assert sorted(got) == list(range(rows))
    assert len(order) == rows
    assert shuffle or got == sorted(got)


@given(ROWS, SHUFFLES, WORLD)
def test_ranks_share_the_rows_in_one_global_order(rows: int, shuffle: bool | Window, world_size: int) -> None:
    whole = list(Order(rows, shuffle=shuffle, seed=3))
    fresh = Order(rows, shuffle=shuffle, seed=3).state_dict()
    kept, dropped, padded = (
        ranks(fresh, world_size, shuffle=shuffle, **how) for how in ({"pad": False}, {"drop_last": True}, {"pad": True})
    )
    assert in_turns(kept) == whole
    assert in_turns(dropped) == whole[: rows // world_size * world_size]
    assert {len(order) for order in dropped} == {rows // world_size}
    twice = -rows % world_size
    assert {order.padding for order in padded} == {twice}
    assert in_turns(padded) == (whole * (world_size + 1))[: rows + twice]


@given(ROWS, SHUFFLES, st.lists(st.tuples(WORLD, st.integers(0, 9)), min_size=1, max_size=4))
def test_resuming_is_the_rest_also_twice_and_with_other_ranks(
    rows: int, shuffle: bool | Window, stops: list[tuple[int, int]]
) -> None:
    """Train some steps, stop, go on with another number of ranks: together they receive the whole order."""
    first = Order(rows, shuffle=shuffle, seed=5)
    first.set_epoch(2)
    whole = list(first)
    first.set_epoch(2)
    state = first.state_dict()
    got: list[int] = []
    for world_size, steps in stops:
        orders = ranks(state, world_size, shuffle=shuffle, pad=False)
        passes = [iter(order) for order in orders]
        for _ in range(min(steps, min(order.coming().count for order in orders))):
            got += [next(rows) for rows in passes]
        states = [order.state_dict() for order in orders]
        state = json.loads(json.dumps(states[0]))
        assert all(other == state for other in states)
    assert got == whole[: len(got)]
    (last,) = ranks(state, 1, shuffle=shuffle)
    assert got + list(last) == whole


def test_the_length_is_that_of_a_whole_epoch_also_when_it_is_resumed() -> None:
    """Schedules and trainers use it: a resumed run must get the same length as the first run."""
    order = Order(23, rank=1, world_size=2, pad=True)
    list(islice(order, 4))
    assert (len(order), order.coming().count) == (12, 12)
    resumed = Order(23, rank=1, world_size=2, pad=True)
    resumed.load_state_dict(order.state_dict())
    assert (len(resumed), resumed.coming().count) == (12, 8)
    assert (len(list(resumed)), len(resumed)) == (8, 12)


@given(st.integers(1, 10**12), st.integers(0, 10**6))
def test_a_large_order_repeats_no_row_in_a_sample(rows: int, seed: int) -> None:
    positions = np.unique(np.random.default_rng(seed).integers(0, rows, 500))
    for shuffle in (True, Window(7, 5)):
        order = Order(rows, shuffle=shuffle, seed=seed)
        found = order.coming().at(positions)
        assert len(np.unique(found)) == len(positions)
        assert found.min() >= 0
        assert found.max() < rows


def test_the_order_never_changes() -> None:
    """A run that is resumed with a later version must go on in the same order."""
    order = Order(1000, seed=7)
    order.set_epoch(3)
    assert list(order)[:8] == PINNED["rows"]
    assert list(Order(100, seed=7))[:8] == PINNED["few"]
    assert list(Order(1000, shuffle=Window(10, 4), seed=7))[:8] == PINNED["window"]


PINNED: dict[str, list[int]] = {
    "rows": [906, 968, 196, 586, 702, 182, 648, 262],
    "few": [71, 83, 54, 2, 17, 91, 57, 79],
    "window": [548, 555, 290, 549, 550, 983, 985, 557],
}


def chi_square(counts: np.ndarray[Any, Any], expected: float) -> float:
    """Return how far the counts are from the expected ones, in standard deviations of chance."""
    freedom = counts.size - 1
    return float((((counts - expected) ** 2 / expected).sum() - freedom) / (2 * freedom) ** 0.5)


@pytest.mark.parametrize("rows", [2, 3, 5, 8, 31, FEW + 1, FEW + 33])
def test_each_row_is_equally_likely_at_each_position(rows: int) -> None:
    """Seeds are fixed, so this always passes or always fails; chance exceeds 4 deviations in 1 of 30,000 tries."""
    trials = 4000
    counts = np.zeros((rows, rows))
    everywhere = np.arange(rows)
    for epoch in range(trials):
        counts[everywhere, Permutation(rows, keys_of("places", epoch))(everywhere)] += 1
    assert chi_square(counts, trials / rows) < 4


@pytest.mark.parametrize("rows", [3, 5, 8, 31])
@pytest.mark.parametrize("pair", [(0, 1), (0, -1)])
def test_each_pair_is_equally_likely_at_two_positions(rows: int, pair: tuple[int, int]) -> None:
    trials = max(4000, 5 * rows * (rows - 1))
    counts = np.zeros((rows, rows))
    ends = np.arange(rows)[list(pair)]
    for epoch in range(trials):
        first, second = Permutation(rows, keys_of("pairs", epoch))(ends)
        counts[first, second] += 1
    off_diagonal = counts[~np.eye(rows, dtype=bool)]
    assert counts.trace() == 0
    assert chi_square(off_diagonal, trials / off_diagonal.size) < 4


@pytest.mark.parametrize("pair", [(0, 1), (0, -1), (7, 24)])
def test_each_step_between_two_positions_of_the_network_is_equally_likely(pair: tuple[int, int]) -> None:
    rows, trials = FEW + 1, 4000
    ends = np.arange(rows)[list(pair)]
    counts = np.zeros(rows)
    for epoch in range(trials):
        first, second = Permutation(rows, keys_of("steps", epoch))(ends)
        counts[(second - first) % rows] += 1
    assert counts[0] == 0
    assert chi_square(counts[1:], trials / (rows - 1)) < 4


@pytest.mark.parametrize("length", [1, 5, FEW, FEW + 1, 2048])
def test_many_permutations_at_once_are_those_of_one_after_the_other(length: int) -> None:
    keys = np.array([keys_of("many", number) for number in range(9)])
    every = np.arange(length)
    alone = [Permutation(length, key)(every) for key in keys]
    numbers = np.random.default_rng(1).integers(0, len(keys), length)
    expected = [alone[number][place] for number, place in zip(numbers, every, strict=True)]
    assert Permutations(length, keys)(numbers, every).tolist() == expected


def test_neighbours_in_a_large_epoch_are_far_from_each_other() -> None:
    """Steps between neighbours in the order are as long as between random rows: on average a third of all rows."""
    rows = 10**9
    got = Order(rows, seed=1).coming().at(np.arange(100_000))
    assert abs(np.abs(np.diff(got)).mean() / rows - 1 / 3) < 0.005
    assert chi_square(np.histogram(got, 100, (0, rows))[0], 1000) < 4
    assert abs(np.corrcoef(got[:-1], got[1:])[0, 1]) < 0.02


def test_epochs_and_seeds_have_nothing_in_common() -> None:
    orders = [Order(1000, seed=seed) for seed in (0, 0, 1, -1)]
    orders[1].set_epoch(1)
    passes = [np.array(list(order)) for order in orders]
    for later in range(4):
        for earlier in range(later):
            assert (passes[later] == passes[earlier]).sum() < 8, "by chance about one row keeps its position"


def test_a_window_keeps_to_its_blocks() -> None:
    rows, window = 10_000, Window(block=50, blocks=4)
    got = np.array(list(Order(rows, shuffle=window, seed=2)))
    for first in range(0, rows, 200):
        part = np.sort(got[first : first + 200])
        assert (np.diff(part) != 1).sum() <= 3, "four blocks of neighbours"
        assert not np.array_equal(part, got[first : first + 200])
    starts = got[::200] // 50
    assert abs(np.diff(starts)).mean() > 30, "blocks come from anywhere"


def test_passes_follow_each_other_and_a_pass_that_ended_early_starts_again() -> None:
    order = Order(50, seed=1)
    first = list(order)
    assert (order.epoch, order.consumed) == (0, 50)
    second = list(order)
    assert order.epoch == 1
    assert second != first
    rows = iter(order)
    begun = [next(rows) for _ in range(5)]
    assert (order.epoch, order.consumed) == (2, 5)
    assert list(order)[:5] == begun
    order.set_epoch(0)
    assert list(order) == first
    order.set_epoch(0)
    assert list(order) == first


def test_a_finished_epoch_that_is_resumed_has_no_rest() -> None:
    order = Order(10)
    list(order)
    resumed = Order(10)
    resumed.load_state_dict(order.state_dict())
    resumed.set_epoch(0)
    assert list(resumed) == []
    resumed.set_epoch(1)
    assert list(resumed) == list(order)


def test_an_epoch_of_a_billion_rows_starts_at_once_and_needs_no_memory() -> None:
    few, order = Order(10**5, seed=1), Order(10**9, seed=1)
    next(iter(order))
    assert calls_of(lambda: next(iter(order))) <= calls_of(lambda: next(iter(few))) + 100
    tracemalloc.start()
    order.set_epoch(99)
    next(iter(order))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 500_000


def test_pytorchs_loader_takes_it_as_a_sampler() -> None:
    data = torch.utils.data.TensorDataset(torch.arange(23))
    order = Order(data, seed=4)
    wanted = list(order)
    order.set_epoch(0)
    loader: DataLoader[Any] = DataLoader(data, batch_size=4, sampler=order)
    assert len(loader) == 6
    got = [row for (batch,) in loader for row in batch.tolist()]
    assert got == wanted
    order.set_epoch(0)
    batches: DataLoader[Any] = DataLoader(data, batch_sampler=BatchSampler(order, 4, drop_last=True))
    assert [row for (batch,) in batches for row in batch.tolist()] == wanted[:20]
    assert order.state_dict(consumed=8)["consumed"] == 8


def test_impossible_orders_are_refused() -> None:
    for options in ({"rank": 2, "world_size": 2}, {"rank": -1}, {"shuffle": "windows"}):
        with pytest.raises(RequestError, match="expected"):
            Order(10, **options)
    with pytest.raises(RequestError, match="from 1 on"):
        Window(0, 3)
    with pytest.raises(RequestError, match=r"rows is 10 here and was 11; shuffle is True here and was False"):
        Order(10).load_state_dict({**Order(11).state_dict(), "shuffle": "False"})
    with pytest.raises(RequestError, match="not the state"):
        Order(10).load_state_dict({"epoch": 3})
    with pytest.raises(RequestError, match="consumed 12"):
        Order(10).load_state_dict({**Order(10).state_dict(), "consumed": 12})


def test_an_order_without_rows_has_no_steps() -> None:
    assert list(Order(0)) == []
    assert list(Order(2, rank=2, world_size=3, pad=False)) == []
    assert list(Order(2, shuffle=False, rank=2, world_size=3, pad=True)) == [0]
