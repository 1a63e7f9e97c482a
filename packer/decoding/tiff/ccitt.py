"""Unpack CCITT: rows of one bit, stored as runs (RLE, Group 3) or as differences to the row above (Group 4).

This is Python, because libtiff guesses what damaged rows held: of masks with a hole, it returned nine in ten with other
pixels. Here every code must be one that a writer can have written, every row must be as long as the picture, and only
zeros may follow the last one. A mask of 512x512 takes 3 to 6 ms (libtiff 0.6 ms), noise takes 60 ms.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator

import numpy as np

from packer.decoding.tiff.ccitt_codes import HORIZONTAL, LOOKAHEAD, MAKE_UP, MODES, PASS, RUNS, STRAIGHT
from packer.decoding.tiff.directory import COMPRESSION, FILL_ORDER, T4_OPTIONS, T6_OPTIONS, Directory
from packer.decoding.tiff.shape import TiffShape
from packer.errors import BadPair

_GROUP_3, _GROUP_4 = 3, 4
_TWO_DIMENSIONS, _UNCOMPRESSED = 1, 2
_ZEROS = 11
"""An end of line is as many zeros or more, and a one."""
_ONE = 1 << LOOKAHEAD - 1
"""A code that begins with a one, and the least such."""
_PART = 1 << 16
"""The bytes after which a further part of a block is loaded, because a part takes sixteen times as much memory."""
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def ccitt_unpacker(tiff: Directory) -> Callable[[bytes, TiffShape], bytes]:
    """Return the function that unpacks the blocks of a file."""
    compression = tiff.one(COMPRESSION)
    options = {_GROUP_3: T4_OPTIONS, _GROUP_4: T6_OPTIONS}.get(compression)
    chosen = tiff.one(options) if options else 0
    if chosen & _UNCOMPRESSED:
        raise BadPair("is a TIFF with the uncompressed mode of CCITT; save it with LZW")
    rows_of = {_GROUP_3: _Group3Rows, _GROUP_4: _Group4Rows}.get(compression, _Rows)
    has_two_dimensions, is_reversed = bool(chosen & _TWO_DIMENSIONS), tiff.one(FILL_ORDER) == 2

    def unpack(block: bytes, shape: TiffShape) -> bytes:
        rows = rows_of(block.translate(_REVERSED) if is_reversed else block, shape.columns, has_two_dimensions)
        return _packed(rows.all(shape.rows), shape)

    return unpack


def _packed(rows: Iterator[list[int]], shape: TiffShape) -> bytes:
    """Return rows of bits from the columns at which each row changes its colour."""
    changes = np.zeros((shape.rows, shape.columns + 1), np.uint8)
    for changed, row in zip(changes, rows, strict=True):
        changed[row] = 1
    return np.packbits(np.bitwise_xor.accumulate(changes[:, :-1], axis=1), axis=1).tobytes()


class _Rows:
    """The rows of a block: the columns at which each changes its colour, beginning with white."""

    def __init__(self, block: bytes, width: int, has_two_dimensions: bool) -> None:
        self._block = block
        self._width = width
        self._has_two_dimensions = has_two_dimensions
        self._start = self._bit = 0
        self._load()

    def all(self, count: int) -> Iterator[list[int]]:
        row: list[int] = []
        for _ in range(count):
            if self._bit > 8 * _PART:
                self._load()
            row = self._next(row)
            if self._bit > self._end:
                raise BadPair("is damaged: its CCITT is cut short")
            yield row
        self._finish()
        behind = self._block[self._start + self._bit // 8 :]
        if behind and (behind[0] & 0xFF >> self._bit % 8 or behind[1:].strip(b"\0")):
            raise BadPair("is damaged: its CCITT goes on behind the last row")

    def _load(self) -> None:
        """Split the next part of the block: for each bit, the bits that the longest code can have from there on."""
        self._start += self._bit // 8
        self._bit %= 8
        part = self._block[self._start : self._start + 2 * _PART + 4 * self._width]
        behind = len(self._block) - self._start - len(part)
        self._end = 8 * len(part) - (LOOKAHEAD if behind else 0)
        numbers = np.frombuffer(part + b"\0\0\0", np.uint8).astype(np.uint32)
        windows = numbers[:-2] << 16 | numbers[1:-1] << 8 | numbers[2:]
        codes = np.empty((len(windows), 8), np.uint16)
        for bit in range(8):
            codes[:, bit] = windows >> 24 - LOOKAHEAD - bit & 2**LOOKAHEAD - 1
        self._codes = array("H", codes.tobytes())

    def _next(self, above: list[int]) -> list[int]:
        """Return a row of runs. Each row begins with a byte."""
        row = self._runs()
        spare = -self._bit % 8
        if self._codes[self._bit] >> LOOKAHEAD - spare:
            raise _not_a_code()
        self._bit += spare
        return row

    def _finish(self) -> None:
        """Step over what may follow the last row."""

    def _runs(self) -> list[int]:
        """Return a row of white and black runs in turn."""
        row: list[int] = []
        column = 0
        while column < self._width:
            column = self._behind_run(column, len(row) & 1, may_be_empty=not row)
            row.append(column)
        return row

    def _behind_run(self, column: int, colour: int, may_be_empty: bool) -> int:
        """Return the column behind a run, whose length may need several codes."""
        first, table = column, RUNS[colour]
        while True:
            length, run = table[self._codes[self._bit]]
            self._bit += length
            column += run
            if not length or column > self._width:
                raise _not_a_code()
            if run < MAKE_UP:
                break
        if column == first and not may_be_empty:
            raise _not_a_code()
        return column

    def _differences(self, above: list[int]) -> list[int]:
        """Return a row that is stored as differences to the row above."""
        codes, width, bit = self._codes, self._width, self._bit
        reference = [*above, width, width, width, width]
        row: list[int] = []
        column, at = -1, 0  # reference[at] is the next change above of the colour that ends at this column
        while column < width:
            while reference[at] <= column:
                at += 2
            length, mode = MODES[codes[bit]]
            bit += length
            if mode == HORIZONTAL:
                self._bit = bit
                middle = self._behind_run(max(column, 0), len(row) & 1, may_be_empty=column < 0)
                column = self._behind_run(middle, ~len(row) & 1, may_be_empty=middle == width)
                row += (middle, column)
                bit = self._bit
                continue
            before, column = column, reference[at + 1] if mode == PASS else reference[at] + mode - STRAIGHT
            if not (length and before < column <= width - (mode == PASS)):
                raise _not_a_code()
            if mode != PASS:
                row.append(column)
                at += -1 if at else 1
        self._bit = bit
        return row


class _Group3Rows(_Rows):
    """Each row follows an end of line. With two dimensions, the next bit says how the row is stored."""

    def _next(self, above: list[int]) -> list[int]:
        self._skip_end_of_line()
        has_runs = True
        if self._has_two_dimensions:
            has_runs = self._codes[self._bit] >= _ONE
            self._bit += 1
        return self._runs() if has_runs else self._differences(above)

    def _finish(self) -> None:
        while self._codes[self._bit] >> LOOKAHEAD - _ZEROS == 0 and any(self._codes[self._bit :]):
            self._skip_end_of_line()
            self._bit += self._has_two_dimensions

    def _skip_end_of_line(self) -> None:
        start = self._bit
        while self._bit < self._end and self._codes[self._bit] < _ONE:
            self._bit += 1
        if self._bit - start < _ZEROS or self._bit == self._end:
            raise BadPair("is damaged: a row of its CCITT does not begin with an end of line")
        self._bit += 1


class _Group4Rows(_Rows):
    """All rows are differences. The block may end with two ends of line."""

    def _next(self, above: list[int]) -> list[int]:
        return self._differences(above)

    def _finish(self) -> None:
        for _ in range(2):
            if self._codes[self._bit] >> LOOKAHEAD - _ZEROS - 1 == 1:
                self._bit += _ZEROS + 1


def _not_a_code() -> BadPair:
    return BadPair("is damaged: its CCITT has a code that does not fit")
