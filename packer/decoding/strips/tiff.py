"""The lines of a TIFF or BigTIFF: its blocks, decoded as in a whole one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from packer.decoding.header import FileBytes, FilePixels, Header, Pixels
from packer.decoding.tiff import colours
from packer.decoding.tiff.blocks import Block, Decoder, blocks_of, cut_short
from packer.decoding.tiff.compressions import NONE
from packer.decoding.tiff.directory import COMPRESSION, Directory
from packer.decoding.tiff.picture import stored

MOST_BLOCKS = 256 << 20
"""The most bytes of the blocks in one line, unpacked: they are in memory together."""
PIECE_LINES = 64
"""The lines of a piece in which plain strips are read: many programs store a picture as one strip."""


class TiffLines:
    """Decodes the blocks that lines touch, in order. Those that reach further down are kept for the next lines."""

    whole_bytes = 0

    def __init__(self, data: FileBytes, header: Header, tiff: Directory) -> None:
        self._header, self._dtype, self._palette = header, tiff.dtype, colours.palette(tiff)
        self._decoder = Decoder(tiff, data)
        is_plain = tiff.one(COMPRESSION) == NONE
        self._blocks = [
            piece for block in blocks_of(tiff) for piece in (_pieces(block, len(data)) if is_plain else [block])
        ]
        self._blocks.sort(key=lambda block: block.top)
        self._next = 0
        self._open: list[tuple[Block, Pixels]] = []

    @staticmethod
    def fits(tiff: Directory) -> bool:
        """Return whether the blocks of a line fit into memory."""
        if tiff.one(COMPRESSION) == NONE:
            return True
        blocks = list(blocks_of(tiff))
        return sum(block.shape.size for block in blocks if block.top == 0) <= MOST_BLOCKS

    def lines(self, top: int, bottom: int) -> FilePixels:
        """Return some lines behind those that were returned."""
        pixels = np.empty((bottom - top, self._header.stored_width, self._header.channels), self._dtype)
        while self._next < len(self._blocks) and self._blocks[self._next].top < bottom:
            block = self._blocks[self._next]
            if _bottom(block) <= top:
                self._next += 1
                continue
            self._open.append((block, self._decoder.pixels(block)))
            self._next += 1
            if _bottom(block) <= bottom:
                _copy(*self._open.pop(), pixels, top)
        self._open = [opened for opened in self._open if _bottom(opened[0]) > top]
        for block, numbers in self._open:
            _copy(block, numbers, pixels, top)
        self._open = [opened for opened in self._open if _bottom(opened[0]) > bottom]
        return stored(pixels, self._header, self._palette)


def _pieces(block: Block, length: int) -> Iterator[Block]:
    """Cut a plain block of a file of this size into blocks of fewer lines."""
    shape = block.shape
    if block.count < shape.size or block.offset + block.count > length:
        raise cut_short(block)
    for first in range(0, shape.rows, PIECE_LINES):
        rows, start = min(PIECE_LINES, shape.rows - first), block.offset + first * shape.row_bytes
        part = shape._replace(rows=rows)
        yield replace(block, top=block.top + first, shape=part, offset=start, count=part.size)


def _bottom(block: Block) -> int:
    return block.top + block.shape.rows


def _copy(block: Block, numbers: Pixels, lines: Pixels, top: int) -> None:
    """Copy what a block has of some lines, from the line `top` on."""
    first, last = max(block.top, top), min(_bottom(block), top + len(lines))
    target = lines[first - top : last - top, block.left : block.left + block.shape.columns, block.channels]
    target[:] = numbers[first - block.top : last - block.top, : target.shape[1]]
