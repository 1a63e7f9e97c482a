"""Submit tasks to an engine, and try again those that failed because of the engine or its machines."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from queue import Empty, SimpleQueue
from typing import TypeVar

from packer.engines.engine import Build, Connection, Engine
from packer.engines.failing_workers import FailingWorkers
from packer.engines.task import Answer, BuiltShard, Failed, Refused, Task, host_of, read_answer
from packer.errors import EngineError, UnavailableError, VersionsError
from packer.workers.cluster_events import ClusterEvents

T = TypeVar("T")
AHEAD = 2
"""Tasks in flight for each slot: one that runs, and one that is there when it ends."""
RECOUNT = 5.0
"""Seconds after which the slots are counted again, because clusters grow and shrink."""
AGAIN = 600.0
"""Seconds after which missing slots are reported again."""
MOST_TRIES = 8
LONGEST_PAUSE = 60.0


class Clock:
    """The time, and waiting for what has finished. Tests have one in which no time passes."""

    def now(self) -> float:
        return time.monotonic()

    def next(self, finished: SimpleQueue[T], seconds: float) -> T | None:
        """Return the next item, or None after this number of seconds."""
        try:
            return finished.get(timeout=seconds)
        except Empty:
            return None


def pause(tries: int) -> float:
    """Return the seconds from a failure to the next try: up to 1, 2, 4 … 60, so that not all come at once."""
    return min(LONGEST_PAUSE, 2.0 ** (tries - 1)) * random.uniform(0.5, 1.0)


@dataclass(order=True)
class _Trial:
    """A task, when it is due, and how often it was tried."""

    due: float
    task: Task = field(compare=False)
    tries: int = field(default=0, compare=False)


def submit_all(
    connection: Connection,
    build: Build,
    tasks: Iterable[Task],
    events: ClusterEvents,
    clock: Clock | None = None,
) -> Iterator[tuple[Task, BuiltShard]]:
    """Yield each task with its answer, as it finishes. Raise the first error that trying again would not cure: of the
    data, of a shard that failed MOST_TRIES times, or of all workers."""
    failing = FailingWorkers()
    flight = _Flight(connection.engine, build, tasks, clock or Clock())
    counted = _Slots(connection.slots, events.waits, flight.clock.now())
    while flight.goes_on:
        now = flight.clock.now()
        flight.fill(AHEAD * counted.at(now), now)
        finished = flight.next(counted.next - now)
        if finished is None:
            continue
        trial, answer = finished
        if isinstance(answer, BuiltShard):
            failing.built(answer.worker)
            yield trial.task, answer
        elif isinstance(answer, Failed):
            events.failed(trial.task.shard, answer.failed)
            if failing.is_broken(answer.worker):
                trial.tries -= 1
            if failing.failed(answer, connection.workers()):
                connection.engine.avoid(answer.worker)
                events.avoided(host_of(answer.worker))
            flight.again(trial, answer.failed)
        elif isinstance(answer, Refused):
            raise VersionsError(f"a worker refused the plan: {answer.refused}")
        else:
            raise answer.to_error()


class _Slots:
    """The slots of an engine. It reports that there are none, once after RECOUNT and then now and again."""

    def __init__(self, count: Callable[[], int], waits: Callable[[float], object], now: float) -> None:
        self._count, self._waits = count, waits
        self._most = 0
        self._empty: float | None = None
        self._said = 0.0
        self.next = now
        """The time of the next count."""

    def at(self, now: float) -> int:
        """Return the slots at this time, at least one: a cluster may have no workers yet."""
        if now >= self.next:
            self.next = now + RECOUNT
            try:
                self._most = self._count()
            except UnavailableError:  # it does not come back, and tasks that it had may never end
                raise
            except Exception:  # noqa: BLE001 - engines raise what they like; submitting shows whether they come back
                pass
            self._report(now)
        return max(1, self._most)

    def _report(self, now: float) -> None:
        if self._most:
            self._empty = None
            return
        if self._empty is None:
            self._empty, self._said = now, now + RECOUNT - AGAIN
        if now >= self._said + AGAIN:
            self._said = now
            self._waits(now - self._empty)


class _Flight:
    """The tasks that are with the engine, those that wait for another try, and the rest."""

    def __init__(self, engine: Engine, build: Build, tasks: Iterable[Task], clock: Clock) -> None:
        self._engine, self._build, self.clock = engine, build, clock
        self._rest: Iterator[Task] | None = iter(tasks)
        self._waiting: list[_Trial] = []
        self._finished: SimpleQueue[tuple[_Trial, Future[str] | Failed]] = SimpleQueue()
        self._count = self._most = 0

    @property
    def goes_on(self) -> bool:
        return bool(self._count or self._waiting or self._rest)

    def fill(self, most: int, now: float) -> None:
        """Submit tasks until `most` are in flight. Those whose pause is over come first."""
        self._most = most
        while self._count < most and (trial := self._due(now)) is not None:
            trial.tries += 1
            self._count += 1
            try:
                future = self._engine.submit(self._build, trial.task.to_text())
            except Exception as error:  # noqa: BLE001 - engines raise what they like
                self._finished.put((trial, Failed(_text_of(error))))
            else:
                future.add_done_callback(partial(self._put, trial))

    def _put(self, trial: _Trial, done: Future[str]) -> None:
        self._finished.put((trial, done))

    def next(self, seconds: float) -> tuple[_Trial, Answer] | None:
        """Wait for a task that has finished, at most so long, or until another may be tried again."""
        if self._waiting and self._count < self._most:
            seconds = min(seconds, self._waiting[0].due - self.clock.now())
        finished = self.clock.next(self._finished, max(0.0, seconds)) if self.goes_on else None
        if finished is None:
            return None
        self._count -= 1
        trial, done = finished
        return trial, done if isinstance(done, Failed) else _answer(done)

    def again(self, trial: _Trial, why: str) -> None:
        """Have a task tried again after a pause."""
        if trial.tries >= MOST_TRIES:
            raise UnavailableError(f"shard {trial.task.shard} failed {trial.tries} times, at last: {why}")
        trial.due = self.clock.now() + pause(max(1, trial.tries))
        heappush(self._waiting, trial)

    def _due(self, now: float) -> _Trial | None:
        if self._waiting and self._waiting[0].due <= now:
            return heappop(self._waiting)
        task = None if self._rest is None else next(self._rest, None)
        if task is None:
            self._rest = None
            return None
        return _Trial(now, task)


def _answer(future: Future[str]) -> Answer:
    """Return the answer of a task. All that an engine raises is a failure of the engine."""
    try:
        return read_answer(future.result())
    except CancelledError:
        return Failed("the engine cancelled the task")
    except ImportError as error:
        return Refused(f"it cannot import what it needs ({error}); install the same segpack there")
    except Exception as error:  # noqa: BLE001 - engines raise what they like
        return Failed(_text_of(error))


def _text_of(error: Exception) -> str:
    return str(error) if isinstance(error, EngineError) else f"{type(error).__name__}: {error}"
