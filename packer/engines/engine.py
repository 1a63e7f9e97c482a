"""`Engine`: the interface of everything that runs a function on other machines."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, TypeAlias

Build: TypeAlias = Callable[[str, str], str]
"""Called in a worker with the text of a task and the name of the worker. It returns the text of an answer."""


class Engine(Protocol):
    """Runs functions. It passes to them the task, and the text that names their worker: HOST/ID."""

    def submit(self, build: Build, task: str, /) -> Future[str]:
        """Run `build(task, worker)` somewhere, perhaps more than once."""

    def avoid(self, worker: str) -> None:
        """Submit the next tasks to other workers."""

    def shutdown(self, wait: bool = True) -> None:
        """Take no more tasks. Without `wait`, drop those that have not finished."""


@dataclass(frozen=True)
class Connection:
    """An engine, how many tasks it can run at the same time now, and the names of the workers that it has now."""

    engine: Engine
    slots: Callable[[], int]
    workers: Callable[[], Collection[str]]
