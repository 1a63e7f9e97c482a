"""Signals that end a command: the first one stops it in order, a second one ends the process at once.

Signals that are ignored when the command starts stay ignored, as `nohup` wants it.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Handler = Callable[[int, FrameType | None], Any] | signal.Handlers


class StoppedError(KeyboardInterrupt):
    """Ended by a signal other than Ctrl-C. Not an Exception, so that no `except Exception` swallows it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = signal.Signals(number)


def handle_signals(handler: Handler) -> dict[signal.Signals, Any]:
    """Set the handler of all ending signals that are not ignored; return the handlers before."""
    before: dict[signal.Signals, Any] = {number: signal.getsignal(number) for number in ENDING}
    handled = {number: old for number, old in before.items() if old is not signal.SIG_IGN}
    for number in handled:
        signal.signal(number, handler)
    return handled


def exit_at_once(number: int, frame: FrameType | None) -> None:
    """End the process, without cleaning up and without a traceback."""
    os._exit(128 + number)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt or StoppedError inside, when a signal arrives."""
    with _handled(_stop):
        yield


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Handle signals that arrive inside after the end of the block."""
    arrived: list[int] = []
    try:
        with _handled(lambda number, frame: arrived.append(number)):
            yield
    finally:
        if arrived:
            signal.raise_signal(arrived[0])


@contextmanager
def blocked_signals() -> Iterator[None]:
    """Have signals reach this thread after the end of the block. Processes started inside never receive them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


@contextmanager
def _handled(handler: Handler) -> Iterator[None]:
    """Set the handler inside. Only the main thread can; in others nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = handle_signals(handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _stop(number: int, frame: FrameType | None) -> None:
    handle_signals(exit_at_once)
    raise KeyboardInterrupt if number == signal.SIGINT else StoppedError(number)
