"""Work in threads whose number changes while it is done, and the cores of workers that have nothing left to do."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest
from conftest import HANG, make_raw
from hypothesis import given
from hypothesis import strategies as st

from packer.plan.make_plan import make_plan
from packer.plan.request import request_of
from packer.shards.threads import in_threads, one_thread
from packer.sources.files.folder import FolderSource
from packer.workers.jobs import Job, Urgent, nothing_urgent
from packer.workers.process import Worker
from packer.workers.run import build_shards, open_pool
from packer.workers.supervisor import Supervisor
from readers.contract.manifest import SHARDS


@given(st.lists(st.integers()), st.integers(1, 5))
def test_results_are_in_order_for_any_number_of_threads(items: list[int], threads: int) -> None:
    assert in_threads(str, items, lambda: threads) == list(map(str, items))


def test_one_thread_is_the_calling_one() -> None:
    assert in_threads(lambda item: threading.get_ident(), [1, 2, 3], one_thread) == [threading.get_ident()] * 3


def test_more_threads_help_while_the_work_is_under_way() -> None:
    """The third item needs another thread, which is allowed only after the second item."""
    done: list[int] = []
    both = threading.Barrier(2, timeout=HANG)

    def work(item: int) -> int:
        if item >= 2:
            both.wait()
        done.append(item)
        return item

    assert in_threads(work, range(6), lambda: 1 if len(done) < 2 else 2) == list(range(6))


def test_fewer_threads_go_on_alone() -> None:
    """The helper ends after the item at which it is no longer wanted; the calling thread does the rest."""
    wanted = [3]
    together = threading.Barrier(3, timeout=HANG)

    def work(item: int) -> int:
        if item < 3:
            together.wait()
            wanted[0] = 1
        return threading.get_ident()

    threads = in_threads(work, range(50), lambda: wanted[0])
    assert len(set(threads[:3])) == 3
    assert Counter(threads[3:]) == {threading.get_ident(): 47}


def test_the_first_error_ends_the_work_and_is_raised() -> None:
    done: list[int] = []

    def work(item: int) -> None:
        if item == 3:
            raise ValueError("the third")
        done.append(item)

    with pytest.raises(ValueError, match="the third"):
        in_threads(work, range(1000), lambda: 2)
    assert len(done) < 1000


@pytest.mark.parametrize("shard_bytes", [1 << 30, 40_000])
def test_no_core_is_idle_while_there_are_rows_to_decode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shard_bytes: int
) -> None:
    """Shards that are still decoded get the threads of idle workers."""
    raw = make_raw(tmp_path / "raw", {"train": 30})
    shared: list[int] = []
    chosen: dict[Worker, int] = {}
    use, real = Worker.use_threads, Supervisor._with_news

    def spy_use(self: Worker, threads: int) -> None:
        chosen[self] = threads
        use(self, threads)

    def spy(self: Supervisor) -> list[Worker]:
        decoding = [worker for worker in self._processes if worker.decoding]
        assert all(chosen[worker] == 1 for worker in decoding) or not self._waiting
        if decoding and not self._waiting:
            shared.append(sum(chosen[worker] for worker in decoding))
        return real(self)

    plan = make_plan(request_of(raw.path, tmp_path / "out", shard_size=shard_bytes, workers=3))
    (tmp_path / "out" / SHARDS).mkdir(parents=True)
    monkeypatch.setattr(Worker, "use_threads", spy_use)
    monkeypatch.setattr(Supervisor, "_with_news", spy)
    with open_pool(workers=3, task_timeout=300) as pool:
        receipts = dict(build_shards(plan.specs, plan.found_rows.source, tmp_path / "out", pool))
    assert sorted(receipts) == list(range(len(plan.specs)))
    assert shared
    assert set(shared) == {3}


def test_the_largest_shards_are_handed_out_first(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 40, "val": 3})
    specs = make_plan(request_of(raw.path, tmp_path / "out", shard_size=30_000)).specs
    given_out: list[int] = []

    class Listing:
        workers = 2

        def run(
            self, jobs: Iterable[Job[Any]], at_once: int, urgent: Urgent = nothing_urgent
        ) -> Generator[tuple[int, Any], None, None]:
            given_out.extend(job.index for job in jobs)
            assert at_once == 2
            yield from ()

        def close(self) -> None:
            pass

    assert list(build_shards(specs, FolderSource(raw.path), tmp_path / "out", Listing())) == []
    sizes = [len(specs[index].pieces) for index in given_out]
    assert sorted(given_out) == list(range(len(specs)))
    assert len(set(sizes)) > 2
    assert sizes == sorted(sizes, reverse=True)
