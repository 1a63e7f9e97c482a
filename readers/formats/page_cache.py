"""What the kernel is told of mapped bytes, that they will be needed or are done with, and what it tells of them."""

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

Bytes = NDArray[np.uint8]
Spans = Sequence[tuple[int, int]]
"""Where bytes begin and end."""


def absent(path: Path, data: Bytes, starts: Sequence[int]) -> list[int]:
    """Which of these places of a mapped file are not in memory; where the kernel does not tell, all of them."""
    if not _tells_what_is_in_memory(path):
        return list(range(len(starts)))
    base, flag, mincore = _address(data), ctypes.create_string_buffer(1), _libc().mincore
    return [
        number
        for number, start in enumerate(starts)
        if mincore((base + start) & -mmap.PAGESIZE, 1, flag) or not flag.raw[0] & 1
    ]


def want(data: Bytes, spans: Spans) -> None:
    """Have these spans of a mapped file read; this does not wait for the disk."""
    base = _address(data)
    for start, stop in spans:
        page = (base + start) & -mmap.PAGESIZE
        _libc().madvise(page, base + stop - page, mmap.MADV_WILLNEED)


def resident(path: Path, data: Bytes, spans: Spans) -> tuple[int, int] | None:
    """How many pages of these spans are in memory, and how many there are; None where the kernel does not tell."""
    if not _tells_what_is_in_memory(path):
        return None
    base, there, pages = _address(data), 0, 0
    for start, stop in spans:
        page = (base + start) & -mmap.PAGESIZE
        flags = np.zeros(-(-(base + stop - page) // mmap.PAGESIZE), np.uint8)
        if _libc().mincore(page, base + stop - page, flags.ctypes.data_as(ctypes.c_char_p)):
            return None
        there += int((flags & 1).sum())
        pages += len(flags)
    return there, pages


def let_go(path: Path, data: Bytes, spans: Spans) -> None:
    """Take these spans out of this process and out of the page cache, but for pages that others use."""
    base = _address(data)
    file = os.open(path, os.O_RDONLY)
    try:
        for start, stop in spans:
            page = (base + start) & -mmap.PAGESIZE
            _libc().madvise(page, base + stop - page, mmap.MADV_DONTNEED)
            os.posix_fadvise(file, start, stop - start, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def _address(data: Bytes) -> int:
    return int(data.__array_interface__["data"][0])


@cache
def _tells_what_is_in_memory(path: Path) -> bool:
    """The kernel tells only those who may write the file; to others all of it seems to be in memory."""
    return os.access(path, os.W_OK) or path.stat().st_uid == os.geteuid()


@cache
def _libc() -> Any:
    """The C library, which is called without the GIL; `mmap.madvise` of Python holds it while the disk is busy."""
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
    return libc
