"""The lines of a PNG: its stream is inflated piece by piece, and unfiltered by the kernel."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from zlib_ng import zlib_ng

from packer.decoding.bits import unpack_bits
from packer.decoding.header import FileBytes, FilePixels, Header
from packer.decoding.plain_png import CHANNELS, KERNEL, MOST_SIDE, WINDOW, Chunk
from packer.decoding.png import PIECE, parts, stored
from packer.errors import BadPair

BYTES = 8
"""The bits of a byte. The kernel takes lines as bytes, whatever numbers they hold."""
LEFT_OUT = 64
"""The lines that are inflated together if they are left out."""
MOST_PIXEL = 4
"""The most bytes of a pixel that the kernel knows."""


class PngLines:
    """Inflates lines in order. Those that are left out are inflated, too."""

    whole_bytes = 0

    def __init__(self, data: FileBytes, header: Header) -> None:
        """Check all chunks."""
        self._palette, self._marked, ((_, start, end), *stream, last) = parts(data)
        self._header, self._colour = header, data[25:26][0]
        self._numbers = CHANNELS[self._colour]
        self._pixel_bytes = max(1, self._numbers * header.depth // BYTES)
        self._line_bytes = -(-header.stored_width * self._numbers * header.depth // BYTES)
        if end - start != 13 or last[1] != last[2]:
            raise BadPair("is damaged: a chunk of it has another length than the standard's")
        self._stream = _Stream(data, stream, header.stored_height * (1 + self._line_bytes))
        self._before = np.zeros(self._line_bytes, np.uint8)
        """The line above the next one, unfiltered."""
        self._line = 0
        """The number of the next one."""

    @staticmethod
    def fits(data: FileBytes) -> bool:
        """Return whether the lines of a PNG lie one after the other, and the kernel knows its pixels."""
        width, height, depth, colour, *methods = struct.unpack(">IIBBBBB", data[16:29])
        pixel = CHANNELS[colour] * depth // BYTES
        return KERNEL is not None and not any(methods) and max(width, height) <= MOST_SIDE and pixel <= MOST_PIXEL

    def lines(self, top: int, bottom: int) -> FilePixels:
        """Return some lines behind those that were returned."""
        for first in range(self._line, top, LEFT_OUT):
            left_out = min(LEFT_OUT, top - first)
            self._unfiltered(self._stream.read(left_out * (1 + self._line_bytes)), left_out)
        self._line = bottom
        count, width = bottom - top, self._header.stored_width
        raw = self._stream.read(count * (1 + self._line_bytes))
        if bottom == self._header.stored_height:
            self._stream.check_end()
        bytes_of = self._unfiltered(raw, count)
        if self._header.depth < BYTES:
            return self._stored(unpack_bits(bytes_of, self._header.depth, width))
        numbers = bytes_of if self._header.depth == BYTES else bytes_of.view(">u2").astype(np.uint16)
        return self._stored(numbers if self._numbers == 1 else numbers.reshape(count, width, self._numbers))

    def _stored(self, numbers: NDArray[np.uint8] | NDArray[np.uint16]) -> FilePixels:
        return stored(numbers, self._colour, self._palette, self._marked)

    def _unfiltered(self, raw: bytearray, count: int) -> NDArray[np.uint8]:
        """Undo the filters. The kernel takes the line above as a line without a filter."""
        assert KERNEL is not None
        out = np.empty((count + 1, self._line_bytes), np.uint8)
        if not KERNEL.unfilter(b"\0" + self._before.tobytes() + raw, out, BYTES, self._pixel_bytes):
            raise BadPair("is damaged: it has a line with an unknown filter")
        self._before = out[-1].copy()
        return out[1:]


class _Stream:
    """The bytes that the chunks IDAT unpack to."""

    def __init__(self, data: FileBytes, chunks: list[Chunk], length: int) -> None:
        self._pieces = _pieces(data, chunks)
        self._unpacking = zlib_ng.decompressobj()
        start = b"".join(data[first : min(first + 2, end)] for _, first, end in chunks[:2])
        if start and 1 << (start[0] >> 4) + 8 < min(length, WINDOW):
            raise BadPair("looks back by less than 32 KiB, and is not read line by line; save it again")

    def read(self, count: int) -> bytearray:
        """Return this number of bytes."""
        data = bytearray()
        try:
            while len(data) < count:
                data += self._next(count - len(data))
        except zlib_ng.error as error:  # type: ignore[misc]  # its stub calls this class an instance
            raise BadPair(f"is damaged ({error})") from error
        return data

    def check_end(self) -> None:
        """Refuse a stream that goes on, or ends without its checksum."""
        try:
            while not self._unpacking.eof:
                if self._next(1):
                    raise BadPair("is damaged: it holds more pixel data than a picture of its size; save it again")
        except zlib_ng.error as error:  # type: ignore[misc]
            raise BadPair(f"is damaged ({error})") from error
        if self._unpacking.unused_data or any(self._pieces):
            raise BadPair("is damaged: it holds more pixel data than a picture of its size; save it again")

    def _next(self, most: int) -> bytes:
        """Return some bytes, at most this number; raise BadPair behind the last one."""
        rest = self._unpacking.unconsumed_tail or next(self._pieces, b"")
        data: bytes = self._unpacking.decompress(rest, most)
        if not rest and not data and not self._unpacking.eof:
            raise BadPair("is damaged: its stream of pixels is cut short")
        if self._unpacking.eof and not data:
            raise BadPair("is damaged: its stream of pixels is cut short")
        return data


def _pieces(data: FileBytes, chunks: list[Chunk]) -> Iterator[bytes]:
    for _, start, end in chunks:
        for first in range(start, end, PIECE):
            yield data[first : min(first + PIECE, end)]
