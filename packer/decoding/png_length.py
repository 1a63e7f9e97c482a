"""The length of the pixel stream of a PNG. If it holds more than the picture needs, its header may be wrong."""

from __future__ import annotations

import struct

from zlib_ng import zlib_ng

from packer.decoding.plain_png import CHANNELS, Chunk
from packer.errors import BadPair

_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""The first column and row of each pass of an interlaced picture, and the steps from there."""
_LEAST_PIECE = 1 << 16


def check_length(data: bytes, raster: list[Chunk]) -> None:
    """Refuse a stream that unpacks to more than the picture needs, or that ends before its last chunk does.

    libpng ignores the rest. Other damage is left to it. `raster` holds the chunks IHDR, IDAT and IEND.
    """
    (_, start, _), *parts, _ = raster
    width, height, depth, colour, _, _, is_interlaced = struct.unpack_from(">IIBBBBB", data, start)
    passes = _PASSES if is_interlaced else ((0, 0, 1, 1),)
    sizes = [(-(-(width - x) // dx), -(-(height - y) // dy)) for x, y, dx, dy in passes]
    bits = depth * CHANNELS[colour]
    needed = sum(rows * (1 + (columns * bits + 7) // 8) for columns, rows in sizes if columns > 0)
    if _has_more(b"".join(data[start:end] for _, start, end in parts), needed):
        raise BadPair("is damaged: it holds more pixel data than a picture of its size; save it again")


def _has_more(stream: bytes, needed: int) -> bool:
    unpacking, length = zlib_ng.decompressobj(), 0
    most = max(len(stream), _LEAST_PIECE)
    try:
        while piece := unpacking.decompress(unpacking.unconsumed_tail if length else stream, most):
            length += len(piece)
            if length > needed:
                return True
    except zlib_ng.error:  # type: ignore[misc]  # its stub calls this class an instance
        return False
    return bool(unpacking.unused_data)
