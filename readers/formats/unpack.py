"""Unpack encoded rows: from the bytes that are stored to the numbers of the row."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import DamagedError
from readers.contract.fields import JPEG, ZSTD, Field
from readers.contract.kernels import kernel

KERNEL = kernel("readers.formats.planes_kernel")
_MINE = threading.local()
"""The objects of this thread that unpack: they are not made again for each row, and threads must not share them."""


def unpack(field: Field, stored: NDArray[np.uint8], out: NDArray[Any]) -> None:
    """Write the numbers of an encoded row into a contiguous array. Raise DamagedError if they are not as many."""
    if not _UNPACKERS[field.encoding](stored, out):
        raise DamagedError(f"its {field.name!r} is not stored as {field.encoding} of {out.nbytes} bytes")


def _from_zstd(stored: NDArray[np.uint8], out: NDArray[Any]) -> bool:
    """Unpack a frame of Zstandard. Return whether it holds so many bytes."""
    import zstandard

    if not hasattr(_MINE, "zstd"):
        _MINE.zstd = zstandard.ZstdDecompressor()
    frame = stored.data
    try:
        facts = zstandard.get_frame_parameters(frame)
        if facts.content_size != out.nbytes or facts.dict_id:
            return False
        with _MINE.zstd.stream_reader(frame) as reader:
            return bool(reader.readinto(out.reshape(-1).view(np.uint8).data) == out.nbytes and not reader.read(1))
    except zstandard.ZstdError:
        return False


def _from_jpeg(stored: NDArray[np.uint8], out: NDArray[Any]) -> bool:
    """Decode a JPEG file into planes. Return whether it has this size and number of bands, and is whole."""
    import simplejpeg

    bands, height, width = out.shape
    try:
        *size, colours, _ = simplejpeg.decode_jpeg_header(stored)
        if size != [height, width] or colours != ("Gray" if bands == 1 else "YCbCr"):
            return False
        pixels = (out if bands == 1 else _scratch(out.nbytes)).reshape(height, width, bands)
        simplejpeg.decode_jpeg(stored, "GRAY" if bands == 1 else "RGB", buffer=pixels, strict=True)
    except ValueError:
        return False
    if bands > 1:
        split(pixels, out)
    return True


def split(pixels: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
    """Copy (H, W, 3) pixels into (3, H, W) planes."""
    if KERNEL is None:
        np.copyto(out, pixels.transpose(2, 0, 1))
    else:
        KERNEL.split(pixels, out)


def _scratch(size: int) -> NDArray[np.uint8]:
    """Return memory of this thread: new memory for each row would be taken from the system and given back each time."""
    if not hasattr(_MINE, "scratch") or len(_MINE.scratch) < size:
        _MINE.scratch = np.empty(size, np.uint8)
    memory: NDArray[np.uint8] = _MINE.scratch[:size]
    return memory


_UNPACKERS: dict[str, Callable[[NDArray[np.uint8], NDArray[Any]], bool]] = {ZSTD: _from_zstd, JPEG: _from_jpeg}
