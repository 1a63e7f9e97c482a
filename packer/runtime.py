"""The process itself: BLAS threads, garbage collection, and a timer for the steps of a command."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

THREADS = "OPENBLAS_NUM_THREADS"


@contextmanager
def no_blas_threads() -> Iterator[None]:
    """Give OpenBLAS one thread if it is loaded inside, here or in a process that is started inside.

    Its threads wait in a busy loop, which costs a quarter of a second of CPU for every start of Python.
    """
    if THREADS in os.environ:
        yield
        return
    os.environ[THREADS] = "1"
    try:
        yield
    finally:
        os.environ.pop(THREADS, None)


@contextmanager
def no_collecting() -> Iterator[None]:
    """Switch the garbage collector off inside. Only cycles of objects stay until the end."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Timer:
    """The seconds that each step of a command took, in the order in which the steps began."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Add the time spent inside to a step."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - started
