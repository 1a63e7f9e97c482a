"""Count the failures of each worker: one that fails at once draws in all tasks, because it is always idle."""

from __future__ import annotations

from collections import Counter

from packer.engines.task import Failed
from packer.errors import EngineError, UnavailableError

IN_A_ROW = 3
"""Failures without a shard between them after which a worker is broken."""


class FailingWorkers:
    """The workers whose last answers were failures."""

    def __init__(self) -> None:
        self._failures = Counter[str]()

    def built(self, worker: str) -> None:
        """Forget the failures of a worker that has built a shard."""
        self._failures.pop(worker, None)

    def failed(self, answer: Failed, workers: int) -> bool:
        """Count a failure. Return whether its worker was broken before: then it says nothing about the shard.

        Raise an error if all `workers` are broken.
        """
        before = self._failures[answer.worker]
        if answer.worker:  # an engine that loses a task does not say where
            self._failures[answer.worker] += 1
        broken = sum(count >= IN_A_ROW for count in self._failures.values())
        if broken and broken >= workers:
            kind = UnavailableError if answer.passes else EngineError
            raise kind(
                f"all {broken} workers failed {IN_A_ROW} times in a row, at last {answer.failed}; repair this and run "
                "the same command again: it continues with the shards that are there"
            )
        return before >= IN_A_ROW
