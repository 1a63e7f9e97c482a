"""Tell that this process waits for a store: to the log of Python, or to the program, if it listens itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeAlias

Listener: TypeAlias = Callable[[str, float], object]
"""Called with the reason of a wait, which names the store, and the most seconds until it ends."""


def _log(why: str, seconds: float) -> None:
    import logging  # which costs 13 ms, and almost no process waits

    logging.getLogger(__name__).warning("%s; it is tried again for up to %.0f s", why, seconds)


class _Heard:
    """Passes on one wait at a time: when a store is busy, many threads and processes wait for many objects."""

    def __init__(self) -> None:
        self._lock, self._next = threading.Lock(), 0.0
        self.listener: Listener = _log

    def tell(self, why: str, seconds: float) -> None:
        with self._lock:
            if time.monotonic() < self._next:
                return
            self._next = time.monotonic() + seconds
        self.listener(why, seconds)


_HEARD = _Heard()


def tell_of_wait(why: str, seconds: float) -> None:
    """Tell why this process waits, and for how long at most, unless it told of a wait that may still go on."""
    _HEARD.tell(why, seconds)


def hear_of_waits(listener: Listener) -> None:
    """Have a function called instead of the log of Python."""
    _HEARD.listener = listener
