"""Signals that end a command: the first one stops it in order, a second one ends the process at once.

After the first one a command has LONGEST_END seconds, then its process ends at once, too: it may wait for a thread that
reads from a file system without an answer. A build that ends at once is as safe as one that was killed.
Signals that are ignored when the command starts stay ignored, as `nohup` wants it.
"""

from __future__ import annotations

import _thread
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LONGEST_END = 4.0
"""Seconds from the first signal to the end of the process, if the command does not end before."""
Handler = Callable[[int, FrameType | None], Any] | signal.Handlers
_unhurried = threading.Lock()


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
    ended = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        handle_signals(exit_at_once)
        _thread.start_new_thread(_end_later, (number, ended))  # a Thread takes locks that this thread may hold
        raise KeyboardInterrupt if number == signal.SIGINT else StoppedError(number)

    try:
        with _handled(stop):
            yield
    finally:
        ended.set()


@contextmanager
def ending_at_once() -> Iterator[None]:
    """End the process at once inside, when a signal arrives: an import that is interrupted leaves half a library."""
    with _handled(exit_at_once):
        yield


@contextmanager
def no_hurry() -> Iterator[None]:
    """Take more than LONGEST_END seconds to end inside, for another process that must end in order."""
    with _unhurried:
        yield


def _end_later(number: int, ended: threading.Event) -> None:
    """End the process unless the command ends before."""
    if not ended.wait(LONGEST_END):
        with _unhurried:
            pass
        if not ended.wait(LONGEST_END / 8):
            os.write(2, b"packer: ended without waiting for the rest\n")
            os._exit(128 + number)


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
