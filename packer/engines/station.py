"""A station: a process of ours next to a worker of an engine. It builds the shards that the worker passes to it.

    python -m packer.engines.station

Tasks come on stdin, one a line, and answers go to stdout. It has a pool of one worker process, which may crash. It has
no threads of the engine, so it can have such children. It ends with its stdin, and its worker ends with it.
"""

from __future__ import annotations

import _thread
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from queue import SimpleQueue
from typing import IO

from packer.engines.task import MOST_REJECTS, Answer, BuiltShard, Refused, Task, answer_of, answer_text
from packer.workers.pool import Pool
from packer.workers.run import open_pool
from packer.workers.stored_plan import OpenBuild, open_build
from readers.contract.receipt import Receipt

LONGEST_END = 4.0
"""Seconds to end in order."""
HOST = socket.gethostname()
WORKER = f"{HOST}:{os.getppid()}"
"""The worker of the engine that has this station."""


class Station:
    """Builds one shard after the other. It keeps the plan, OUT and the pool of the last one."""

    def __init__(self) -> None:
        self._opened: tuple[tuple[str, str, str | None, str], OpenBuild] | None = None
        self._builds, self._pools = ExitStack(), ExitStack()
        self._pool: tuple[int, Pool] | None = None

    def close(self) -> None:
        """End the worker."""
        self._pools.close()
        self._builds.close()

    def answer(self, text: str) -> Answer:
        """Build the shard that a task names."""
        try:
            task = Task.from_text(text)
            opened = self._open(task)
            if opened.planned.refusal is not None:
                return Refused(f"{HOST} {opened.planned.refusal}")
            return _built(opened.build(task.shard, self._pool_of(task.task_timeout)))
        except Exception as error:  # noqa: BLE001 - the coordinator decides what to do
            return answer_of(error, WORKER)

    def _open(self, task: Task) -> OpenBuild:
        key = task.plan, task.sha256, task.raw, task.out
        if self._opened is None or self._opened[0] != key:
            self._opened = None
            self._builds.close()
            self._opened = key, self._builds.enter_context(open_build(*key))
        return self._opened[1]

    def _pool_of(self, task_timeout: int) -> Pool:
        if self._pool is None or self._pool[0] != task_timeout:
            self._pools.close()
            self._pool = task_timeout, self._pools.enter_context(open_pool(1, task_timeout))
        return self._pool[1]


def _built(receipt: Receipt) -> BuiltShard:
    rejects = tuple((f"{receipt.split}/{reject.key}", reject.reason) for reject in receipt.rejects[:MOST_REJECTS])
    return BuiltShard(
        receipt.fingerprint, receipt.digest, receipt.rows, len(receipt.rejects), rejects, receipt.bytes, WORKER
    )


def main() -> None:
    """Answer tasks until stdin ends."""
    answers = _take_stdout()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tasks: SimpleQueue[str | None] = SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin, tasks), daemon=True).start()
    station = Station()
    try:
        for text in _until_none(tasks):
            answers.write(f"{answer_text(station.answer(text))}\n")
            answers.flush()
    except (KeyboardInterrupt, BrokenPipeError):
        pass
    finally:
        station.close()
    os._exit(0)  # a flush of stdout would fail: no process reads it any more


def _read(lines: IO[str], tasks: SimpleQueue[str | None]) -> None:
    """Read tasks. At the end of stdin, end the process in the middle of a shard, too."""
    for line in lines:
        tasks.put(line)
    tasks.put(None)
    _thread.interrupt_main()
    time.sleep(LONGEST_END)
    os._exit(1)


def _until_none(tasks: SimpleQueue[str | None]) -> Iterator[str]:
    while (text := tasks.get()) is not None:
        yield text


def _take_stdout() -> IO[str]:
    """Return stdout for answers. Whatever else is printed goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


if __name__ == "__main__":
    main()
