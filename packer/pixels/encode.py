"""Encode rows: the bytes that are stored of a row whose field has an encoding."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from readers.contract.fields import ZSTD, Field

LEVEL = 1
"""Higher levels gain a fifth of labels, which have nearly vanished, and take three to ten times as long."""
_MINE = threading.local()
"""The compressor of this thread; threads must not share one."""


def encode(field: Field, numbers: NDArray[Any]) -> bytes:
    """Return what is stored of a row: the same bytes wherever the versions of `tools_of_encodings` are the same."""
    assert field.encoding == ZSTD, "planned fields have no other encoding"
    import zstandard

    if not hasattr(_MINE, "zstd"):
        _MINE.zstd = zstandard.ZstdCompressor(level=LEVEL, write_checksum=False, write_content_size=True)
    frame: bytes = _MINE.zstd.compress(numbers)
    return frame


def tools_of_encodings(fields: Sequence[Field]) -> tuple[str, ...]:
    """Return the versions of the libraries that encode these fields."""
    if not any(field.encoding == ZSTD for field in fields):
        return ()
    import zstandard

    return (f"zstd {'.'.join(map(str, zstandard.ZSTD_VERSION))} level {LEVEL}",)
