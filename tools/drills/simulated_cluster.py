"""A cluster without a machine, in which no time passes: it is an engine, and its clock."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from concurrent.futures import Future
from heapq import heappop, heappush
from queue import SimpleQueue
from typing import TypeAlias, TypeVar

from packer.engines.engine import Build, Connection
from packer.engines.submit import Clock
from packer.engines.task import Task

T = TypeVar("T")
Outcome: TypeAlias = "str | BaseException"
"""The answer to a task, or the error that the engine raises for it."""


class SimulatedCluster(Clock, ABC):
    """Has a queue of tasks. A class of it says who takes them, for how long, and what comes of them."""

    def __init__(self) -> None:
        self.time = 0.0
        self.avoided = set[str]()
        self._queue: list[tuple[Future[str], Task]] = []
        self._ends: list[tuple[float, int, Future[str], Callable[[], Outcome]]] = []
        self._count = 0

    @property
    @abstractmethod
    def has_slot(self) -> bool:
        """Return whether a task can begin now."""

    @abstractmethod
    def begin(self, task: Task) -> tuple[float, Callable[[], Outcome]]:
        """Begin a task. Return the seconds that it takes, and the function that ends it."""

    def submit(self, build: Build, task: str, /) -> Future[str]:
        future: Future[str] = Future()
        self._queue.append((future, Task.from_text(task)))
        self._start()
        return future

    def avoid(self, worker: str) -> None:
        self.avoided.add(worker)

    def connection(
        self, slots: Callable[[], int], workers: Callable[[], Collection[str]] = lambda: {"n1"}
    ) -> Connection:
        """Return this cluster as a connection, with functions that count."""
        return Connection(self, slots, workers)

    def shutdown(self, wait: bool = True) -> None:
        raise AssertionError("who opened the engine closes it")

    def now(self) -> float:
        return self.time

    def next(self, finished: SimpleQueue[T], seconds: float) -> T | None:
        until = self.time + seconds
        while finished.empty() and self._ends and self._ends[0][0] <= until:
            self.time, _, future, end = heappop(self._ends)
            outcome = end()
            self._start()
            future.set_exception(outcome) if isinstance(outcome, BaseException) else future.set_result(outcome)
        if finished.empty():
            self.time = max(self.time, until)
            return None
        return finished.get()

    def _start(self) -> None:
        while self.has_slot and self._queue:
            future, task = self._queue.pop(0)
            seconds, end = self.begin(task)
            self._count += 1
            heappush(self._ends, (self.time + seconds, self._count, future, end))


def never(task: str, worker: str) -> str:
    """Stand for the function that a worker calls."""
    raise AssertionError("a simulated cluster calls nothing")
