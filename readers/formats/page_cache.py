"""Requests to the kernel about mapped bytes: read them ahead, drop them, and report which are in memory."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.system import open_to_read, user

Bytes = NDArray[np.uint8]
Spans = Sequence[tuple[int, int]]
"""The first byte of each span, and the byte after its last."""
_ADVICE = hasattr(mmap, "MADV_WILLNEED")
"""True where the system takes advice about mapped bytes. Windows does not."""


def absent(path: Path, data: Bytes, starts: Sequence[int]) -> list[int]:
    """Return the indices of those `starts` that are not in memory; all of them where the kernel does not report it."""
    if not _reports_memory(path):
        return list(range(len(starts)))
    base, flag, mincore = _address(data), ctypes.create_string_buffer(1), _libc().mincore
    return [
        number
        for number, start in enumerate(starts)
        if mincore((base + start) & -mmap.PAGESIZE, 1, flag) or not flag.raw[0] & 1
    ]


def prefetch(data: Bytes, spans: Spans) -> None:
    """Ask the kernel to read these spans of a mapped file; this does not wait for the disk."""
    if not _ADVICE:
        return
    base = _address(data)
    for start, stop in spans:
        page = (base + start) & -mmap.PAGESIZE
        _libc().madvise(page, base + stop - page, mmap.MADV_WILLNEED)


def resident(path: Path, data: Bytes, spans: Spans) -> tuple[int, int] | None:
    """Return how many pages of these spans are in memory, and how many there are; None where that is not reported."""
    if not _reports_memory(path):
        return None
    base, cached, pages = _address(data), 0, 0
    for start, stop in spans:
        page = (base + start) & -mmap.PAGESIZE
        flags = np.zeros(-(-(base + stop - page) // mmap.PAGESIZE), np.uint8)
        if _libc().mincore(page, base + stop - page, flags.ctypes.data_as(ctypes.c_char_p)):
            return None
        cached += int((flags & 1).sum())
        pages += len(flags)
    return cached, pages


def drop(path: Path, data: Bytes, spans: Spans) -> None:
    """Remove these spans from this process and from the page cache, except pages that other processes use."""
    if not _ADVICE:
        return
    base = _address(data)
    file = open_to_read(path)
    try:
        for start, stop in spans:
            page = (base + start) & -mmap.PAGESIZE
            _libc().madvise(page, base + stop - page, mmap.MADV_DONTNEED)
            if hasattr(os, "posix_fadvise"):  # macOS has none
                os.posix_fadvise(file, start, stop - start, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def _address(data: Bytes) -> int:
    return int(data.__array_interface__["data"][0])


@cache
def _reports_memory(path: Path) -> bool:
    """Return whether the kernel reports which pages of a file are in memory.

    It does so only to processes that may write the file; to others every page seems to be in memory.
    """
    return _ADVICE and (os.access(path, os.W_OK) or path.stat().st_uid == user())


@cache
def _libc() -> Any:
    """Return libc, which is called without the GIL. Python's `mmap.madvise` holds it while the disk is busy."""
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
    return libc
