"""Wait for a call of a library that lets no signal through, and for a busy store, until the clock ends it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from readers.contract.errors import StoreBusyError
from readers.stores.heard import tell_of_wait

T = TypeVar("T")
RETRY_SECONDS = 180.0
"""No further try of a request begins so long after the first one. All that asks a store keeps to it."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 15.0
"""Seconds before the second try, and the most before any."""
HEARD_SECONDS = 10.0
"""Seconds for which a process waits without a word."""
SIGNALS_SEEN = 0.2
"""Seconds after which a thread that waits for a call looks for signals that reached another thread."""


def interruptible(call: Callable[[], T]) -> T:
    """Return the result of a call of the client, which lets no signal through: so Ctrl-C ends the waiting, not it."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    result = _begun(call)
    while not wait([result], SIGNALS_SEEN).done:
        pass
    return result.result()


class Patience:
    """The pauses between the tries of one request, which end RETRY_SECONDS after the first try.

    An upload that may take `longer` for its size has as much longer.
    """

    def __init__(self, longer: float = 0.0) -> None:
        self._begun, self._pause, self._most = time.monotonic(), FIRST_PAUSE, RETRY_SECONDS + longer

    def wait(self, error: Exception) -> None:
        """Sleep before the next try. Raise the error of the last one if there is none.

        Chance keeps many processes apart.
        """
        waited = time.monotonic() - self._begun
        if waited >= self._most:
            raise error
        if waited >= HEARD_SECONDS:
            tell_of_wait(str(error), self._most - waited)
        time.sleep(random.uniform(self._pause / 2, self._pause))
        self._pause = min(2 * self._pause, LONGEST_PAUSE)


def answered(call: Callable[[], T], longer: float = 0.0) -> T:
    """Call a function that may be called again until the store answers. Raise its last error when `Patience` ends."""
    patience = Patience(longer)
    while True:
        try:
            return call()
        except StoreBusyError as error:
            patience.wait(error)


def within(seconds: float, call: Callable[[], T]) -> T:
    """Return the result of a call, or raise TimeoutError: its thread then goes on, and its result is ignored."""
    until = time.monotonic() + seconds
    result = _begun(call)
    while not wait([result], min(SIGNALS_SEEN, max(0.0, until - time.monotonic()))).done:
        if time.monotonic() >= until:
            raise TimeoutError(f"no answer in {seconds:.0f} s")
    return result.result()


def _begun(call: Callable[[], T]) -> Future[T]:
    """Begin a call in a thread of its own."""
    result = Future[T]()

    def run() -> None:
        try:
            result.set_result(call())
        except BaseException as error:  # noqa: BLE001 - it is raised where the call is waited for
            result.set_exception(error)

    threading.Thread(target=run, daemon=True, name="store").start()
    return result
