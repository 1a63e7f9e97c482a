"""Signals that end a command, held back for a moment: what is half started or half ended cannot be left so."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def deferred() -> Iterator[None]:
    """What comes meanwhile, comes afterwards. Signals that are ignored stay so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in ENDING}
    handled = {number: one for number, one in before.items() if one is not signal.SIG_IGN}
    for number in handled:
        signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for number, one in handled.items():
            signal.signal(number, one)
        if came:
            signal.raise_signal(came[0])
