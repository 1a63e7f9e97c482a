"""Percentiles of the bands of a picture or of measured values: exact, from all rows. Nothing of them is stored.

Numbers are counted by codes of 8 or 16 bits that have their order. Of float32 the upper halves are counted first, then
the lower halves of those numbers that share their upper half with a percentile: rows are read twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import RequestError
from readers.contract.fields import LABEL, Field
from readers.contract.kinds import INDEX, KINDS, ONEHOT, VALUES
from readers.formats.large_rows import is_large, strips
from readers.formats.shard import Shard
from readers.machine import usable_cores
from readers.pack import Pack

RANKS = (0.5, 50.0, 99.5)
"""The percentiles that nnU-Net clips by, and the median."""
HALF = 16
"""The bits of a code."""
NUMBERS = 1 << 22
"""The numbers of all bands that are counted together."""
Codes = NDArray[np.unsignedinteger[Any]]
Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]


def percentiles(
    pack: Pack, field: Field, rows: Sequence[int], ranks: Sequence[float] = RANKS, label: Field | None = None
) -> tuple[tuple[float, ...], ...]:
    """Return for each rank, from 0 to 100, a number for each band, as `numpy.percentile` does.

    Numbers are from 0 to 1 if the field has a range. Pixels without data or without a value do not count. With a
    `label`, only pixels of a class count that is not the first one.
    """
    _check(field, ranks)
    counted = _CountedRows(pack, field, rows, label)
    upper = counted.upper()
    totals = upper.sum(axis=1).tolist()
    between = [[(total - 1) * rank / 100 for rank in ranks] for total in totals]
    places = [_neighbours(line) if total else [] for line, total in zip(between, totals, strict=True)]
    bands = zip(between, counted.at(upper, places), strict=True)
    lines = [[_between(place, numbers) for place in line] for line, numbers in bands]
    low, high = field.range or (0, 1)
    return tuple(tuple((number - low) / (high - low) for number in line) for line in zip(*lines, strict=True))


def label_of(fields: Sequence[Field]) -> Field | None:
    """Return the field `label`, or else the first one with classes."""
    with_classes = {field.name: field for field in fields if field.classes is not None}
    return with_classes.get(LABEL) or next(iter(with_classes.values()), None)


def _check(field: Field, ranks: Sequence[float]) -> None:
    if not KINDS[field.kind].has_mean:
        raise RequestError(f"the field {field.name!r} is of the kind {field.kind}, which has no percentiles")
    if not ranks or not all(0 <= rank <= 100 for rank in ranks):
        raise RequestError(f"percentiles {tuple(ranks)}: expected numbers from 0 to 100, such as (0.5, 50, 99.5)")


def _neighbours(places: Sequence[float]) -> list[int]:
    """Return the whole places around these places of sorted numbers."""
    return sorted({end for place in places for end in (math.floor(place), math.ceil(place))})


def _between(place: float, numbers: dict[int, float]) -> float:
    """Return the number at a place of the sorted numbers, between two of them in proportion; NaN if there are none."""
    if not numbers:
        return math.nan
    below, above = numbers[math.floor(place)], numbers[math.ceil(place)]
    return below + (above - below) * (place - math.floor(place))


@dataclass(frozen=True)
class _CountedRows:
    """The numbers of a field in some rows of a pack, which are counted by threads."""

    pack: Pack
    field: Field
    rows: Sequence[int]
    label: Field | None

    @property
    def bands(self) -> int:
        """The bands that are counted apart. A band of a time series has all its dates."""
        return self.field.numbers // self.field.times

    @property
    def bits(self) -> int:
        """The bits of a code."""
        return 8 * np.dtype(self.field.dtype).itemsize

    def upper(self) -> Counts:
        """Count the upper halves of codes, or whole ones if they have no more bits, of each band."""
        counts, lock = np.zeros((self.bands, 1 << min(self.bits, HALF)), np.int64), Lock()

        def count(band: int, codes: Codes) -> None:
            more = np.bincount(codes >> self.bits - HALF if self.bits > HALF else codes, minlength=counts.shape[1])
            with lock:
                counts[band] += more

        self._each(count)
        return counts

    def at(self, upper: Counts, places: Sequence[Sequence[int]]) -> list[dict[int, float]]:
        """Return the numbers of each band that have these places if all are sorted."""
        ends = np.cumsum(upper, axis=1)
        halves = [np.searchsorted(ends[band], line, "right").tolist() for band, line in enumerate(places)]
        if self.bits <= HALF:
            return [self._numbers(line, codes) for line, codes in zip(places, halves, strict=True)]
        lower = self._lower([set(codes) for codes in halves])
        numbers = []
        for band, line in enumerate(places):
            codes = []
            for place, half in zip(line, halves[band], strict=True):
                rest = place - int(ends[band, half] - upper[band, half])
                low = int(np.searchsorted(np.cumsum(lower[band, half]), rest, "right"))
                codes.append(half << HALF | low)
            numbers.append(self._numbers(line, codes))
        return numbers

    def _lower(self, halves: Sequence[set[int]]) -> dict[tuple[int, int], Counts]:
        """Count the lower halves of the codes that have one of these upper halves, of each band."""
        counts = {(band, half): np.zeros(1 << HALF, np.int64) for band, some in enumerate(halves) for half in some}
        lock = Lock()

        def count(band: int, codes: Codes) -> None:
            for half in halves[band]:
                lower = codes[codes >> HALF == half] & ((1 << HALF) - 1)
                more = np.bincount(lower, minlength=1 << HALF)
                with lock:
                    counts[band, half] += more

        self._each(count)
        return counts

    def _numbers(self, places: Sequence[int], codes: Sequence[int]) -> dict[int, float]:
        numbers = _decoded(np.array(codes, f"<u{self.bits // 8}"), np.dtype(self.field.dtype)).tolist()
        return dict(zip(places, map(float, numbers), strict=True))

    def _each(self, count: Any) -> None:
        """Call `count(band, codes)` with the valid numbers of all rows, some rows at a time."""

        def count_some(some: tuple[int, list[int]]) -> None:
            bands = self._numbers_of(*some)
            for band in range(self.bands):
                count(band, _codes(np.concatenate([numbers[band] for numbers in bands])))

        with ThreadPoolExecutor(usable_cores()) as pool:
            for _ in pool.map(count_some, self._some_rows()):
                pass

    def _some_rows(self) -> Iterator[tuple[int, list[int]]]:
        """Yield shards, each with some of its rows that have the field."""
        some: list[int] = []
        before, numbers = -1, 0
        for number, row in self.pack.table.locate_all(self.rows):
            if some and (number != before or numbers > NUMBERS):
                yield before, some
                some, numbers = [], 0
            before = number
            shard = self.pack.shard(number)
            if shard.has(self.field.name) and (self.label is None or shard.has(self.label.name)):
                some.append(row)
                numbers += self.field.numbers * math.prod(shard.size(row))
        if some:
            yield before, some

    def _numbers_of(self, number: int, rows: Sequence[int]) -> list[list[NDArray[Any]]]:
        """Return for each part of these rows the valid numbers of each band."""
        shard = self.pack.shard(number)
        parts = []
        for row in rows:
            for numbers, inside in self._parts(shard, row):
                bands = numbers.reshape(self.field.times, self.bands, -1)
                parts.append([self._valid(bands[:, band], inside) for band in range(self.bands)])
        return parts

    def _parts(self, shard: Shard, row: int) -> Iterator[tuple[NDArray[Any], Mask | None]]:
        """Yield the numbers of a row, and which pixels are in a class that counts. A large row is read in strips."""
        if not is_large(shard, self.field, row):
            yield shard.pixels(self.field, row), self._foreground(shard, row)
            return
        for strip, numbers in strips(shard, self.field, row):
            yield numbers, self._foreground(shard, row, strip)

    def _foreground(self, shard: Shard, row: int, strip: slice | None = None) -> Mask | None:
        label = self.label
        if label is None:
            return None
        area = [slice(0, side) for side in shard.size(row)]
        area[0] = strip or area[0]
        return _in_a_later_class(label, shard.window(label, row, tuple(area))).reshape(-1)

    def _valid(self, numbers: NDArray[Any], inside: Mask | None) -> NDArray[Any]:
        """Return the numbers of a band, of all dates, that count."""
        numbers = (numbers if inside is None else numbers[:, inside]).reshape(-1)
        if not self.field.no_data and self.field.kind != VALUES:
            return numbers
        fill = self.field.fill_number
        has_data = ~np.isnan(numbers) if math.isnan(fill) else numbers != numbers.dtype.type(fill)
        return np.asarray(numbers[has_data])


def _in_a_later_class(label: Field, pixels: NDArray[Any]) -> Mask:
    """Return which pixels are in a class besides the first one; if classes may overlap, in any class."""
    if label.form == INDEX:
        return np.asarray((pixels > 0) & (pixels != label.fill), np.bool_)
    return np.asarray((pixels[1:] if label.form == ONEHOT else pixels).any(axis=0), np.bool_)


def _codes(numbers: NDArray[Any]) -> Codes:
    """Return whole numbers from 0 on that have the order of these numbers."""
    kind, size = numbers.dtype.kind, numbers.dtype.itemsize
    if kind == "u":
        return numbers
    bits: Codes = numbers.view(f"<u{size}")
    sign = bits.dtype.type(1 << 8 * size - 1)
    return np.asarray(bits ^ sign if kind == "i" else np.where(bits & sign, ~bits, bits | sign))


def _decoded(codes: Codes, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the numbers of a type that have these codes."""
    if dtype.kind == "u":
        return codes.astype(dtype)
    sign = codes.dtype.type(1 << 8 * dtype.itemsize - 1)
    bits = codes ^ sign if dtype.kind == "i" else np.where(codes & sign, codes ^ sign, ~codes)
    return np.asarray(bits.view(dtype))
