"""Memory of a worker: what a picture took is kept for the next one, for to take it anew takes a fifth of a build."""

from __future__ import annotations

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_KEPT = 32 << 20
"""Bytes of an array; larger ones still come from the kernel and go back to it at once, but for a shard's columns, which
have memory of their own."""
MOST_KEPT = 256 << 20


def keep_memory() -> None:
    """Tell glibc, which would hand pages back to the kernel with every picture; other C libraries have no such wish."""
    if not sys.platform.startswith("linux"):
        return
    tell = getattr(ctypes.CDLL(None), "mallopt", None)
    if tell is not None:
        tell(M_MMAP_THRESHOLD, LARGEST_KEPT)
        tell(M_TRIM_THRESHOLD, MOST_KEPT)
