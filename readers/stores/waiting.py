"""Wait for a call of a library that lets no signal through, and no longer than the call may take."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

T = TypeVar("T")
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
