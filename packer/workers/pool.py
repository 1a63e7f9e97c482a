"""`Pool`: the interface of everything that runs jobs."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Protocol, TypeVar

from packer.workers.jobs import Job, Urgent, nothing_urgent

Answer = TypeVar("Answer")


class Pool(Protocol):
    """Runs jobs, one call of `run` after the other."""

    @property
    def workers(self) -> int:
        """The number of cores to use."""

    def run(
        self, jobs: Iterable[Job[Answer]], at_once: int, urgent: Urgent = nothing_urgent
    ) -> Generator[tuple[int, Answer], None, None]:
        """Yield (index, answer) of each job as it finishes. At most `at_once` jobs compute at a time. Those that are
        wanted begin first.

        Closing the generator stops the rest.
        """

    def close(self) -> None:
        """Free processes and memory. A later `run` starts new ones."""
