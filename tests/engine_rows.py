"""Rows with faults that a test switches on, and a coordinator that a test can kill. Light to import: workers load rows.

The folder FAULTS has a file for each fault that is on: `wait` holds a worker at the row SLOW until the file is gone,
`poison` crashes a worker at the row POISON.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from row_loaders import scene_of

if TYPE_CHECKING:
    from packer.building import Summary
    from packer.engines.engine import Build, Connection
    from packer.workers.cluster_events import ClusterEvents

FAULTS = "SEGPACK_TEST_FAULTS"
THREADS = "threads"
WAIT, POISON_ON, AT = "wait", "poison", "at-"
KEYS = [(split, f"row_{number:03d}") for split, count in (("train", 14), ("val", 6)) for number in range(count)]
SLOW, POISON = "row_004", "row_009"


def load(key: tuple[str, str]) -> dict[str, Any]:
    split, name = key
    folder = Path(os.environ[FAULTS])
    if split == "train" and name == SLOW and (folder / WAIT).exists():
        (folder / f"{AT}{os.getpid()}").touch()
        while (folder / WAIT).exists():
            time.sleep(0.01)
    if split == "train" and name == POISON and (folder / POISON_ON).exists():
        os.kill(os.getpid(), signal.SIGSEGV)
    return scene_of(key)


@contextmanager
def connect_threads(url: str) -> Iterator[Connection]:
    """An engine of two threads of this process."""
    from packer.engines.engine import Connection

    with ThreadPoolExecutor(2) as executor:
        try:
            yield Connection(Threads(executor), lambda: 2, lambda: {THREADS})
        finally:
            executor.shutdown(wait=False, cancel_futures=True)


class Threads:
    """An engine: an executor whose threads are one worker."""

    def __init__(self, executor: ThreadPoolExecutor) -> None:
        self._executor = executor

    def submit(self, build: Build, task: str, /) -> Future[str]:
        return self._executor.submit(build, task, f"here/{THREADS}")

    def avoid(self, worker: str) -> None:
        raise AssertionError(f"{worker} is the only one")

    def shutdown(self, wait: bool = True) -> None:
        raise AssertionError("who opened the engine closes it")


def build_rows(
    out: Path | str,
    url: str | None = None,
    faults: tuple[str, ...] = (),
    connect: Callable[[str], AbstractContextManager[Connection]] | None = None,
    events: ClusterEvents | None = None,
    **options: Any,
) -> Summary:
    """Build the rows into `out`, with these faults from the plan on."""
    from packer.building import build_from
    from packer.plan.request import request_of
    from packer.sources.rows import Rows

    given = {"classes": 3, "shard_size": "12KB", "workers": 2, "on_bad": "skip", "engine": url}
    request = request_of(Rows(KEYS, load, sizes=(20, 30)), out, **{**given, **options})
    folder = Path(os.environ[FAULTS])

    def planned(plan: object) -> None:
        for name in (WAIT, POISON_ON):
            (folder / name).unlink(missing_ok=True)
        for name in faults:
            (folder / name).touch()

    if connect is None and url is not None and url.startswith("threads:"):
        connect = connect_threads
    with mock.patch("packer.engines.connect.connect", connect) if connect else nullcontext():
        return build_from(request, planned=planned, events=events)


if __name__ == "__main__":
    sys.modules["engine_rows"] = sys.modules["__main__"]
    load.__module__ = "engine_rows"
    build_rows(Path(sys.argv[1]), sys.argv[2], tuple(sys.argv[3:]))
