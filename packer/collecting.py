"""Collecting: planning makes millions of small objects and no cycles; to look for some takes a third of its time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collecting() -> Iterator[None]:
    """Objects go when nothing refers to them, as ever; cycles of them stay until this is over."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
