"""The supervisor: hands shards to worker processes, and replaces those that die or hang. It decodes nothing itself."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Generic, TypeVar

from packer.errors import EngineError
from packer.workers.jobs import MOST_FAILURES, Case
from packer.workers.process import Worker, WorkerDiedError, signals_held_back
from packer.workers.worker import READY, SETTLING

Answer = TypeVar("Answer")

PATIENCE = 300
"""Seconds without a sign of life after which a worker is given up, whatever it is at."""
SETTLING_SHARE = 0.25
"""Of the processes that decode: so many more, and at least one, may be waiting for the disk."""
TICK = 0.5
"""Seconds from one look at what is in work to the next."""


class Supervisor(Generic[Answer]):
    """A worker has one task, and no more than `processes` workers decode: memory is a shard for each of these.

    While some settle, others take their places, so that no core waits for the disk; but no more than SETTLING_SHARE.
    """

    def __init__(self, raw: Path, out: Path | None, processes: int, threads: int, task_timeout: int) -> None:
        self._raw, self._out = raw, out
        self._processes, self._threads = processes, threads
        self._task_timeout = task_timeout
        self._waiting: deque[Case[Answer]] = deque()
        self._workers: list[Worker] = []
        self._stillborn = 0
        self._looked = time.monotonic()

    def run(self, cases: Iterable[Case[Answer]]) -> Generator[tuple[int, Answer], None, None]:
        """The number and the answer of each case, as they come; closing it stops the rest."""
        self._waiting.extend(cases)
        try:
            while self._staff():
                for worker in self._woken():
                    done = self._attend(worker)
                    if done is not None:
                        yield done
                self._end_overdue()
        finally:
            self._dismiss()

    def _staff(self) -> bool:
        """Hand out what waits and start the workers that are missing; False when there is nothing left to do."""
        decoding = sum(worker.case is not None and not worker.settling for worker in self._workers)
        for worker in self._workers:
            if worker.ready and self._waiting and decoding < self._processes:
                worker.give(self._waiting.popleft())
                decoding += 1
        busy = sum(worker.case is not None for worker in self._workers)
        wanted = min(self._processes - decoding, len(self._waiting))
        most = self._processes + max(1, int(self._processes * SETTLING_SHARE))
        while len(self._workers) < min(busy + wanted, most):
            with signals_held_back():
                self._workers.append(Worker(self._raw, self._out, self._threads))
        return busy > 0 or bool(self._waiting)

    def _woken(self) -> list[Worker]:
        """The workers that have something to say, or died, within a tick."""
        signs = wait([sign for worker in self._workers for sign in worker.signs], TICK)
        return [worker for worker in self._workers if any(sign in signs for sign in worker.signs)]

    def _attend(self, worker: Worker) -> tuple[int, Answer] | None:
        """Take in what a worker says; gives what is to be yielded."""
        try:
            text = worker.hear()
        except WorkerDiedError:
            self._bury(worker, worker.watch.places())
            return None
        if text == SETTLING:
            return None
        case, worker.case = worker.case, None
        if case is None or text == READY:
            self._stillborn = 0
            return None
        answer = case.read(text)
        if answer is None:
            self._waiting.appendleft(case)
            return None
        return case.number, answer

    def _end_overdue(self) -> None:
        """A pair that takes too long dies with its worker, and a worker that was stopped dies whatever it is at."""
        now = time.monotonic()
        awake, self._looked = min(now - self._looked, 2 * TICK), now
        for worker in list(self._workers):
            place = worker.watch.overdue(awake, self._task_timeout)
            if place is not None:
                self._bury(worker, (place,), f"took longer than --task-timeout {self._task_timeout} s")
            elif worker.watch.silent(awake) > max(PATIENCE, self._task_timeout):
                self._bury(worker, worker.watch.places(), "had the decoder stopped")

    def _bury(self, worker: Worker, places: Sequence[int], cause: str | None = None) -> None:
        """End a worker for good; its shard is the next to be handed out."""
        worker.end()
        self._workers.remove(worker)
        if worker.case is not None:
            worker.case.died(places, cause or worker.cause())
            self._waiting.appendleft(worker.case)
        elif not worker.ready:
            self._stillborn += 1
            if self._stillborn > MOST_FAILURES:
                raise EngineError("worker processes die as they start, perhaps for want of memory; try fewer --workers")

    def _dismiss(self) -> None:
        """End all workers, also when a first signal comes meanwhile; at a second they see that their parent is gone."""
        try:
            self._end_all()
        except KeyboardInterrupt:
            self._end_all()
            raise

    def _end_all(self) -> None:
        for worker in self._workers:
            worker.kill()
        for worker in self._workers:
            worker.end()
