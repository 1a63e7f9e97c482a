"""The case of a glance: a pair that no decoder survives is seen as bad."""

from __future__ import annotations

from collections.abc import Sequence

from packer.engines.case import MOST_DEATHS, MOST_FAILURES
from packer.engines.task import GlanceTask, read_glance
from packer.errors import EngineError
from packer.glance import Glance, Question


class GlanceCase:
    """One question; after two deaths of workers that were looking at its pair, its answer is why."""

    def __init__(self, number: int, question: Question) -> None:
        self.number = number
        self._question = question
        self._deaths = self._failures = 0
        self._cause: str | None = None

    def task(self) -> str:
        return GlanceTask(self._question, self._cause).to_text()

    def read(self, text: str) -> Glance:
        return read_glance(text)

    def died(self, places: Sequence[int], cause: str) -> None:
        self._failures += 1
        self._deaths += bool(places)
        if self._deaths >= MOST_DEATHS:
            files = [path for path in (self._question.image, self._question.label) if path is not None]
            self._cause = f"{' or '.join(files)}: {cause}"
        if self._failures > MOST_FAILURES:
            raise EngineError(f"a worker process died {self._failures} times at {self._question.label}")
