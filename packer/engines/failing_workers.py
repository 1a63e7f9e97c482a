"""Count the failures of each worker: one that fails at once draws in all tasks, because it is always idle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from packer.engines.task import Failed, id_of
from packer.errors import EngineError, UnavailableError

IN_A_ROW = 3
"""Failures without a shard between them after which a worker is broken, and gets no more tasks."""


class FailingWorkers:
    """The workers whose last answers were failures."""

    def __init__(self) -> None:
        self._failures = Counter[str]()

    def built(self, worker: str) -> None:
        """Forget the failures of a worker that has built a shard, if it is not broken."""
        if not self.is_broken(worker):
            self._failures.pop(worker, None)

    def is_broken(self, worker: str) -> bool:
        """Return whether a worker has failed so often that its failures say nothing about a shard."""
        return self._failures[worker] >= IN_A_ROW

    def failed(self, answer: Failed, workers: Collection[str]) -> bool:
        """Count a failure. Return whether its worker is broken from now on.

        Raise an error if all workers are broken, of those that there are now.
        """
        if not answer.worker:  # an engine that loses a task does not say where
            return False
        self._failures[answer.worker] += 1
        broken = {id_of(worker) for worker in self._failures if self.is_broken(worker)}
        if workers and broken.issuperset(workers):
            kind = UnavailableError if answer.passes else EngineError
            who = f"all {len(workers)} workers" if len(workers) > 1 else "the only worker"
            raise kind(
                f"{who} failed {IN_A_ROW} times in a row, at last {answer.failed}; repair this and "
                "run the same command again: it continues with the shards that are there"
            )
        return self._failures[answer.worker] == IN_A_ROW
