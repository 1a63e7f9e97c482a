"""Passes through loaders that have not ended. They end before Python clears the modules that their end needs."""

from __future__ import annotations

import atexit
from collections.abc import Generator
from contextlib import suppress
from typing import Any
from weakref import WeakSet

_OPEN: WeakSet[Generator[Any, None, None]] = WeakSet()


def ends_at_exit(running: Generator[Any, None, None]) -> Generator[Any, None, None]:
    """Return a pass that ends with the program, also if something keeps it: dill keeps all names of a script."""
    _OPEN.add(running)
    return running


@atexit.register
def _end_all() -> None:
    for running in list(_OPEN):
        with suppress(ValueError):  # another thread is in it
            running.close()
