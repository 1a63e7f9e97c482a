"""`Pixels`: counts and sums over pixels, which add up from rows to shards, splits and data sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from readers.contract.json_entry import Entry
from readers.contract.statistics import ClassStatistics, PictureStatistics, Statistics

Counts = tuple[int, ...]
CHANNELS = 3


@dataclass(frozen=True)
class Pixels:
    """Counts of label pixels, and sums of image pixels.

    For each class: its pixels, the rows in which it occurs, and all pixels of these rows (`areas`). `ignored` counts
    the pixels without a class. For each channel: the sum of its numbers from 0 to 255, and of their squares.
    """

    classes: Counts
    rows: Counts
    areas: Counts
    ignored: int
    sums: Counts
    squares: Counts

    @classmethod
    def none(cls, classes: int) -> Pixels:
        """Return the counts and sums of no rows."""
        nothing = (0,) * classes
        return cls(nothing, nothing, nothing, 0, (0,) * CHANNELS, (0,) * CHANNELS)

    @property
    def count(self) -> int:
        """The number of all pixels."""
        return sum(self.classes) + self.ignored

    def to_json(self) -> dict[str, Any]:
        return {
            "classes": list(self.classes),
            "rows": list(self.rows),
            "areas": list(self.areas),
            "ignored": self.ignored,
            "sums": list(self.sums),
            "squares": list(self.squares),
        }

    @classmethod
    def from_json(cls, entry: Entry) -> Pixels:
        pixels = cls(
            classes=entry.wholes("classes"),
            rows=entry.wholes("rows"),
            areas=entry.wholes("areas"),
            ignored=entry.whole("ignored"),
            sums=entry.wholes("sums"),
            squares=entry.wholes("squares"),
        )
        if not len(pixels.classes) == len(pixels.rows) == len(pixels.areas):
            entry.problem("classes", "expected as many counts as in rows and areas")
        if not len(pixels.sums) == len(pixels.squares) == CHANNELS:
            entry.problem("sums", f"expected {CHANNELS} numbers, as in squares")
        entry.close()
        return pixels

    def __add__(self, other: Pixels) -> Pixels:
        return Pixels(
            classes=_added(self.classes, other.classes),
            rows=_added(self.rows, other.rows),
            areas=_added(self.areas, other.areas),
            ignored=self.ignored + other.ignored,
            sums=_added(self.sums, other.sums),
            squares=_added(self.squares, other.squares),
        )


def _added(ours: Counts, theirs: Counts) -> Counts:
    return tuple(our + their for our, their in zip(ours, theirs, strict=True))


def pixels_of(statistics: Statistics) -> Pixels:
    """Return the statistics of an image and a label as one object."""
    image, label = statistics.values()
    assert isinstance(image, PictureStatistics)
    assert isinstance(label, ClassStatistics)
    return Pixels(label.classes, label.rows, label.areas, label.ignored, image.sums, image.squares)
