"""Windows apart: each rank has windows of its own, each row comes once, and a run goes on with any number of ranks."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_readers_order import chi_square, in_turns, ranks

from readers import MixedOrder, Order, RequestError, Window

ROWS = st.integers(1, 900)
WINDOWS = st.builds(Window, st.integers(1, 12), st.integers(1, 6), st.just(True))
WORLD = st.integers(1, 8)


def fresh(rows: int, window: Window, world_size: int, **options: Any) -> list[Order]:
    return [
        Order(rows, shuffle=window, seed=3, rank=rank, world_size=world_size, **options) for rank in range(world_size)
    ]


@given(ROWS, WINDOWS, WORLD)
def test_each_row_comes_once_and_whole_rounds_give_each_rank_a_window(
    rows: int, window: Window, world_size: int
) -> None:
    passes = [list(order) for order in fresh(rows, window, world_size, pad=False)]
    assert sorted(row for rows in passes for row in rows) == list(range(rows))
    assert max(map(len, passes)) - min(map(len, passes)) <= 1
    shared = Order(rows, shuffle=Window(window.block, window.blocks), seed=3)
    windows = [set(part) for part in batched(list(shared), window.size)]
    for number in range(rows // window.size // world_size):
        for rank, mine in enumerate(passes):
            turn = mine[number * window.size : (number + 1) * window.size]
            assert set(turn) == windows[number * world_size + rank], "the windows are those that all ranks would share"


def batched(rows: list[int], size: int) -> list[list[int]]:
    return [rows[first : first + size] for first in range(0, len(rows), size)]


@given(ROWS, WINDOWS, st.lists(st.tuples(WORLD, st.integers(0, 60)), min_size=1, max_size=5))
def test_each_row_comes_once_whoever_goes_on_and_wherever_it_stopped(
    rows: int, window: Window, stops: list[tuple[int, int]]
) -> None:
    state = Order(rows, shuffle=window, seed=5).state_dict()
    got: list[int] = []
    for world_size, steps in [*stops, (3, rows)]:
        orders = ranks(state, world_size, shuffle=window, pad=False)
        whole = dealt(orders)
        passes = [iter(order) for order in orders]
        steps = min(steps, min(order.coming().count for order in orders))
        for _ in range(steps):
            got += [next(mine) for mine in passes]
        states = [order.state_dict() for order in orders]
        state = json.loads(json.dumps(states[0]))
        assert all(other == state for other in states)
        same = ranks(state, world_size, shuffle=window, pad=False)
        assert [*map(resumed, same)] == [list(mine) for mine in passes], "exact with the same number of ranks"
        assert sorted(got + dealt(same)) == list(range(rows))
        assert whole[: steps * world_size] == got[len(got) - steps * world_size :]


def resumed(order: Order) -> list[int]:
    """Return the rows of an order without changing it."""
    epoch = order.coming()
    rows: list[int] = epoch.take(0, epoch.count).tolist()
    return rows


def dealt(orders: list[Order]) -> list[int]:
    """Return the rows of all ranks, in the order in which they get them, without changing the orders."""
    passes = [*map(resumed, orders)]
    return [mine[step] for step in range(len(passes[0])) for mine in passes if step < len(mine)]


@given(ROWS, WINDOWS, WORLD, WORLD, st.integers(0, 900))
def test_what_was_open_comes_first(rows: int, window: Window, before: int, after: int, steps: int) -> None:
    """Then each of the ranks of today has windows of its own again."""
    orders = fresh(rows, window, before, pad=False)
    steps %= max(1, min(order.coming().count for order in orders))
    got = [list(islice(order, steps)) for order in orders]
    now = ranks(orders[0].state_dict(), after, shuffle=window, pad=False)
    of_window = {
        row: number
        for number, part in enumerate(
            batched(list(Order(rows, shuffle=Window(window.block, window.blocks), seed=3)), window.size)
        )
        for row in part
    }
    begun = {of_window[row] for mine in got for row in mine}
    rest = dealt(now)
    first = sum(number in begun for number in map(of_window.get, rest))
    if rows // window.size >= before * (steps // window.size + 1):
        assert {of_window[row] for row in rest[:first]} <= begun


@given(ROWS, WINDOWS, WORLD)
def test_all_ranks_get_equally_many(rows: int, window: Window, world_size: int) -> None:
    dropped = fresh(rows, window, world_size, drop_last=True)
    padded = fresh(rows, window, world_size, pad=True)
    assert {len(list(order)) for order in dropped} == {rows // world_size}
    assert {len(list(order)) for order in padded} == {-(-rows // world_size)}
    for order in padded:
        order.set_epoch(0)
    together = in_turns(padded)
    assert sorted(together[:rows]) == list(range(rows))
    assert together[rows:] == (together * world_size)[: -rows % world_size]


def test_each_row_is_equally_likely_at_each_turn() -> None:
    rows, trials = 26, 4000
    counts = np.zeros((rows, rows))
    for epoch in range(trials):
        order = Order(rows, shuffle=Window(2, 3, apart=True), world_size=3)
        order.set_epoch(epoch)
        counts[np.arange(rows), order.coming().at(np.arange(rows))] += 1
    assert chi_square(counts, trials / rows) < 4


def test_a_rank_reads_the_shards_of_its_windows_and_no_others() -> None:
    """Each of 8 ranks reads an eighth of 1,000 shards, and those of the windows that are left at the end."""
    rows, shard, window = 128_000, 128, Window(128, 8)
    for apart, most in ((True, 1000 / 8 + 7 * 8), (False, 1000)):
        order = Order(rows, shuffle=Window(window.block, window.blocks, apart), rank=2, world_size=8)
        read = len(np.unique(np.array(list(order)) // shard))
        assert read <= most
        assert apart or read == 1000


def test_the_order_never_changes_and_old_states_are_read() -> None:
    assert list(Order(1000, shuffle=Window(10, 4, apart=True), seed=7, rank=1, world_size=3))[:8] == PINNED
    shared = Order(1000, shuffle=Window(10, 4), seed=7)
    assert set(shared.state_dict()) == {"rows", "shuffle", "seed", "epoch", "consumed"}
    assert shared.state_dict()["shuffle"] == "Window(block=10, blocks=4)"
    assert list(Order(1000, shuffle=Window(10, 4, apart=True), seed=7)) == list(shared), "for one rank nothing changes"


PINNED = [851, 45, 358, 359, 354, 151, 153, 47]


def test_states_that_cannot_be_are_refused() -> None:
    window = Window(10, 4, apart=True)
    order = Order(1000, shuffle=window, world_size=4)
    list(islice(order, 50))
    state = order.state_dict()
    assert (state["first_open"], state["open"]) == (4, 4)
    for wrong in ({"first_open": -1}, {"first_open": 6}, {"open": 0}, {"open": 1}, {"open": 2**80}):
        with pytest.raises(RequestError, match="of another order"):
            Order(1000, shuffle=window).load_state_dict({**state, **wrong})
    with pytest.raises(RequestError, match=r"pass shuffle=Window.*apart=True.* to go on"):
        Order(1000, shuffle=Window(10, 4)).load_state_dict(state)
    with pytest.raises(RequestError, match=r"pass shuffle=Window\(block=10, blocks=4\) to go on"):
        Order(1000, shuffle=window).load_state_dict(Order(1000, shuffle=Window(10, 4)).state_dict())


def test_a_mix_of_two_orders_has_no_windows_apart() -> None:
    class Half:
        labelled_rows, unlabelled_rows = range(10), range(10, 20)

    with pytest.raises(RequestError, match="leave out apart="):
        MixedOrder(Half(), {"labelled": 1, "unlabelled": 1}, shuffle=Window(apart=True))
