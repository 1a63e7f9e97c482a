"""Unpack encoded rows: from the bytes that are stored to the numbers of the row."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import DamagedError
from readers.contract.fields import JPEG, ZSTD, Field
from readers.contract.kernels import kernel
from readers.contract.library import library

KERNEL = kernel("readers.formats.planes_kernel")
_MINE = threading.local()
"""The objects of this thread that unpack: they are not made again for each row, and threads must not share them."""


def unpack(field: Field, stored: NDArray[np.uint8], out: NDArray[Any]) -> None:
    """Write the numbers of an encoded row without tiles into a contiguous array. Raise DamagedError if they are not as
    many."""
    if not unpack_bytes(field.encoding, stored, out):
        raise not_the_row(field, out.shape)


def not_the_row(field: Field, shape: tuple[int, ...]) -> DamagedError:
    """Return the error about stored bytes that are not a row of this shape."""
    sides = "x".join(map(str, shape))
    return DamagedError(f"its {field.name!r} is not stored as {field.encoding} of {sides} numbers")


def unpack_bytes(encoding: str, stored: NDArray[np.uint8], out: NDArray[Any]) -> bool:
    """Write the numbers of a row or of a tile into a contiguous array. Return whether they are as many."""
    return _UNPACKERS[encoding](stored, out)


def _from_zstd(stored: NDArray[np.uint8], out: NDArray[Any]) -> bool:
    """Unpack a frame of Zstandard. Return whether it holds this number of bytes."""
    zstandard: Any = library("zstandard", "rows stored as zstd")
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
    bands = len(out)
    pixels = decode_jpeg(stored, out.shape, out if bands == 1 else None)
    if pixels is not None and bands > 1:
        split(pixels, out)
    return pixels is not None


def decode_jpeg(
    stored: NDArray[np.uint8], shape: tuple[int, ...], out: NDArray[np.uint8] | None = None
) -> NDArray[np.uint8] | None:
    """Return the pixels (H, W, bands) of a JPEG file, in `out` or in memory of this thread. None if it does not have
    this shape (bands, H, W), or is not whole."""
    simplejpeg: Any = library("simplejpeg", "rows stored as jpeg")
    bands, height, width = shape
    try:
        *size, colours, _ = simplejpeg.decode_jpeg_header(stored)
        if size != [height, width] or colours != ("Gray" if bands == 1 else "YCbCr"):
            return None
        pixels = (scratch(math.prod(shape)) if out is None else out).reshape(height, width, bands)
        simplejpeg.decode_jpeg(stored, "GRAY" if bands == 1 else "RGB", buffer=pixels, strict=True)
    except (ValueError, KeyError):  # KeyError: a subsampling that simplejpeg has no name for
        return None
    return pixels


def split(pixels: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
    """Copy (H, W, 3) pixels into (3, H, W) planes."""
    if KERNEL is None:
        np.copyto(out, pixels.transpose(2, 0, 1))
    else:
        KERNEL.split(pixels, out)


def scratch(size: int) -> NDArray[np.uint8]:
    """Return memory of this thread: new memory for each row would be taken from the system and given back each time."""
    if not hasattr(_MINE, "scratch") or len(_MINE.scratch) < size:
        _MINE.scratch = np.empty(size, np.uint8)
    memory: NDArray[np.uint8] = _MINE.scratch[:size]
    return memory


_UNPACKERS: dict[str, Callable[[NDArray[np.uint8], NDArray[Any]], bool]] = {ZSTD: _from_zstd, JPEG: _from_jpeg}
