"""`RepeatedLines`: the lines of a band that is coarser than others, as often as the finest band has them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from packer.decoding.grid import finer
from packer.decoding.header import FilePixels, Pixels, Strip
from packer.decoding.strips.strip_file import StripFile
from readers.contract.tiles import Size


class RepeatedLines:
    """Its sides divide the sides of the finest band. The last line is kept: the next strip may begin within it."""

    def __init__(self, file: StripFile, size: Size) -> None:
        height, width = file.size
        self._file, self._down, self._right = file, size[0] // height, size[1] // width
        grid = file.header.grid
        self._header = replace(
            file.header, stored_width=size[1], grid=None if grid is None else finer(grid, (self._down, self._right))
        )
        self._stored: FilePixels | None = None
        self._first = self._next = 0
        """The first line of the file that is kept, and the first one behind those."""

    def lines(self, top: int, bottom: int) -> Strip:
        """Return some lines, in order; some may be left out."""
        first, last = top // self._down, -(-bottom // self._down)
        if self._stored is None or last > self._next:
            kept = self._next - first
            read = self._file.lines(max(first, self._next), last).stored
            self._stored = read if self._stored is None or kept <= 0 else _behind(self._stored, kept, read)
            self._first, self._next = first, last
        rows = np.arange(top, bottom) // self._down - self._first
        columns = np.arange(self._header.stored_width) // self._right
        numbers, alpha = self._stored.numbers, self._stored.alpha
        repeated = FilePixels(numbers[rows][:, columns], None if alpha is None else alpha[rows][:, columns])
        return Strip(replace(self._header, stored_height=bottom - top), repeated)


def _behind(kept: FilePixels, count: int, read: FilePixels) -> FilePixels:
    """Return lines of a file behind the last `count` lines of those before."""

    def joined(before: Pixels, after: Pixels) -> Pixels:
        return np.concatenate([before[len(before) - count :], after])

    alpha = None if kept.alpha is None or read.alpha is None else joined(kept.alpha, read.alpha)
    return FilePixels(joined(kept.numbers, read.numbers), alpha)
