"""Unpack the strips and tiles of a TIFF, by the number of their compression."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TypeAlias

from packer.decoding.tiff.ccitt import ccitt_unpacker
from packer.decoding.tiff.directory import Directory
from packer.decoding.tiff.jpeg_blocks import jpeg_unpacker
from packer.decoding.tiff.lzw import unpack_lzw
from packer.decoding.tiff.shape import TiffShape
from packer.errors import BadPair

NONE, RLE, GROUP_3, GROUP_4, LZW, JPEG, DEFLATE, PACKBITS, OLD_DEFLATE, ZSTD = 1, 2, 3, 4, 5, 7, 8, 32773, 32946, 50000
CCITT = (RLE, GROUP_3, GROUP_4)
PREDICTED = (LZW, DEFLATE, OLD_DEFLATE, ZSTD)
"""The compressions with which a predictor is allowed. With others, some programs ignore it and some do not."""

Unpack: TypeAlias = Callable[[bytes, TiffShape], bytes]
"""From the bytes of a block in the file to at least the bytes that it must have, or to fewer if it is cut short."""


def _plain(block: bytes, shape: TiffShape) -> bytes:
    return block[: shape.size]


def _deflated(block: bytes, shape: TiffShape) -> bytes:
    """Decompress zlib. The checksum at its end must be right, so no damage passes."""
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(block, shape.size + 1)
    except zlib.error as error:
        raise BadPair(f"is damaged ({error})") from error
    return raw if stream.eof else b""


def _zstandard(block: bytes, shape: TiffShape) -> bytes:
    """Decompress a frame of Zstandard up to the bytes that the block must have. A huge window is refused."""
    import zstandard  # most builds have no such file

    try:
        return zstandard.ZstdDecompressor().stream_reader(block).read(shape.size)
    except zstandard.ZstdError as error:
        raise BadPair(f"is damaged ({error})") from error


def unpack_packbits(block: bytes, size: int) -> bytes:
    """Unpack runs and copies, each with its length in front, up to `size` bytes or a few more; fewer if they end."""
    raw, offset = bytearray(), 0
    while len(raw) < size and offset + 1 < len(block):
        length = block[offset]
        if length < 128:
            raw += block[offset + 1 : offset + 2 + length]
            offset += 2 + length
        else:
            raw += block[offset + 1 : offset + 2] * (257 - length if length > 128 else 0)
            offset += 2 if length > 128 else 1
    return bytes(raw)


UNPACKERS: dict[int, Callable[[Directory], Unpack]] = {
    NONE: lambda _: _plain,
    RLE: ccitt_unpacker,
    GROUP_3: ccitt_unpacker,
    GROUP_4: ccitt_unpacker,
    LZW: lambda _: lambda block, shape: unpack_lzw(block, shape.size),
    JPEG: jpeg_unpacker,
    DEFLATE: lambda _: _deflated,
    PACKBITS: lambda _: lambda block, shape: unpack_packbits(block, shape.size),
    OLD_DEFLATE: lambda _: _deflated,
    ZSTD: lambda _: _zstandard,
}
"""A function that unpacks blocks, made once for a file from its directory."""
