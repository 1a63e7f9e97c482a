"""What is tried fits into memory and time, and what is recommended is the cheapest that is fast enough."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from packer.bench.settings import (
    BATCHES,
    LEAST_SECONDS,
    LOADER,
    MEMORY,
    PREFETCH,
    ROWS,
    SHARED,
    SLOTS,
    SLOTS_HELD,
    STOCK,
    TIME,
    Load,
    Setting,
    Sweep,
    Trial,
    batches_for,
    by_batch,
    candidates,
    cheapest,
    threads_for,
)
from readers import open_dataset
from readers.machine import Machine
from readers.slot_loader import HELD

GIB = 1 << 30
MACHINE = Machine(affinity=8, quota=None, memory=16 * GIB, available=8 * GIB, shared=4 * GIB)
LOAD = Load(rows=1000, every=True, row_bytes=1 << 20, row_seconds=0.0005)


def trial(rate: float, batch: int = 16, workers: int = 1, kind: str = LOADER) -> Trial:
    return Trial(Setting(kind, batch, workers), (rate * 0.9, rate, rate * 1.2), (0.5, 0.6, 0.7))


def test_fewer_threads_are_chosen_where_more_give_little() -> None:
    one, two, four = trial(951), trial(990, workers=2), trial(1000, workers=4)
    assert cheapest([four, two, one]) is one
    assert cheapest([four, two, trial(949)]) is two


def test_of_as_many_threads_the_least_memory_is_chosen() -> None:
    small, large = trial(960, batch=8), trial(1000, batch=64)
    assert cheapest([large, small]) is small
    assert cheapest([large, trial(940, batch=8)]) is large


def test_a_thread_is_cheaper_than_a_process() -> None:
    threads, processes = trial(970, workers=4), trial(1000, workers=1, kind=SLOTS)
    assert cheapest([processes, threads]) is threads
    assert cheapest([processes, trial(900)]) is processes


def test_the_median_counts() -> None:
    steady = Trial(Setting(LOADER, 8, 2), (100, 100, 100), (1, 1, 1))
    lucky = Trial(Setting(LOADER, 8, 1), (90, 80, 900), (1, 1, 1))
    assert cheapest([lucky, steady]) is steady


def test_a_target_wants_the_least_that_delivers_it() -> None:
    trials = [trial(300), trial(600, workers=2), trial(1000, workers=4)]
    assert [cheapest(trials, target).rate for target in (200, 500, 600, 601)] == [300, 600, 600, 1000]
    assert cheapest(trials, 5000) is cheapest(trials)


def test_each_size_of_batches_has_its_cheapest() -> None:
    trials = [trial(500, 4, 1), trial(510, 4, 2), trial(400, 8, 1), trial(800, 8, 2)]
    assert {size: one.setting.workers for size, one in by_batch(trials).items()} == {4: 1, 8: 2}


def test_what_is_tried_follows_from_cores_and_rows() -> None:
    assert [threads_for(cores) for cores in (1, 2, 6, 8)] == [(1,), (1, 2), (1, 2, 4, 6), (1, 2, 4, 8)]
    assert threads_for(200)[-1] == 32
    assert [batches_for(rows) for rows in (0, 3, 4, 5, 18, 10**6)] == [
        (4,),
        (4,),
        (4,),
        (4, 8),
        (4, 8, 16, 32),
        BATCHES,
    ]
    found = candidates((4, 8), (1, 2), (0, 2), (8,), slots=True)
    assert len(found) == len(set(found)) == 7
    assert [one for one in found if one.kind != LOADER] == [
        Setting(SLOTS, 8, 2),
        Setting(STOCK, 8, 0),
        Setting(STOCK, 8, 2),
    ]
    assert not any(one.kind == SLOTS for one in candidates((4,), (1,), (0, 2), (4,), slots=False))


def test_memory_is_of_all_batches_that_are_there_at_once() -> None:
    batch = 16 * LOAD.row_bytes
    assert LOAD.memory(Setting(LOADER, 16, 2)) == (3 + 2) * batch
    assert LOAD.memory(Setting(LOADER, 16, 8)) == (9 + 2) * batch
    assert LOAD.shared(Setting(LOADER, 16, 8)) == LOAD.shared(Setting(STOCK, 16, 0)) == 0
    assert LOAD.shared(Setting(SLOTS, 16, 4)) == LOAD.memory(Setting(SLOTS, 16, 4)) == 4 * 4 * batch
    assert LOAD.shared(Setting(STOCK, 16, 4)) == (4 * 2 + 1) * batch
    assert replace(LOAD, rows=3).memory(Setting(LOADER, 16, 1)) == (3 + 2) * 3 * LOAD.row_bytes


def test_what_is_reckoned_with_is_what_the_loaders_do(packed_index: Path) -> None:
    assert SLOTS_HELD == HELD
    assert DataLoader(open_dataset(packed_index, "all"), num_workers=1).prefetch_factor == PREFETCH


def test_what_does_not_fit_is_left_out_and_why() -> None:
    tried = Setting(LOADER, 16, 2)
    large = Setting(LOADER, 1000, 8)
    many = Setting(SLOTS, 64, 32)
    sweep = Sweep.plan([tried, large, many], LOAD, MACHINE, 30)
    assert sweep.settings == (tried,)
    assert [(left.setting, left.why) for left in sweep.left_out] == [(large, MEMORY), (many, SHARED)]
    assert all(left.needed > left.there for left in sweep.left_out)
    few = Sweep.plan([tried], replace(LOAD, rows=10, every=False), MACHINE, 30)
    assert [(left.why, left.needed, left.there) for left in few.left_out] == [(ROWS, 16, 10)]
    assert Sweep.plan([tried], replace(LOAD, rows=10), MACHINE, 30).left_out == ()


def test_what_takes_too_long_is_left_out_first() -> None:
    settings = candidates(BATCHES, (1, 2), (0, 2), (16,), slots=True)
    sweep = Sweep.plan(settings, replace(LOAD, row_seconds=0.02), MACHINE, 25)
    left = {one.setting for one in sweep.left_out}
    assert {one.why for one in sweep.left_out} == {TIME}
    assert Setting(LOADER, 64, 1) in left
    assert Setting(LOADER, 4, 1) in sweep.settings
    assert left | set(sweep.settings) == set(settings)


@given(st.floats(0.5, 600), st.floats(1e-6, 0.5), st.integers(1, 64))
def test_a_sweep_ends_in_time(budget: float, row_seconds: float, cores: int) -> None:
    settings = candidates(BATCHES, threads_for(cores), (0, 4), (16,), slots=True)
    load = replace(LOAD, row_seconds=row_seconds)
    sweep = Sweep.plan(settings, load, MACHINE, budget)
    turn = sweep.seconds * (1 + sum(2 if one.processes else 1 for one in sweep.settings))
    turn += sum(map(load.lost, sweep.settings))
    assert len(sweep.settings) >= 1
    assert sweep.seconds >= LEAST_SECONDS
    assert len(sweep.settings) == 1 or sweep.rounds * turn <= budget * 1.001


def test_a_long_time_is_used() -> None:
    settings = candidates((16,), (1, 2), (0,), (16,), slots=True)
    short, long = (Sweep.plan(settings, LOAD, MACHINE, budget) for budget in (5, 60))
    assert long.rounds > short.rounds >= 3
    assert long.seconds >= short.seconds
