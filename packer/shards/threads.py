"""Do a list of work in threads whose number may change while it is done."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Threads = Callable[[], int]
"""A function that returns how many threads to use from now on: at least one."""


def one_thread() -> int:
    return 1


def in_threads(work: Callable[[Item], Result], items: Sequence[Item], threads: Threads) -> list[Result]:
    """Return the results of all items in order. The first error is raised when every thread has ended.

    The calling thread works, too. Before each item it asks for the number of threads and starts those that are missing.
    """
    results: list[Any] = [None] * len(items)
    errors: list[BaseException] = []
    ended = threading.Event()
    numbers = itertools.count()
    helpers: dict[int, threading.Thread] = {}

    def work_on(number: int) -> None:
        """Take items as long as there are any, and this thread is one of those that are wanted."""
        while not ended.is_set() and number < threads():
            index = next(numbers)
            if index >= len(items):
                return
            if number == 0:
                start_missing(len(items) - index)
            try:
                results[index] = work(items[index])
            except BaseException as error:  # noqa: BLE001 - raised by the calling thread
                errors.append(error)
                ended.set()

    def start_missing(left: int) -> None:
        for number in range(1, min(threads(), left)):
            if number not in helpers or not helpers[number].is_alive():
                helpers[number] = threading.Thread(target=work_on, args=(number,))
                helpers[number].start()

    try:
        work_on(0)
    except BaseException:
        ended.set()
        raise
    finally:
        for helper in helpers.values():
            helper.join()
    if errors:
        raise errors[0]
    return results
