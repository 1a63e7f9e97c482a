"""Signals that end a command: the first stops it in order, a second one at once, whichever they are."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from packer.deferred import ENDING


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
