"""The pixels of a plain PNG: inflated by zlib-ng, unfiltered by a kernel. What is not plain is left to OpenCV."""

from __future__ import annotations

import struct

import numpy as np
from zlib_ng import zlib_ng

from packer.decoding.header import Pixels
from readers.contract.kernels import kernel

Chunk = tuple[bytes, int, int]
"""The type of a chunk, and where its content starts and ends."""

KERNEL = kernel("packer.decoding.unfilter_kernel")
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""The numbers of a pixel by the colour type: gray, RGB, palette, gray and alpha, RGB and alpha."""
MOST_BYTES = 64 << 20
"""The longest stream, inflated. It takes memory next to the pixels; OpenCV needs a line at a time."""
MOST_SIDE = 1_000_000
"""libpng refuses longer sides."""
WINDOW = 1 << 15
"""deflate refers back by this many bytes at most."""


def decode(data: bytes, raster: list[Chunk]) -> Pixels | None:
    """Return the numbers in the file, (H,W) or (H,W,channels) of 8 bits; None if OpenCV is to decode or refuse it.

    Plain is: at most 8 bits, not interlaced, and a stream that unpacks to these lines, no byte more or less.
    `raster` holds the chunks IHDR, IDAT and IEND.
    """
    (_, start, end), *parts, (_, *last) = raster
    if KERNEL is None or end - start != 13 or last[0] != last[1]:
        return None
    width, height, depth, colour, *methods = struct.unpack_from(">IIBBBBB", data, start)
    if depth > 8 or any(methods) or max(width, height) > MOST_SIDE:
        return None
    channels = CHANNELS[colour]
    stream = b"".join(data[start:end] for _, start, end in parts)
    lines = _inflated(stream, height * (1 + (width * channels * depth + 7) // 8))
    if lines is None:
        return None
    numbers = np.empty((height, width * channels), np.uint8)
    if not KERNEL.unfilter(lines, numbers, depth, channels):
        return None
    return numbers if channels == 1 else numbers.reshape(height, width, channels)


def _inflated(stream: bytes, length: int) -> bytes | None:
    """Return what a zlib stream unpacks to; None if it is damaged, has another length, or something follows it.

    libpng takes the window that the stream claims, but zlib-ng looks back as far as its output goes.
    """
    if length > MOST_BYTES or len(stream) < 2 or 1 << (stream[0] >> 4) + 8 < min(length, WINDOW):
        return None
    unpacking = zlib_ng.decompressobj()
    try:
        lines = unpacking.decompress(stream, length + 1)
    except zlib_ng.error:  # type: ignore[misc]  # its stub calls this class an instance
        return None
    return lines if unpacking.eof and not unpacking.unused_data and len(lines) == length else None
