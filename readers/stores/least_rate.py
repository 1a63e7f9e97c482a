"""The least rate at which a store must send. A server that sends a byte a second is never silent, and never ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from readers.contract.errors import StoreBusyError

LEAST_RATE = 1 << 10
"""Bytes a second."""
WINDOW_SECONDS = 60.0
"""The rate is measured over at least this number of seconds, so a short pause ends nothing."""
CALL_RATE = 1 << 14
"""Bytes a second of a call that shows none of its bytes before the last one has come."""


class LeastRate:
    """Watches the bytes of one answer of a store."""

    def __init__(self, what: str) -> None:
        self._what, self._begun, self._bytes = what, time.monotonic(), 0

    def came(self, size: int) -> None:
        """Count bytes that came. Raise StoreBusyError if they were too few since the window began."""
        self._bytes += size
        seconds = time.monotonic() - self._begun
        if seconds < WINDOW_SECONDS:
            return
        if self._bytes < LEAST_RATE * seconds:
            least = f"less than {LEAST_RATE} bytes a second are a store that does not answer"
            raise StoreBusyError(f"{self._what}: {self._bytes} bytes came in {seconds:.0f} s; {least}")
        self._begun, self._bytes = time.monotonic(), 0


def call_seconds(size: int) -> float:
    """Return how long a call may take that returns this number of bytes at once."""
    return WINDOW_SECONDS + size / CALL_RATE


def gather(chunks: Iterator[Any], rate: LeastRate, least: int) -> list[memoryview]:
    """Return the next chunks of an answer, `least` bytes together; fewer at its end, and none after it."""
    received, size = list[memoryview](), 0
    while size < least and (chunk := next(chunks, None)) is not None:
        received.append(memoryview(chunk))
        size += len(received[-1])
        rate.came(len(received[-1]))
    return received
