"""`map_memory`: new memory from the kernel, in huge pages where it has them: these are faster to fill."""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any

HUGE = 2 << 20
"""The size of a huge page. Smaller memory has ordinary pages."""
_OPTIONS: dict[str, Any] = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


def whole_pages(size: int) -> int:
    """Round up to whole pages, huge ones from HUGE bytes on."""
    page = HUGE if size >= HUGE else mmap.PAGESIZE
    return max(1, -(-size // page)) * page


def map_memory(size: int) -> mmap.mmap:
    """Map at least `size` bytes, all zero. Raise MemoryError if the system does not give them."""
    try:
        block = mmap.mmap(-1, whole_pages(size), **_OPTIONS)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"{size:,} bytes at once are more than this system gives") from error
    if size >= HUGE:
        with suppress(OSError, AttributeError):  # a kernel or a Python without huge pages
            block.madvise(mmap.MADV_HUGEPAGE)
    return block
