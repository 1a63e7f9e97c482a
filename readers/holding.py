"""`Holding`: windows drawn by the classes in them: over a class, or with at most so much of the largest one.

Nothing is drawn until it fits: a slot of a batch gets a class, then a row that has it, then a cell of that row that has
it, each from numbers that follow from (seed, epoch, the row that the order gave to the slot). So the same windows come
for any number of threads and ranks, and after any resumption.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readers.class_index import CellsOfRow, ClassIndex, ClassRows
from readers.contract.count_cells import CELL
from readers.contract.errors import DamagedError, RequestError
from readers.contract.fields import Field
from readers.contract.kinds import ONEHOT
from readers.crop import CropAndFlip, RandomCrop, Spans
from readers.draws import dice, unit
from readers.epoch import BatchRows, Run
from readers.permutation import Numbers, Words
from readers.row_ranges import RowRanges
from readers.windows import BatchWindows

TRIES = 10
"""The windows that are drawn at most for `most`, the first one included."""
MOST_KEPT = 64
"""The batches whose rows are kept: more than are read ahead."""
NONE = -1
"""The class of a slot that asks for nothing."""


class HeldRows(NamedTuple):
    """The rows of the pack that a batch reads, and the class that each slot asks for, or `NONE`."""

    rows: Numbers
    classes: Numbers | None = None
    words: Words | None = None
    """Random numbers for each slot: which class, which row; over the foreground, which class of it; which cell, which
    pixel."""


class HeldWindows(NamedTuple):
    """The windows of a batch, and how many were drawn again, and how many are still above `most`."""

    windows: BatchWindows | None
    again: int = 0
    above: int = 0


@dataclass(frozen=True)
class Holding:
    """The draw of rows and windows of a data set by their classes. Threads may share it."""

    index: ClassIndex
    crop: CropAndFlip
    asks: RandomCrop
    rows: dict[int, ClassRows]
    """The rows of each class that is held."""
    ends: NDArray[np.float64]
    """The shares of these classes, summed up."""

    @classmethod
    def of(cls, index: ClassIndex, ranges: RowRanges, crop: CropAndFlip, asks: RandomCrop) -> Holding:
        """Look up the rows that have the classes. Refuse a class that no row has."""
        holds = [(index.number(name), share) for name, share in (asks.holds or {}).items() if share]
        numbers = [number for number, _ in holds]
        if len(set(numbers)) < len(numbers):
            raise RequestError(f"holds={asks.holds!r}: names a class twice")
        rows = index.rows(ranges, numbers) if holds else {}
        missing = ", ".join(repr(index.names[number]) for number in numbers if not len(rows[number].rows))
        if missing:
            raise RequestError(f"holds={asks.holds!r}: no row of this data set has {missing}")
        if not holds and ranges:
            index.of_row(ranges[0])  # a pack without an index is refused now
        return cls(index, crop, asks, rows, np.cumsum([share for _, share in holds]))

    def __post_init__(self) -> None:
        object.__setattr__(self, "_kept", lru_cache(MOST_KEPT)(self._replaced))

    def replaced(self, batch: BatchRows, rows: Numbers) -> HeldRows:
        """Return the rows of a batch with other ones in the slots that ask for a class. A row without a label stays.

        A batch is prefetched, read and dropped, so the last batches are kept.
        """
        held: HeldRows = self._kept(batch.rows.tobytes(), tuple(batch.runs), rows.tobytes())  # type: ignore[attr-defined]
        return held

    def _replaced(self, slots: bytes, runs: tuple[Run, ...], in_pack: bytes) -> HeldRows:
        batch, rows = BatchRows(np.frombuffer(slots, np.int64), runs, ()), np.frombuffer(in_pack, np.int64)
        classes, words = np.full(len(rows), NONE), dice(batch.rows, batch.runs, "hold", 6)
        if not self.rows:
            return HeldRows(rows, classes, words)
        chance, where, *_ = words
        chosen = self.ends.searchsorted(unit(chance), "right")
        chosen[~self._labelled(rows)] = len(self.rows)
        rows = rows.copy()
        for number, (label, having) in enumerate(self.rows.items()):
            mine = chosen == number
            classes[mine] = label
            rows[mine] = self._drawn(having, where[mine])
        return HeldRows(rows, classes, words)

    def _drawn(self, having: ClassRows, words: Words) -> Numbers:
        by_row = self.asks.holds_rows == "uniform"
        places = words % np.uint64(len(having.rows)) if by_row else having.at(words % having.ends[-1])
        rows: Numbers = having.rows[places].astype(np.int64)
        return rows

    def _labelled(self, rows: Numbers) -> NDArray[np.bool_]:
        """Return which rows have the label."""
        pack, field = self.index.pack, self.index.field
        if not field.optional:
            return np.ones(len(rows), np.bool_)
        shards = (shard for shard, _ in pack.table.locate_all(rows.tolist()))
        return np.array([field in pack.fields_of(shard) for shard in shards], np.bool_)

    def windows(self, batch: BatchRows, held: HeldRows, sizes: NDArray[Any]) -> HeldWindows:
        """Return the windows of a batch whose rows have these sides."""
        spans = self._spans(batch, held, sizes)
        windows = self.crop.windows(batch.rows, batch.runs, sizes, spans)
        if self.asks.most >= 1:
            return HeldWindows(windows)
        cells = self.index.of_rows(held.rows.tolist())
        again = above = self._above(windows, cells, sizes, range(len(cells)))
        for attempt in range(1, TRIES):
            if not above:
                break
            other = self.crop.windows(batch.rows, batch.runs, sizes, spans, attempt)
            for slot in above:
                windows.starts[slot] = other.starts[slot]
            above = self._above(windows, cells, sizes, above)
        return HeldWindows(windows, len(again), len(above))

    def _above(
        self, windows: BatchWindows, cells: Sequence[CellsOfRow | None], sizes: NDArray[Any], slots: Sequence[int]
    ) -> list[int]:
        """Return the slots in whose windows the largest class has a larger share than `most`."""
        slots = [slot for slot in slots if cells[slot] is not None]
        sides, starts = sizes[slots], np.array(windows.starts)[slots]
        scaled = sides if windows.scaled is None else np.array(windows.scaled)[slots]
        begins, ends = starts * sides / scaled, (starts + np.asarray(self.asks.size)) * sides / scaled
        rows = [cells[slot] for slot in slots]
        shares = largest_shares([row for row in rows if row is not None], sides, begins, ends)
        return [slot for slot, share in zip(slots, shares, strict=True) if share > self.asks.most]

    def _spans(self, batch: BatchRows, held: HeldRows, sizes: NDArray[Any]) -> Spans | None:
        """Return the part that each window must cover, a cell with the class; None if no window must cover any."""
        if not self.rows and not self.asks.foreground:
            return None
        assert held.classes is not None, "this object has replaced the rows"
        assert held.words is not None, "and drawn their numbers"
        chance, which, cell, pixel = held.words[2:]
        over = np.flatnonzero((held.classes != NONE) | (unit(chance) < self.asks.foreground))
        rows = self.index.of_rows(held.rows[over].tolist())
        words = zip(over.tolist(), held.classes[over].tolist(), which[over].tolist(), cell[over].tolist(), strict=True)
        drawn = [
            (slot, *_cell_of(row, label, word, place))
            for (slot, label, word, place), row in zip(words, rows, strict=True)
            if row is not None and (label != NONE or row.has_foreground)
        ]
        spans = Spans(np.zeros_like(sizes), np.zeros_like(sizes))
        if drawn:
            slots, labels, cells = map(list, zip(*drawn, strict=True))
            begins, ends = self._places(held.rows[slots], np.array(cells), sizes[slots])
            scaled = self.crop.scaled(batch.rows, batch.runs, sizes)[slots]
            too_small = (_scaled(begins, ends, sizes[slots], scaled)[2] > self.asks.size).any(axis=1)
            for number in np.flatnonzero(too_small).tolist():
                row, word = int(held.rows[slots[number]]), int(pixel[slots[number]])
                begins[number] += self._pixel(row, labels[number], begins[number], ends[number], word)
                ends[number] = begins[number] + 1
            spans.begins[slots], spans.ends[slots], _ = _scaled(begins, ends, sizes[slots], scaled)
        return spans

    def _places(
        self, rows: Numbers, cells: Numbers, sides: NDArray[Any]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where cells begin and end in their rows, which have these sides."""
        lengths = np.array(CELL[sides.shape[1]])
        grids, rest = -(-sides // lengths), cells
        begins = np.empty(sides.shape, np.int64)
        for side in range(sides.shape[1] - 1, -1, -1):
            rest, begins[:, side] = np.divmod(rest, grids[:, side])
        if rest.any():
            raise self._damaged(int(rows[rest > 0][0]))
        begins *= lengths
        return begins, np.minimum(begins + lengths, sides)

    def _pixel(self, number: int, label: int, begin: NDArray[Any], end: NDArray[Any], word: int) -> NDArray[Any]:
        """Draw a pixel of a class in a cell of a row."""
        shard, inside = self.index.pack.table.locate(number)
        field = self.index.field
        part = tuple(map(slice, begin.tolist(), end.tolist()))
        points = np.argwhere(_is_class(field, self.index.pack.shard(shard).window(field, inside, part), label))
        if not len(points):
            raise self._damaged(number)
        drawn: NDArray[Any] = points[word % len(points)]
        return drawn

    def _damaged(self, number: int) -> DamagedError:
        shard, inside = self.index.pack.table.locate(number)
        stem = self.index.pack.stem(shard)
        return DamagedError(f"{stem}: the cells of its row {inside} do not fit its label; run packer verify")


def largest_shares(
    rows: Sequence[CellsOfRow], sides: NDArray[Any], begins: NDArray[np.float64], ends: NDArray[np.float64]
) -> Iterator[float]:
    """Yield which share of the pixels of a part of each row its largest class has; 0 if none of them has a class.

    The pixels of a cell that is partly inside count in proportion to its area inside, in steps of 1/256 of each side.
    """
    if not rows:
        return
    lengths = CELL[sides.shape[1]]
    grids = -(-sides // np.array(lengths))
    parts = [_covered(sides[:, side], length, begins[:, side], ends[:, side]) for side, length in enumerate(lengths)]
    table = reduce(lambda whole, part: whole[..., None] * part.reshape(len(part), *[1] * (whole.ndim - 1), -1), parts)
    is_whole = (grids == table.shape[1:]).all(axis=1)
    for number, row in enumerate(rows):
        weights = table[number] if is_whole[number] else table[number][tuple(map(slice, grids[number]))]
        largest, total = row.largest(np.ascontiguousarray(weights.reshape(-1)))
        yield largest / total if total else 0


def _covered(
    sides: NDArray[Any], length: int, begins: NDArray[np.float64], ends: NDArray[np.float64]
) -> NDArray[np.uint32]:
    """Return how much of each cell along a side of each row is inside, from 0 to 256."""
    firsts = np.arange(0, int(sides.max()), length)
    lasts = np.minimum(firsts + length, sides[:, None])
    inside = np.minimum(lasts, ends[:, None]) - np.maximum(firsts, begins[:, None])
    parts: NDArray[np.uint32] = (np.maximum(inside, 0) * 256 / np.maximum(lasts - firsts, 1)).astype(np.uint32)
    return parts


def _scaled(
    begin: NDArray[Any], end: NDArray[Any], sides: NDArray[Any], scaled: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return where a part of a row begins and ends when the row is scaled, and its sides."""
    first, last = begin * scaled // sides, -(-end * scaled // sides)
    return first, last, last - first


def _cell_of(row: CellsOfRow, label: int, word: int, place: int) -> tuple[int, int]:
    """Return a class, the one that is asked for or else any of the row besides class 0, and a cell of the row that has
    it, drawn in proportion to its pixels of the class."""
    if label == NONE:
        classes = row.classes[row.classes > 0]
        label = int(classes[word % len(classes)])
    cells, counts = row.of_class(label)
    ends = counts.cumsum(dtype=np.int64)
    return label, int(cells[ends.searchsorted(place % int(ends[-1]), "right")])


def _is_class(field: Field, pixels: NDArray[Any], label: int) -> NDArray[np.bool_]:
    return np.asarray((pixels[label] if field.form == ONEHOT else pixels) == (1 if field.form == ONEHOT else label))
