"""OpenBLAS, which numpy and OpenCV bring along: nobody here multiplies matrices, so its threads need not be started."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

THREADS = "OPENBLAS_NUM_THREADS"


@contextmanager
def no_blas_threads() -> Iterator[None]:
    """Whoever loads OpenBLAS meanwhile gets one thread, and so does a process that is started meanwhile.

    Its threads wait for work in a busy loop: a quarter of a second of the processors for every start of Python.
    """
    if THREADS in os.environ:
        yield
        return
    os.environ[THREADS] = "1"
    try:
        yield
    finally:
        os.environ.pop(THREADS, None)
