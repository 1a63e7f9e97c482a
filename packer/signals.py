"""Signals that end a command: the first one stops it in order, a second one stops it at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

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


class StoppedError(KeyboardInterrupt):
    """Ended by a signal other than Ctrl-C. What may not be swallowed by an `except Exception` is no Exception."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = signal.Signals(number)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt or StoppedError where the command is, when one of the signals comes; one that is ignored
    stays so (nohup)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    for one in ENDING:
        if signal.getsignal(one) is not signal.SIG_IGN:
            signal.signal(one, _leave)
    raise KeyboardInterrupt if number == signal.SIGINT else StoppedError(number)


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(128 + number)
