"""Statistics of a field: exact counts and sums over its stored rows. They add up, from rows to shards and splits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import add
from typing import Any, TypeVar

Counts = tuple[int, ...]
Same = TypeVar("Same", bound="FieldStatistics")


class FieldStatistics:
    """The base of the statistics of each kind of field: counts, and lists of counts that have one length."""

    def __add__(self: Same, other: Same) -> Same:
        ours, theirs = vars(self).values(), vars(other).values()
        return type(self)(*map(_added, ours, theirs))


@dataclass(frozen=True)
class PictureStatistics(FieldStatistics):
    """Pixels of all rows; for each band the sum of its numbers and of their squares."""

    numbers: int
    sums: Counts
    squares: Counts

    @classmethod
    def none(cls, bands: int) -> PictureStatistics:
        """Return the statistics of no rows."""
        return cls(0, (0,) * bands, (0,) * bands)


@dataclass(frozen=True)
class ClassStatistics(FieldStatistics):
    """For each class its pixels, the rows in which it occurs, and all pixels of these rows; the pixels without one."""

    classes: Counts
    rows: Counts
    areas: Counts
    ignored: int

    @classmethod
    def none(cls, classes: int) -> ClassStatistics:
        """Return the statistics of no rows."""
        nothing = (0,) * classes
        return cls(nothing, nothing, nothing, 0)

    @property
    def count(self) -> int:
        """The number of all pixels, if classes do not overlap."""
        return sum(self.classes) + self.ignored


Statistics = Mapping[str, FieldStatistics]
"""The statistics of each field by its name."""


def _added(ours: Any, theirs: Any) -> Any:
    if type(ours) is int:
        return ours + theirs
    if len(ours) != len(theirs):
        raise ValueError(f"statistics of {len(ours)} and of {len(theirs)} bands or classes do not add up")
    return tuple(map(add, ours, theirs))  # called for every row: half the time of a generator
