"""The settings of a benchmark fit into memory and time; the recommended one is the cheapest that is fast enough."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from packer.bench.recommend import LoaderResult, by_batch, cheapest, fast_from
from packer.bench.settings import (
    BATCHES,
    LOADER,
    PREFETCH,
    SLOTS,
    SLOTS_HELD,
    STOCK,
    LoaderSettings,
    batches_for,
    candidates,
    threads_for,
)
from packer.bench.trial_plan import LEAST_SECONDS, MEMORY, ROWS, SHARED, TIME, TrialPlan, Workload
from readers import open_dataset
from readers.machine import Machine
from readers.slot_loader import HELD

GIB = 1 << 30
MACHINE = Machine(affinity=8, quota=None, memory=16 * GIB, available=8 * GIB, shared=4 * GIB)
WORKLOAD = Workload(rows=1000, complete=True, row_bytes=1 << 20, row_seconds=0.0005)


def result(rate: float, batch: int = 16, workers: int = 1, kind: str = LOADER) -> LoaderResult:
    return LoaderResult(LoaderSettings(kind, batch, workers), (rate * 0.9, rate, rate * 1.2), (0.5, 0.6, 0.7))


def test_fewer_threads_win_if_more_are_hardly_faster() -> None:
    single, double, quad = result(951), result(990, workers=2), result(1000, workers=4)
    assert cheapest([quad, double, single]) is single
    assert cheapest([quad, double, result(949)]) is double


def test_at_the_same_number_of_threads_the_least_memory_wins() -> None:
    small, large = result(960, batch=8), result(1000, batch=64)
    assert cheapest([large, small]) is small
    assert cheapest([large, result(940, batch=8)]) is large


def test_a_thread_is_cheaper_than_a_process() -> None:
    threads, processes = result(970, workers=4), result(1000, workers=1, kind=SLOTS)
    assert cheapest([processes, threads]) is threads
    assert cheapest([processes, result(900)]) is processes


def test_the_median_counts() -> None:
    steady = LoaderResult(LoaderSettings(LOADER, 8, 2), (100, 100, 100), (1, 1, 1))
    lucky = LoaderResult(LoaderSettings(LOADER, 8, 1), (90, 80, 900), (1, 1, 1))
    assert cheapest([lucky, steady]) is steady


def test_a_difference_below_the_noise_of_the_best_decides_nothing() -> None:
    noisy = LoaderResult(LoaderSettings(LOADER, 8, 4), (700, 1000, 1300, 600, 1100), (1,) * 5)
    steady = LoaderResult(LoaderSettings(LOADER, 8, 4), (990, 1000, 1010, 1000, 1000), (1,) * 5)
    slower = LoaderResult(LoaderSettings(LOADER, 8, 1), (800, 810, 790, 800, 800), (1,) * 5)
    assert fast_from([noisy, slower]) == noisy.low == 700
    assert cheapest([noisy, slower]) is slower
    assert cheapest([steady, slower]) is steady
    half = replace(slower, rates=(500.0,) * 5)
    assert cheapest([noisy, half]) is noisy


def test_a_trial_is_never_too_short_to_recommend_by() -> None:
    many = candidates(BATCHES, threads_for(64), (0, 4), (16,), slots=True)
    for budget in (0.5, 2, 20, 300):
        plan = TrialPlan.make(many, WORKLOAD, MACHINE, budget)
        assert plan.rounds >= 3
        assert plan.seconds >= 0.1, budget


def test_a_target_selects_the_cheapest_that_reaches_it() -> None:
    results = [result(300), result(600, workers=2), result(1000, workers=4)]
    assert [cheapest(results, target).rate for target in (200, 500, 600, 601)] == [300, 600, 600, 1000]
    assert cheapest(results, 5000) is cheapest(results)


def test_each_batch_size_has_a_cheapest_loader() -> None:
    results = [result(500, 4, 1), result(510, 4, 2), result(400, 8, 1), result(800, 8, 2)]
    assert {size: each.settings.workers for size, each in by_batch(results).items()} == {4: 1, 8: 2}


def test_candidates_depend_on_cores_and_rows() -> None:
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
    assert [each for each in found if each.kind != LOADER] == [
        LoaderSettings(SLOTS, 8, 2),
        LoaderSettings(STOCK, 8, 0),
        LoaderSettings(STOCK, 8, 2),
    ]
    assert not any(each.kind == SLOTS for each in candidates((4,), (1,), (0, 2), (4,), slots=False))


def test_memory_counts_all_batches_that_exist_at_the_same_time() -> None:
    batch = 16 * WORKLOAD.row_bytes
    assert WORKLOAD.memory(LoaderSettings(LOADER, 16, 2)) == (3 + 2) * batch
    assert WORKLOAD.memory(LoaderSettings(LOADER, 16, 8)) == (9 + 2) * batch
    assert (
        WORKLOAD.shared_memory(LoaderSettings(LOADER, 16, 8))
        == WORKLOAD.shared_memory(LoaderSettings(STOCK, 16, 0))
        == 0
    )
    assert (
        WORKLOAD.shared_memory(LoaderSettings(SLOTS, 16, 4))
        == WORKLOAD.memory(LoaderSettings(SLOTS, 16, 4))
        == 4 * 4 * batch
    )
    assert WORKLOAD.shared_memory(LoaderSettings(STOCK, 16, 4)) == (4 * 2 + 1) * batch
    assert replace(WORKLOAD, rows=3).memory(LoaderSettings(LOADER, 16, 1)) == (3 + 2) * 3 * WORKLOAD.row_bytes


def test_the_assumptions_about_loaders_are_true(packed_index: Path) -> None:
    assert SLOTS_HELD == HELD
    assert DataLoader(open_dataset(packed_index, "all"), num_workers=1).prefetch_factor == PREFETCH


def test_settings_that_do_not_fit_are_skipped_with_the_reason() -> None:
    tried = LoaderSettings(LOADER, 16, 2)
    large = LoaderSettings(LOADER, 1000, 8)
    many = LoaderSettings(SLOTS, 64, 32)
    plan = TrialPlan.make([tried, large, many], WORKLOAD, MACHINE, 30)
    assert plan.settings == (tried,)
    assert [(left.settings, left.reason) for left in plan.skipped] == [(large, MEMORY), (many, SHARED)]
    assert all(left.needed > left.available for left in plan.skipped)
    few = TrialPlan.make([tried], replace(WORKLOAD, rows=10, complete=False), MACHINE, 30)
    assert [(left.reason, left.needed, left.available) for left in few.skipped] == [(ROWS, 16, 10)]
    assert TrialPlan.make([tried], replace(WORKLOAD, rows=10), MACHINE, 30).skipped == ()


def test_the_slowest_settings_are_skipped_first() -> None:
    settings = candidates(BATCHES, (1, 2), (0, 2), (16,), slots=True)
    plan = TrialPlan.make(settings, replace(WORKLOAD, row_seconds=0.02), MACHINE, 25)
    left = {each.settings for each in plan.skipped}
    assert {each.reason for each in plan.skipped} == {TIME}
    assert LoaderSettings(LOADER, 64, 1) in left
    assert LoaderSettings(LOADER, 4, 1) in plan.settings
    assert left | set(plan.settings) == set(settings)


@given(st.floats(0.5, 600), st.floats(1e-6, 0.5), st.integers(1, 64))
def test_a_plan_ends_in_time(budget: float, row_seconds: float, cores: int) -> None:
    settings = candidates(BATCHES, threads_for(cores), (0, 4), (16,), slots=True)
    workload = replace(WORKLOAD, row_seconds=row_seconds)
    plan = TrialPlan.make(settings, workload, MACHINE, budget)
    turn = plan.seconds * (1 + sum(2 if each.processes else 1 for each in plan.settings))
    turn += sum(map(workload.overhead, plan.settings))
    assert len(plan.settings) >= 1
    assert plan.seconds >= LEAST_SECONDS
    assert len(plan.settings) == 1 or plan.rounds * turn <= budget * 1.001


def test_a_long_time_is_used() -> None:
    settings = candidates((16,), (1, 2), (0,), (16,), slots=True)
    short, long = (TrialPlan.make(settings, WORKLOAD, MACHINE, budget) for budget in (5, 60))
    assert long.rounds > short.rounds >= 3
    assert long.seconds >= short.seconds
