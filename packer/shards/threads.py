"""Do a list of work in threads whose number may change while it is done."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Threads = Callable[[], int]
"""A function that returns how many threads to use from now on: at least one."""


def one_thread() -> int:
    return 1


def in_threads(work: Callable[[Item], Result], items: Sequence[Item], threads: Threads) -> list[Result]:
    """Return the results of all items in order. The first error is raised when every thread has ended.

    The calling thread works, too. After each item it asks for the number of threads and starts those that are missing.
    """
    results: dict[int, Result] = {}
    errors: list[BaseException] = []
    left = deque(range(len(items)))
    helpers: dict[int, threading.Thread] = {}

    def work_on(number: int) -> None:
        """Take items as long as there are any, and this thread is one of those that are wanted."""
        while left and number < threads():
            if number == 0:
                start_missing()
            try:
                index = left.popleft()
            except IndexError:  # another thread has taken the last one
                return
            try:
                results[index] = work(items[index])
            except BaseException as error:  # noqa: BLE001 - raised by the calling thread
                errors.append(error)
                left.clear()

    def start_missing() -> None:
        for number in range(1, min(threads(), len(left))):
            if number not in helpers or not helpers[number].is_alive():
                helpers[number] = threading.Thread(target=work_on, args=(number,))
                helpers[number].start()

    try:
        work_on(0)
    finally:
        left.clear()
        for helper in helpers.values():
            helper.join()
    if errors:
        raise errors[0]
    return [results[index] for index in range(len(items))]
