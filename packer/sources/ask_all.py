"""`ask_all`: asks for something of many files, in one thread while they answer at once, in many while they do not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

THREADS = 16
"""Threads wait for the disk or the network, not for the processor."""
WINDOW = 256
"""Items after which the time spent is counted from zero."""
TOGETHER = 1024
"""Items that all threads ask for, before one thread tries alone again."""
PATIENCE = 0.005
"""Seconds that one thread may always wait: another process may have had its core."""
WAITING = 2
"""Times the seconds of work that one thread may wait in addition. On files in memory, 16 threads need four times as
long as one, as they take turns to run Python."""


def ask_all(ask: Callable[[Item], Answer], items: Iterable[Item], threads: int = THREADS) -> Iterator[Answer]:
    """Yield the answer for each item, in their order."""
    remaining = iter(items)
    waited = worked = 0.0
    with ThreadPoolExecutor(threads) as pool:  # starts no thread before it has something to do
        for number, item in enumerate(remaining):
            if number % WINDOW == 0:
                waited = worked = 0.0
            started, before = time.monotonic(), time.thread_time()
            answer = ask(item)
            seconds = time.thread_time() - before
            worked, waited = worked + seconds, waited + time.monotonic() - started - seconds
            yield answer
            if waited > PATIENCE + WAITING * worked:
                yield from pool.map(ask, islice(remaining, TOGETHER))
                waited = worked = 0.0
