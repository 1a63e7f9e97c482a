"""Unpack encoded rows: from the bytes that are stored to the numbers of the row."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import DamagedError
from readers.contract.fields import ZSTD, Field

_MINE = threading.local()
"""The objects of this thread that unpack: they are not made again for each row, and threads must not share them."""


def unpack(field: Field, stored: NDArray[np.uint8], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return the numbers of an encoded row of this shape. Memory is taken when the stored size fits.

    Raises DamagedError if the bytes are not a row of this field.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(field.dtype).itemsize
    try:
        numbers = _UNPACKERS[field.encoding](stored, size)
    except MemoryError:
        raise DamagedError(f"its {field.name} has {size} bytes unpacked, more than there is memory for") from None
    except _WrongError as wrong:
        raise DamagedError(f"its {field.name} is not {wrong}") from None
    return np.frombuffer(numbers, field.dtype).reshape(shape)


class _WrongError(ValueError):
    """The stored bytes are not what the encoding says."""


def _from_zstd(stored: NDArray[np.uint8], size: int) -> bytes:
    """Return the content of one frame of Zstandard that holds so many bytes."""
    import zstandard

    if not hasattr(_MINE, "zstd"):
        _MINE.zstd = zstandard.ZstdDecompressor()
    wrong = _WrongError(f"one Zstandard frame of {size} bytes")
    try:
        frame = zstandard.get_frame_parameters(stored.data)
        if frame.content_size != size or frame.dict_id:
            raise wrong
        content: bytes = _MINE.zstd.decompress(stored, allow_extra_data=False)
    except zstandard.ZstdError:
        raise wrong from None
    if len(content) != size:
        raise wrong
    return content


_UNPACKERS: dict[str, Callable[[NDArray[np.uint8], int], bytes]] = {ZSTD: _from_zstd}
