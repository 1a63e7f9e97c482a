"""Submitting tasks: how many are in flight, what is tried again, and what ends a build. No time passes."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from queue import SimpleQueue
from typing import Any

import pytest
from drills.broken_workers import Night, built
from drills.simulated_cluster import Outcome, SimulatedCluster, never

from packer.engines import build_task
from packer.engines.engine import Build
from packer.engines.submit import AGAIN, AHEAD, LONGEST_PAUSE, MOST_TRIES, RECOUNT, pause, submit_all
from packer.engines.task import Answer, BuiltShard, Failed, Refused, Task, Wrong, answer_of, answer_text, read_answer
from packer.errors import EngineError, InputError, UnavailableError, UsageError, VersionsError
from packer.workers.cluster_events import ClusterEvents

BUILT = BuiltShard("0" * 32, "1" * 64, 3, 1, (("train/7", "is cut short"),), 1000, "n17/1")
Decided = Callable[[Task, int], Outcome]
"""Returns the result of a task at its try of this number."""


def tasks(count: int) -> Iterator[Task]:
    return (Task("/plans/1", "a" * 64, number, "/out", None, 300) for number in range(count))


class SimulatedEngine(SimulatedCluster):
    """A task takes `seconds` of a slot."""

    def __init__(self, outcome: Decided, slots: int = 4, seconds: Callable[[], float] = lambda: 1.0) -> None:
        super().__init__()
        self.outcome, self.free, self.slots, self.seconds = outcome, slots, slots, seconds
        self.tries = Counter[int]()
        self.most = self.in_flight = 0

    def submit(self, build: Build, task: str, /) -> Future[str]:
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        return super().submit(build, task)

    @property
    def has_slot(self) -> bool:
        return self.free > 0

    def begin(self, task: Task) -> tuple[float, Callable[[], Outcome]]:
        self.free -= 1

        def end() -> Outcome:
            self.free += 1
            self.in_flight -= 1
            self.tries[task.shard] += 1
            return self.outcome(task, self.tries[task.shard])

        return self.seconds(), end


def submitted(engine: SimulatedEngine, count: int = 20) -> list[int]:
    found = submit_all(engine.connection(lambda: engine.slots), never, tasks(count), ClusterEvents(), engine)
    return sorted(task.shard for task, built in found if built == BUILT)


def good(task: Task, tries: int) -> str:
    return answer_text(BUILT)


def test_twice_as_many_tasks_as_slots_are_in_flight() -> None:
    engine = SimulatedEngine(good, slots=3)
    assert submitted(engine) == list(range(20))
    assert engine.most == AHEAD * 3


def test_slots_are_counted_again() -> None:
    engine = SimulatedEngine(good, slots=2)
    for number, _ in enumerate(
        submit_all(engine.connection(lambda: engine.slots), never, tasks(200), ClusterEvents(), engine)
    ):
        if number == 10:
            engine.slots, engine.free = 20, engine.free + 18
    assert engine.most == AHEAD * 20


def test_an_engine_without_workers_yet_gets_tasks() -> None:
    engine = SimulatedEngine(good, slots=0)
    found = submit_all(engine.connection(lambda: engine.slots), never, tasks(5), ClusterEvents(), engine)
    engine.slots = engine.free = 1
    assert len(list(found)) == 5


FAILURES: dict[str, str | BaseException] = {
    "an answer": answer_text(Failed("503 from the store")),
    "an error of the engine": RuntimeError("the worker was killed"),
    "a cancelled task": CancelledError(),
    "no answer": "Traceback",
    "a wrong answer": json.dumps({"built": {"fingerprint": "../../etc"}}),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_infrastructure_is_tried_again(failure: str) -> None:
    def failing(task: Task, tries: int) -> str | BaseException:
        return FAILURES[failure] if tries < 3 and task.shard % 2 else good(task, tries)

    engine = SimulatedEngine(failing)
    assert submitted(engine) == list(range(20))
    assert engine.tries[1] == 3
    assert engine.tries[0] == 1


def test_what_fails_again_and_again_ends_the_build() -> None:
    engine = SimulatedEngine(lambda task, tries: FAILURES["an answer"] if task.shard == 7 else good(task, tries))
    with pytest.raises(UnavailableError, match="shard 7 failed 8 times, at last: 503 from the store") as error:
        submitted(engine)
    assert engine.tries[7] == MOST_TRIES
    assert error.value.exit_code == 75
    assert engine.time > (1 + 2 + 4 + 8 + 16 + 32 + LONGEST_PAUSE) / 2


def test_a_task_that_waits_does_not_stop_the_others() -> None:
    engine = SimulatedEngine(
        lambda task, tries: FAILURES["an answer"] if task.shard == 0 and tries < 5 else good(task, tries)
    )
    found = [
        task.shard for task, _ in submit_all(engine.connection(lambda: 4), never, tasks(30), ClusterEvents(), engine)
    ]
    assert found[-1] == 0
    assert sorted(found) == list(range(30))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Refused("n17 has OpenCV 4.11, the plan 4.12"), VersionsError),
        (Wrong("UsageError", "a function is not there"), UsageError),
        (Wrong("InputError", "the raw folder cannot be used"), InputError),
    ],
)
def test_data_and_versions_are_not_tried_again(answer: Answer, error: type[Exception]) -> None:
    engine = SimulatedEngine(lambda task, tries: answer_text(answer) if task.shard == 5 else good(task, tries))
    with pytest.raises(error):
        submitted(engine)
    assert engine.tries[5] == 1


def test_a_worker_without_the_package_ends_the_build() -> None:
    engine = SimulatedEngine(lambda task, tries: ModuleNotFoundError("No module named 'packer'"))
    with pytest.raises(VersionsError, match="install the same segpack there"):
        submitted(engine)
    assert max(engine.tries.values()) == 1


def test_an_engine_that_takes_no_tasks_is_tried_again() -> None:
    class Closed(SimulatedEngine):
        refusals = 3

        def submit(self, build: Build, task: str, /) -> Future[str]:
            self.refusals -= 1
            if self.refusals >= 0:
                raise RuntimeError("cannot connect to the scheduler")
            return super().submit(build, task)

    assert submitted(Closed(good)) == list(range(20))


def test_slots_that_cannot_be_counted_are_those_of_before() -> None:
    engine, counts = SimulatedEngine(good, slots=3), iter([3])

    def slots() -> int:
        for count in counts:
            return count
        raise ConnectionError("the head of the cluster is away")

    found = submit_all(engine.connection(slots), never, tasks(200), ClusterEvents(), engine)
    assert sorted(task.shard for task, _ in found) == list(range(200))
    assert engine.most == AHEAD * 3


def test_a_cluster_that_is_gone_for_good_ends_the_build_though_its_tasks_never_do() -> None:
    """A client that gave up on its scheduler leaves the tasks that it had without an end."""
    engine, counts = SimulatedEngine(good, slots=2, seconds=lambda: float("inf")), iter([2, 2])

    def slots() -> int:
        for count in counts:
            return count
        raise UnavailableError("the scheduler went away")

    with pytest.raises(UnavailableError, match="the scheduler went away"):
        list(submit_all(engine.connection(slots), never, tasks(20), ClusterEvents(), engine))
    assert engine.time >= 2 * RECOUNT


def test_an_engine_without_workers_is_reported_now_and_then() -> None:
    """Workers come after an hour."""

    class Late(SimulatedEngine):
        def next(self, finished: SimpleQueue[Any], seconds: float) -> Any:
            if self.time >= 3600 and not self.slots:
                self.slots = self.free = 1
                self._start()
            return super().next(finished, seconds)

    engine, heard = Late(good, slots=0), list[float]()
    found = submit_all(
        engine.connection(lambda: engine.slots), never, tasks(5), ClusterEvents(waits=heard.append), engine
    )
    assert len(list(found)) == 5
    assert heard == [RECOUNT + number * AGAIN for number in range(6)]


def test_an_engine_whose_workers_come_soon_is_not_reported() -> None:
    engine, counts, heard = SimulatedEngine(good, slots=3), iter([0, 3, 0]), list[float]()
    found = submit_all(
        engine.connection(lambda: next(counts, 3)), never, tasks(50), ClusterEvents(waits=heard.append), engine
    )
    assert len(list(found)) == 50
    assert not heard


def test_pauses_grow_and_differ() -> None:
    assert [max(pause(tries) for _ in range(500)) <= 2.0 ** (tries - 1) for tries in range(1, 8)] == [True] * 7
    assert all(LONGEST_PAUSE / 2 <= pause(20) <= LONGEST_PAUSE for _ in range(100))
    assert len({pause(3) for _ in range(10)}) > 1


def test_a_thousand_workers_of_which_a_twentieth_dies() -> None:
    """Each task that is on a worker when it dies fails, and the worker does not come back."""
    rng = random.Random(17)
    deaths = 50

    def dying(task: Task, tries: int) -> str | BaseException:
        nonlocal deaths
        if deaths and rng.random() < 0.05:
            deaths -= 1
            engine.free -= 1
            engine.slots -= 1
            return RuntimeError("the worker died")
        return good(task, tries)

    engine = SimulatedEngine(dying, slots=1000, seconds=lambda: rng.uniform(5, 15))
    assert submitted(engine, 10_000) == list(range(10_000))
    assert engine.slots == 950
    assert sum(engine.tries.values()) == 10_050


TASK = Task("/plans/1", "a" * 64, 7, "/out", "/raw", 300)


def test_texts_come_back() -> None:
    assert Task.from_text(TASK.to_text()) == TASK
    for answer in (BUILT, Refused("why"), Failed("why"), Wrong("UsageError", "why")):
        assert read_answer(answer_text(answer)) == answer


@pytest.mark.parametrize(
    "change",
    [{"shard": -1}, {"shard": "7"}, {"sha256": "../.."}, {"plan": 3}, {"raw": 1}, {"task_timeout": 0}, {"more": 1}],
)
def test_tasks_are_checked(change: dict[str, Any]) -> None:
    with pytest.raises(EngineError, match="a task is not valid"):
        Task.from_text(json.dumps({**json.loads(TASK.to_text()), **change}))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "[" * 100_000, '{"built": 3}', '{"error": "SystemExit", "about": ""}']
)
def test_answers_are_checked(text: str) -> None:
    with pytest.raises(EngineError, match="an answer is not valid"):
        read_answer(text)


def test_only_what_is_wrong_everywhere_is_not_tried_again() -> None:
    assert answer_of(UsageError("no such function"), "n17") == Wrong("UsageError", "no such function")
    lost = Failed("n17: OSError: [Errno 5] Input/output error", "n17/1", passes=True)
    assert answer_of(OSError(5, "Input/output error"), "n17/1") == lost
    lasting = Failed("n17: raw: is not there", "n17/1", passes=False)
    assert answer_of(InputError("raw: is not there"), "n17/1") == lasting


def worker_of(number: int) -> str:
    return f"n{number}/n{number}"


def failing_on(worker: str, passes: bool = False) -> str:
    return answer_text(Failed(f"{worker}: RAW is not there", worker, passes))


@pytest.mark.parametrize(("passes", "code"), [(False, 1), (True, 75)])
def test_workers_that_all_fail_end_a_build_at_once(passes: bool, code: int) -> None:
    numbers = itertools.count()
    engine = SimulatedEngine(lambda task, tries: failing_on(worker_of(next(numbers) % 3), passes))
    failures, avoided = list[str](), list[str]()
    events = ClusterEvents(failed=lambda shard, why: failures.append(why), avoided=avoided.append)
    found = submit_all(engine.connection(lambda: 4, lambda: {"n0", "n1", "n2"}), never, tasks(20), events, engine)
    with pytest.raises(
        EngineError, match=r"all 3 workers failed 3 times in a row, at last n\d/n\d: RAW is not"
    ) as error:
        list(found)
    assert error.value.exit_code == code
    assert len(failures) == 9
    assert avoided == ["n0", "n1"]
    assert engine.time < 10


def test_a_shard_does_not_fail_with_a_worker_that_always_fails() -> None:
    """An engine that cannot avoid a broken worker gives it each shard often, and the shards are built at last."""
    engine = SimulatedEngine(lambda task, tries: failing_on(worker_of(1)) if tries <= MOST_TRIES else good(task, tries))
    found = submit_all(engine.connection(lambda: 4, lambda: {"n1", "n2"}), never, tasks(20), ClusterEvents(), engine)
    assert sorted(task.shard for task, _ in found) == list(range(20))


def test_a_twentieth_of_broken_workers_draws_few_tasks() -> None:
    night = Night(100, 0.05)
    assert built(night, 2000) == 2000
    failures = night.tasks.total() - night.tasks["good"]
    assert 15 <= failures < 0.1 * 2000


def test_failures_in_a_row_are_kept_back(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("packer.engines.build_task.time.sleep", waited.append)
    monkeypatch.setattr(build_task, "_failures", 0)
    for answer in (*[failing_on("n1/n1")] * 9, answer_text(BUILT), failing_on("n1/n1"), failing_on("n1/n1")):
        assert build_task._kept_back(answer) == answer
    assert waited == [0, 1, 2, 4, 4, 4, 4, 4, 4, 0, 0, 1]
