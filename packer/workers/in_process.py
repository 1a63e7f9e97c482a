"""`InProcess`: a pool without worker processes."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import nullcontext
from typing import TypeVar

import cv2

from packer.workers.jobs import Job, Urgent, WaitingJobs, nothing_urgent
from packer.workers.tasks import NO_MEMORY, NoMemoryError, TaskRunner

Answer = TypeVar("Answer")


class InProcess:
    """Runs one job after the other in this process.

    Tasks and answers are the messages of worker processes, so bytes, rejects and errors are the same. Nothing protects
    this process from a decoder that crashes or hangs: `task_timeout` has no effect.
    """

    def __init__(self, workers: int, task_timeout: int) -> None:
        self.workers = workers
        self._tasks = self._new_tasks()

    def run(
        self, jobs: Iterable[Job[Answer]], at_once: int, urgent: Urgent = nothing_urgent
    ) -> Generator[tuple[int, Answer], None, None]:
        waiting = WaitingJobs(jobs, urgent)
        while waiting:
            job: Job[Answer] = waiting.take()
            answer = None
            while answer is None:
                answer = self._next_answer(job)
            yield job.index, answer

    def close(self) -> None:
        self._tasks = self._new_tasks()

    def _new_tasks(self) -> TaskRunner:
        return TaskRunner(lambda index: nullcontext(), lambda index: None, lambda: None, lambda: self.workers)

    def _next_answer(self, job: Job[Answer]) -> Answer | None:
        """Run the next task of a job; None if there is more to do."""
        threads = cv2.getNumThreads()  # building a shard sets it for the whole process
        try:
            self._tasks.use_source(job.source)
            return job.read(self._tasks.run(job.task()))
        except NoMemoryError as error:
            job.crashed((error.index,), NO_MEMORY)
            return None
        finally:
            cv2.setNumThreads(threads)
