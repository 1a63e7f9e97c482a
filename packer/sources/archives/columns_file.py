"""`ColumnsFile`: a table in a store for Arrow, whose columns are read in pieces that are requested ahead."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import NamedTuple

from packer.sources.archives.parquet_footer import END, MOST_BYTES
from packer.sources.files.seekable_file import SeekableFile

PIECE = 2 << 20
TAIL = 1 << 16
"""The bytes at the end that most footers fit into."""
AHEAD = 3
"""Pieces of a column that are requested before they are asked for, once two were read in a row."""


class _Piece(NamedTuple):
    """A range of bytes of a column: from `start` to `stop`. `number` counts the pieces of its column."""

    start: int
    stop: int
    column: int
    number: int


class ColumnsFile(SeekableFile):
    """Reads a file of `size` bytes by ranges, `read(start, stop)`. It holds AHEAD + 1 pieces of each column at most."""

    def __init__(self, size: int, read: Callable[[int, int], bytes], threads: Executor) -> None:
        super().__init__(size)
        self._read_range, self._threads = read, threads
        self._columns: list[list[_Piece]] = []
        self._pieces: list[_Piece] = []
        self._started: dict[_Piece, Future[bytes]] = {}
        self._tail = b""
        """The last bytes, once Arrow has read them."""
        self.is_followed = False
        """True if it is known where the columns are."""

    def footer(self) -> bytes:
        """Return the footer of a file of Parquet; nothing if it is too long or damaged."""
        tail = self._tail if len(self._tail) >= END.size else self._read_range(max(0, self._size - TAIL), self._size)
        length = END.unpack(tail[-END.size :])[0] if len(tail) >= END.size else 0
        whole = length + END.size
        if length > MOST_BYTES or whole > self._size:
            return b""
        if whole > len(tail):
            tail = self._read_range(self._size - whole, self._size)
        return tail[len(tail) - whole : -END.size]

    def follow(self, columns: Sequence[Sequence[tuple[int, int]]]) -> None:
        """Read the columns that have these ranges of bytes ahead. All other bytes are read when Arrow asks for them."""
        every = [part for ranges in columns for part in ranges]
        is_sound = all(0 <= start <= stop <= self._size for start, stop in every)
        self.is_followed = True
        if self._columns or not is_sound or sum(stop - start for start, stop in every) > self._size:
            return  # a damaged file claims anything
        for column, ranges in enumerate(columns):
            cut = [(at, min(at + PIECE, stop)) for start, stop in ranges for at in range(start, stop, PIECE)]
            self._columns.append([_Piece(*part, column, number) for number, part in enumerate(cut)])
        self._pieces = sorted(piece for pieces in self._columns for piece in pieces)

    def rest(self) -> None:
        """Drop what was read ahead: another file is read now."""
        for future in self._started.values():
            future.cancel()
        self._started.clear()

    def read(self, size: int | None = -1) -> bytes:
        """Return as many bytes as are asked for, unless the file ends: Arrow does not ask again."""
        stop = self._size if size is None or size < 0 else min(self._at + size, self._size)
        parts = []
        while self._at < stop:
            parts.append(self._part(stop))
            self._at += len(parts[-1])
            if not parts[-1]:
                break
        return b"".join(parts)

    def _part(self, stop: int) -> bytes:
        """Return bytes from the present place on, of one piece or of none."""
        following = bisect_right(self._pieces, self._at, key=lambda piece: piece.start)
        piece = self._pieces[following - 1] if following else None
        if piece is not None and self._at < piece.stop:
            return self._content(piece)[self._at - piece.start : stop - piece.start]
        if following < len(self._pieces):
            stop = min(stop, self._pieces[following].start)
        content = self._read_range(self._at, stop)
        if stop == self._size:
            self._tail = content
        return content

    def _content(self, piece: _Piece) -> bytes:
        """Return a piece, and request the next ones of its column."""
        pieces = self._columns[piece.column]
        before = pieces[piece.number - 1] if piece.number else None
        is_run = piece in self._started or before in self._started
        for old in [old for old in self._started if old.column == piece.column and old.number < piece.number]:
            del self._started[old]
        for coming in pieces[piece.number : piece.number + 1 + (AHEAD if is_run else 0)]:
            if coming not in self._started:
                self._started[coming] = self._threads.submit(self._read_range, coming.start, coming.stop)
        return self._started[piece].result()
