"""`Engine`: the interface of everything that runs a function on other machines."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol


class Engine(Protocol):
    """A subset of `concurrent.futures.Executor`."""

    def submit(self, build: Callable[[str], str], task: str, /) -> Future[str]:
        """Run `build(task)` somewhere, perhaps more than once."""

    def shutdown(self, wait: bool = True) -> None:
        """Take no more tasks. Without `wait`, drop those that have not finished."""


@dataclass(frozen=True)
class Connection:
    """An engine, and functions that count how many tasks it can run at the same time now, and its workers."""

    engine: Engine
    slots: Callable[[], int]
    workers: Callable[[], int]
