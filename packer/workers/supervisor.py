"""`Supervisor`: hands jobs to worker processes and replaces those that crash or hang. It decodes nothing itself."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Sequence
from multiprocessing.connection import wait
from typing import Any, TypeVar

from packer.errors import EngineError
from packer.signals import blocked_signals
from packer.workers.fork_server import start_fork_server
from packer.workers.jobs import MOST_FAILURES, Job, Urgent, WaitingJobs, nothing_urgent
from packer.workers.process import Worker, WorkerCrashedError
from packer.workers.worker import READY, WAITS, WRITING

Answer = TypeVar("Answer")

PATIENCE = 300
"""A worker that gives no sign of life for this number of seconds is replaced."""
WRITING_SHARE = 0.25
"""The processes that may wait for the disk, at least one, as a share of those that decode."""
TICK = 0.5
"""Seconds from one check of the heartbeats to the next."""


class Supervisor:
    """A pool of worker processes. It starts them when jobs come, and keeps them from one run to the next.

    A worker has one task at a time. At most `at_once` workers decode, so memory is bounded by as many shards. While
    some write, others take their turn, so no core waits for the disk; WRITING_SHARE limits how many.
    """

    def __init__(self, workers: int, task_timeout: int) -> None:
        self.workers = workers
        self._task_timeout = task_timeout
        self._waiting = WaitingJobs(())
        self._processes: list[Worker] = []
        self._crashed_at_start = 0
        self._checked = time.monotonic()
        start_fork_server()

    def run(
        self, jobs: Iterable[Job[Answer]], at_once: int, urgent: Urgent = nothing_urgent
    ) -> Generator[tuple[int, Answer], None, None]:
        self._waiting = WaitingJobs(jobs, urgent)
        most = at_once + max(1, int(at_once * WRITING_SHARE))
        self._end(sorted(self._processes, key=lambda worker: not worker.ready)[most:])
        try:
            while self._assign(at_once, most):
                self._share_cores(at_once)
                for worker in self._with_news():
                    done = self._attend(worker)
                    if done is not None:
                        yield done
                self._end_overdue()
        finally:
            self._waiting.clear()
            self._end([worker for worker in self._processes if worker.job is not None])

    def close(self) -> None:
        self._end(self._processes)

    def _assign(self, at_once: int, most: int) -> bool:
        """Hand out jobs and start workers that are missing; False when nothing is left to do."""
        decoding = sum(worker.decoding for worker in self._processes)
        for worker in self._processes:
            if worker.ready and self._waiting and decoding < at_once:
                worker.give(self._waiting.take())
                decoding += 1
        busy = sum(worker.job is not None for worker in self._processes)
        missing = min(at_once - decoding, len(self._waiting))
        while len(self._processes) < min(busy + missing, most):
            try:
                with blocked_signals():
                    self._processes.append(Worker(self.workers))
            except WorkerCrashedError:
                self._failed_at_start()
                break  # a killed server may still count as alive: try again after the next tick
        return busy > 0 or len(self._waiting) > 0

    def _share_cores(self, at_once: int) -> None:
        """Give the cores of workers that get no further job to those that still decode."""
        decoding = [worker for worker in self._processes if worker.decoding]
        idle = 0 if self._waiting else at_once - len(decoding)
        for number, worker in enumerate(decoding):
            worker.use_threads(1 + idle // len(decoding) + (number < idle % len(decoding)))

    def _with_news(self) -> list[Worker]:
        """Wait for a tick; return the workers that sent a message or ended."""
        ready = wait([worker.pipe for worker in self._processes], TICK)
        return [worker for worker in self._processes if worker.pipe in ready]

    def _attend(self, worker: Worker) -> tuple[int, Any] | None:
        """Read a worker's message; return what `run` yields for it, if anything."""
        try:
            text = worker.receive()
        except WorkerCrashedError:
            self._replace(worker, worker.heartbeat.indices())
            return None
        if text in (WRITING, WAITS):
            return None
        job, worker.job = worker.job, None
        if job is None or text == READY:
            self._crashed_at_start = 0
            return None
        answer = job.read(text)
        if answer is None:
            self._waiting.put_back(job)
            return None
        return job.index, answer

    def _end_overdue(self) -> None:
        """Replace workers whose pair takes too long, and workers that were stopped."""
        now = time.monotonic()
        awake, self._checked = min(now - self._checked, 2 * TICK), now
        for worker in list(self._processes):
            index = worker.heartbeat.overdue(awake, self._task_timeout)
            if index is not None:
                self._replace(worker, (index,), f"took longer than --task-timeout {self._task_timeout} s")
            elif worker.heartbeat.silent(awake) > max(PATIENCE, self._task_timeout):
                self._replace(worker, worker.heartbeat.indices(), f"had {worker.reader} stopped")

    def _replace(self, worker: Worker, indices: Sequence[int], cause: str | None = None) -> None:
        """End a worker; its job is the next to be handed out."""
        worker.end()
        self._processes.remove(worker)
        if worker.job is not None:
            worker.job.crashed(indices, cause or worker.cause())
            self._waiting.put_back(worker.job)
        elif not worker.ready:
            self._failed_at_start()

    def _failed_at_start(self) -> None:
        self._crashed_at_start += 1
        if self._crashed_at_start > MOST_FAILURES:
            raise EngineError("worker processes end as they start, perhaps because memory ran out; try fewer --workers")

    def _end(self, workers: Sequence[Worker]) -> None:
        """End these workers, even if a first signal arrives now. A second one ends the parent, which they notice."""
        workers = list(workers)
        try:
            self._end_all(workers)
        except KeyboardInterrupt:
            self._end_all(workers)
            raise

    def _end_all(self, workers: Sequence[Worker]) -> None:
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.end()
            if worker in self._processes:
                self._processes.remove(worker)
