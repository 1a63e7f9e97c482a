"""A station: a process of ours next to a worker of an engine. It builds the shards that the worker passes to it.

    python -m packer.engines.run_station HOST/ID

Tasks come on stdin, one a line, and answers go to stdout. It has a pool of one worker process, which may crash. It has
no threads of the engine, so it can have such children. It ends with its stdin, and its worker ends with it.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from queue import SimpleQueue
from typing import IO

from packer.engines.task import Answer, Failed, answer_text, host_of

LONGEST_END = 4.0
"""Seconds to end in order."""


def main() -> None:
    """Answer tasks until stdin ends."""
    answers = _take_stdout()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tasks: SimpleQueue[str | None] = SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin, tasks), daemon=True).start()
    with ExitStack() as stack:
        try:
            answer = _answering(sys.argv[1], stack)
            for text in _until_none(tasks):
                answers.write(f"{answer_text(answer(text))}\n")
                answers.flush()
        except (KeyboardInterrupt, BrokenPipeError):
            pass
    os._exit(0)  # a flush of stdout would fail: no process reads it any more


def _answering(worker: str, stack: ExitStack) -> Callable[[str], Answer]:
    """Return the function that answers tasks. If a library is missing, all answers say so."""
    try:
        from packer.engines.station import Station
    except (ImportError, OSError) as error:
        failed = Failed(f"{host_of(worker)}: {type(error).__name__}: {error}", worker, passes=False)
        return lambda task: failed
    return stack.enter_context(closing(Station(worker))).answer


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
