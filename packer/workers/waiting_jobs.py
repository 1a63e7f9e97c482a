"""`WaitingJobs`: the jobs of a run that no worker has yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from packer.workers.jobs import Job

Urgent = Callable[[], Iterable[int]]
"""Returns the indices of jobs that others wait for, the most urgent first."""


def nothing_urgent() -> Iterable[int]:
    """Return nothing: jobs are taken in their order."""
    return ()


class WaitingJobs:
    """Jobs in their order. What is wanted comes first, and before it what a worker did not finish."""

    def __init__(self, jobs: Iterable[Job[Any]], urgent: Urgent = nothing_urgent) -> None:
        self._jobs = {job.index: job for job in jobs}
        self._again = deque[Job[Any]]()
        self._urgent = urgent

    def __len__(self) -> int:
        return len(self._again) + len(self._jobs)

    def take(self) -> Job[Any]:
        """Return the next job."""
        if self._again:
            return self._again.popleft()
        first = next(filter(self._jobs.__contains__, self._urgent()), None)
        return self._jobs.pop(next(iter(self._jobs)) if first is None else first)

    def put_back(self, job: Job[Any]) -> None:
        """Take back a job that has more to do."""
        self._again.appendleft(job)

    def clear(self) -> None:
        """Forget all jobs."""
        self._jobs.clear()
        self._again.clear()
