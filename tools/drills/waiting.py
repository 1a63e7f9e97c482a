"""Wait for something that another process does."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait(seconds: float, done: Callable[[], bool], what: str) -> None:
    """Wait until something is done. Raise TimeoutError if that takes too long."""
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() > until:
            raise TimeoutError(f"after {seconds:.0f} s it is not so that {what}")
        time.sleep(0.2)
