"""`RefTable`: references to all rows as one text, which is on disk if it is long. As objects they would take five times
as much memory."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, compress, islice, pairwise
from operator import itemgetter
from typing import overload

import numpy as np
from numpy.typing import NDArray

from packer.recipe.row_ref import RowRef
from packer.spill.long_text import LongNumbers, LongText

CHUNK = 1 << 14
"""Rows that are objects at the same time while a table is made or read."""
MERGED = 1 << 6
"""Rows of each part that are objects at the same time while parts are merged."""
_ENCODING = ("utf-8", "surrogatepass")


class RefTable(Sequence[RowRef]):
    """References in order. The text has a line for each, with its key and its parts, separated by zeros.

    So neither a key nor a part may hold a zero or a line break.
    """

    def __init__(self, text: bytes | LongText, ends: NDArray[np.int64], splits: dict[str, int], begin: int = 0) -> None:
        """Take a text in which the lines begin somewhere, the end of each line, and the number of rows of each split in
        their order."""
        self._text, self._ends, self._begin = text, ends, begin
        self.splits = splits
        """The number of rows of each split."""
        self._names = list(splits)
        self._starts = list(accumulate(splits.values(), initial=0))

    @classmethod
    def of(cls, refs: Iterable[RowRef]) -> RefTable:
        """Return the table of these references, which may come in any order."""
        rest, joined = iter(refs), _Joined()
        for chunk in iter(lambda: sorted(islice(rest, CHUNK)), []):
            joined.add(chunk)
        if not joined.in_order:
            parts, joined = joined.parts(), _Joined()
            merged = heapq.merge(*(part.between(0, len(part), MERGED) for part in parts))
            for chunk in iter(lambda: list(islice(merged, CHUNK)), []):
                joined.add(chunk)
        return joined.table()

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> RowRef: ...

    @overload
    def __getitem__(self, index: slice) -> list[RowRef]: ...

    def __getitem__(self, index: int | slice) -> RowRef | list[RowRef]:
        if isinstance(index, slice):
            return self.take(np.arange(*index.indices(len(self))))
        row = range(len(self))[index]
        key, *parts = self.text(row, row + 1).split("\0")
        return RowRef(self._names[bisect_right(self._starts, row) - 1], key, tuple(parts))

    def __iter__(self) -> Iterator[RowRef]:
        return self.between(0, len(self))

    def between(self, start: int, stop: int, at_once: int = CHUNK) -> Iterator[RowRef]:
        """Yield the rows of a range. Only `at_once` rows are texts at the same time."""
        for split, first in zip(self._names, self._starts, strict=False):
            for lines in self._lines(max(start, first), min(stop, first + self.splits[split]), at_once):
                for line in lines:
                    key, *parts = line.split("\0")
                    yield RowRef(split, key, tuple(parts))

    def take(self, rows: NDArray[np.intp]) -> list[RowRef]:
        """Return the rows with these numbers."""
        if len(rows) and (np.diff(rows) == 1).all():
            return list(self.between(int(rows[0]), int(rows[-1]) + 1))
        return [self[row] for row in rows.tolist()]

    def keys(self, start: int, stop: int) -> Iterator[str]:
        """Yield the keys of a range."""
        for lines in self._lines(start, stop):
            yield from [line.partition("\0")[0] for line in lines]

    def text(self, start: int, stop: int) -> str:
        """Return the lines of a range."""
        if start >= stop:
            return ""
        begin = self._ends[start - 1] if start else self._begin
        return self._text[begin : self._ends[stop - 1] - 1].decode(*_ENCODING)

    def lines(self, start: int, stop: int) -> bytes:
        """Return the lines of a range with their ends, as bytes."""
        if start >= stop:
            return b""
        return bytes(self._text[int(self._ends[start - 1]) if start else self._begin : int(self._ends[stop - 1])])

    def presence(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return for each row of a range which parts are not empty, as a binary number, the first as its highest digit.

        The table must not be empty.
        """
        every = (1 << self.text(0, 1).count("\0")) - 1
        numbers = np.full(max(0, stop - start), every, np.int64)
        for first in range(start, stop, CHUNK):
            last = min(first + CHUNK, stop)
            text = self.text(first, last) + "\n"
            if "\0\n" in text or "\0\0" in text:
                numbers[first - start : last - start] = [_present(line) for line in text[:-1].split("\n")]
        return numbers

    def chosen(self, start: int, stop: int, mask: NDArray[np.bool_]) -> RefTable:
        """Return a table of the rows of a range that are wanted, in the same order."""
        return RefTable.of(compress(self.between(start, stop), mask.tolist()))

    def _lines(self, start: int, stop: int, at_once: int = CHUNK) -> Iterator[list[str]]:
        for first in range(start, stop, at_once):
            yield self.text(first, min(first + at_once, stop)).split("\n")


def _present(line: str) -> int:
    """Return which parts of a row are not empty, as a binary number."""
    return int("".join("1" if part else "0" for part in line.split("\0")[1:]), 2)


class _Joined:
    """Sorted chunks of references, put one after the other into one text that grows: two copies would be the peak."""

    def __init__(self) -> None:
        self._text, self._ends = LongText(), LongNumbers()
        self._begins, self._counts = [0], [0]
        """The beginning of each chunk in the text; the rows of each and all before it."""
        self._splits: list[dict[str, int]] = []
        self._last: RowRef | None = None
        self.in_order = True
        """True if each chunk begins behind the end of the one before."""

    def add(self, chunk: Sequence[RowRef]) -> None:
        self.in_order &= self._last is None or self._last <= chunk[0]
        self._last = chunk[-1]
        lines = ["\0".join((key, *parts)) for _, key, parts in chunk]
        text = "\n".join([*lines, ""])
        sizes = map(len, lines if text.isascii() else [line.encode(*_ENCODING) for line in lines])
        self._ends.add(np.cumsum(np.fromiter(sizes, np.int64, len(lines)) + 1) + len(self._text))
        self._text.add(text.encode(*_ENCODING))
        self._begins.append(len(self._text))
        self._counts.append(self._counts[-1] + len(lines))
        self._splits.append(dict(Counter(map(itemgetter(0), chunk))))

    def table(self) -> RefTable:
        """Return all chunks as one table."""
        splits = Counter[str]()
        for counts in self._splits:
            splits.update(counts)
        return RefTable(self._text, self._ends.all(), dict(splits))

    def parts(self) -> list[RefTable]:
        """Return each chunk as a table."""
        ends, chunks = self._ends.all(), zip(self._begins, pairwise(self._counts), self._splits, strict=False)
        return [RefTable(self._text, ends[first:last], splits, begin) for begin, (first, last), splits in chunks]
