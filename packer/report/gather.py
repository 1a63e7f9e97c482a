"""Gather what a report says of all rows: sums, histograms, and the rows at the ends of each scale."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.shards.row_counts import RowCounts

BINS = 20
MOST_EXTREME = 4
"""The rows that are kept at the end of each scale."""
MOST_TOGETHER = 256
"""With more classes, no table shows which occur together: it would be too large to read."""


@dataclass
class Extreme:
    """The rows with the largest numbers on a scale, the largest first. With `sign` -1 those with the smallest."""

    title: str
    unit: str
    sign: int = 1
    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    values: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def add(self, first: int, values: NDArray[Any], counted: NDArray[np.bool_] | None = None) -> None:
        """Add the numbers of rows from `first` on; only finite numbers that are `counted` count."""
        good = np.isfinite(values) if counted is None else np.isfinite(values) & counted
        if len(self.rows) == MOST_EXTREME:  # most rows are not at the end of any scale
            good &= self.sign * np.asarray(values, np.float64) > self.sign * self.values[-1]
        candidates = np.flatnonzero(good)
        if not len(candidates):
            return
        rows = np.concatenate([self.rows, first + candidates])
        numbers = np.concatenate([self.values, np.asarray(values, np.float64)[candidates]])
        best = np.lexsort((rows, -self.sign * numbers))[:MOST_EXTREME]
        self.rows, self.values = rows[best], numbers[best]


@dataclass
class Gathered:
    """The sums of the counts of all rows."""

    classes: int
    rarest: int | None
    """The class whose rows are shown because few have it."""
    rows: int = 0
    labelled: int = 0
    together: NDArray[np.int64] | None = None
    """(classes, classes): the rows in which two classes occur."""
    ignored: NDArray[np.int64] = field(default_factory=lambda: np.zeros(BINS, np.int64))
    """Rows by their share of ignored pixels."""
    brightness: NDArray[np.int64] = field(default_factory=lambda: np.zeros(BINS, np.int64))
    """Rows by their brightness from 0 to 1."""
    many: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    """Rows by the number of classes in them."""
    extremes: dict[str, Extreme] = field(default_factory=dict)

    @classmethod
    def begin(cls, classes: int, rarest: int | None) -> Gathered:
        """Return what nothing adds up to."""
        gathered = cls(classes, rarest)
        gathered.many = np.zeros(classes + 1, np.int64)
        if classes <= MOST_TOGETHER:
            gathered.together = np.zeros((classes, classes), np.int64)
        gathered.extremes = {
            "rarest": Extreme("The rarest class", "pixels"),
            "ignored": Extreme("Most ignored pixels", "%"),
            "dark": Extreme("The darkest", "", -1),
            "bright": Extreme("The brightest", ""),
            "many": Extreme("Most classes", "classes"),
            "few": Extreme("Fewest classes", "classes", -1),
        }
        return gathered

    def add(self, counts: RowCounts) -> None:
        """Add the rows of the next shard."""
        rows = len(counts.ignored)
        if not rows:
            return
        brightness = counts.brightness
        finite = brightness[np.isfinite(brightness)]
        self.brightness += np.histogram(np.clip(finite, 0, 1), BINS, (0, 1))[0]
        self.extremes["dark"].add(self.rows, brightness)
        self.extremes["bright"].add(self.rows, brightness)
        if len(counts.classes):
            self._add_classes(counts)
        self.rows += rows

    def _add_classes(self, counts: RowCounts) -> None:
        present = counts.classes > 0
        many = present.sum(axis=0)
        area = counts.classes.sum(axis=0, dtype=np.int64) + counts.ignored
        ignored = counts.ignored / np.maximum(area, 1)
        self.labelled += len(counts.ignored)
        self.many += np.bincount(many, minlength=self.classes + 1)
        self.ignored += np.histogram(ignored, BINS, (0, 1))[0]
        if self.together is not None:
            part = present.astype(np.float32)
            self.together += (part @ part.T).astype(np.int64)
        self.extremes["ignored"].add(self.rows, 100 * ignored, counts.ignored > 0)
        self.extremes["many"].add(self.rows, many)
        self.extremes["few"].add(self.rows, many)
        if self.rarest is not None:
            self.extremes["rarest"].add(self.rows, counts.classes[self.rarest], present[self.rarest])


def gather(shards: Iterable[RowCounts], classes: int, rarest: int | None) -> Gathered:
    """Return what the counts of all shards add up to."""
    gathered = Gathered.begin(classes, rarest)
    for counts in shards:
        gathered.add(counts)
    return gathered
