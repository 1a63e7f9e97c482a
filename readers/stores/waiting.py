"""Wait for a call of a library that lets no signal through, and for a busy store, until the clock ends it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from typing import TypeVar

from readers.contract.errors import StoreBusyError

T = TypeVar("T")
RETRY_SECONDS = 180.0
"""No further try of a request begins so long after the first one. All that asks a store keeps to it."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 15.0
"""Seconds before the second try, and the most before any."""
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


def pauses() -> Iterator[float]:
    """Yield the seconds before each further try, until RETRY_SECONDS are over. Chance keeps many processes apart."""
    until, pause = time.monotonic() + RETRY_SECONDS, FIRST_PAUSE
    while time.monotonic() < until:
        yield random.uniform(pause / 2, pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def answered(call: Callable[[], T]) -> T:
    """Call a function that may be called again until the store answers. Raise its last error after RETRY_SECONDS."""
    for pause in pauses():
        try:
            return call()
        except StoreBusyError:
            time.sleep(pause)
    return call()


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
