"""The settings of a benchmark fit into memory; the recommended one is the cheapest that is fast enough."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from torch.utils.data import DataLoader

from packer.bench.recommend import LoaderResult, by_batch, cheapest, fast_from
from packer.bench.request import BATCHES, BenchRequest, batches_for, threads
from packer.bench.settings import (
    LOADER,
    PREFETCH,
    SLOTS,
    SLOTS_HELD,
    STOCK,
    LoaderSettings,
)
from packer.bench.workload import MEMORY, ROWS, SHARED, Skipped, Workload
from readers import open_dataset
from readers.machine import Machine
from readers.slot_loader import HELD

GIB = 1 << 30
MACHINE = Machine(affinity=8, quota=None, memory=16 * GIB, available=8 * GIB, shared=4 * GIB)
WORKLOAD = Workload(rows=1000, complete=True, row_bytes=1 << 20)


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


def test_a_target_selects_the_cheapest_that_reaches_it() -> None:
    results = [result(300), result(600, workers=2), result(1000, workers=4)]
    assert [cheapest(results, target).rate for target in (200, 500, 600, 601)] == [300, 600, 600, 1000]
    assert cheapest(results, 5000) is cheapest(results)


def test_each_batch_size_has_a_cheapest_loader() -> None:
    results = [result(500, 4, 1), result(510, 4, 2), result(400, 8, 1), result(800, 8, 2)]
    assert {size: each.settings.workers for size, each in by_batch(results).items()} == {4: 1, 8: 2}


def test_candidates_depend_on_cores_and_rows() -> None:
    assert [threads(cores) for cores in (1, 2, 6, 8)] == [(1,), (1, 2), (1, 2, 4, 6), (1, 2, 4, 8)]
    assert threads(200)[-1] == 32
    assert [batches_for(rows) for rows in (0, 3, 4, 5, 18, 10**6)] == [
        (4,),
        (4,),
        (4,),
        (4, 8),
        (4, 8, 16, 32),
        BATCHES,
    ]
    request = BenchRequest(Path("out"), batches=(4, 8), threads=(1, 2))
    found = request.settings(1000, 2)
    assert len(found) == len(set(found)) == 7
    assert [each for each in found if each.kind != LOADER] == [
        LoaderSettings(SLOTS, 4, 2),
        LoaderSettings(STOCK, 4, 0),
        LoaderSettings(STOCK, 4, 2),
    ]
    assert not any(each.kind == SLOTS for each in replace(request, crop=(8, 8)).settings(1000, 2))
    assert len(replace(request, workers=(0, 2)).settings(1000, 2)) == 10, "at each batch size"


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
    tried, large, many = (LoaderSettings(*each) for each in ((LOADER, 16, 2), (LOADER, 1000, 8), (SLOTS, 64, 32)))
    assert WORKLOAD.too_much(tried, MACHINE) is None
    assert WORKLOAD.too_much(large, MACHINE) == Skipped(large, MEMORY, 11000 << 20, 4 * GIB)
    assert WORKLOAD.too_much(many, MACHINE) == Skipped(many, SHARED, 8192 << 20, 4 * GIB)
    few = replace(WORKLOAD, rows=10, complete=False)
    assert few.too_much(tried, MACHINE) == Skipped(tried, ROWS, 16, 10)
    assert replace(few, complete=True).too_much(tried, MACHINE) is None
