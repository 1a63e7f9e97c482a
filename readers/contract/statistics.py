"""Statistics of a field: exact counts and sums over its stored rows. They add up, from rows to shards and splits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from operator import add
from typing import Any, TypeVar

from readers.contract.fields import LABEL, Field
from readers.contract.json_entry import Entry
from readers.contract.kinds import IDS, PICTURE, VALUES

Counts = tuple[int, ...]
Same = TypeVar("Same", bound="FieldStatistics")

UNIT_BITS = {"<f2": 24, "<f4": 149}
"""Floating-point numbers of a dtype are whole multiples of 2 to the power of minus so much; the unit of sums."""
_SUM = re.compile(r"0|-?[1-9][0-9]{0,299}")


@dataclass(frozen=True)
class FieldStatistics:
    """The base of the statistics of each kind of field: counts, and lists of counts that have one length."""

    def __add__(self: Same, other: Same) -> Same:
        ours, theirs = vars(self).values(), vars(other).values()
        return type(self)(*map(_added, ours, theirs))

    @property
    def length(self) -> int:
        """The number of bands or classes that are counted apart; 0 if there are no lists."""
        return max((len(value) for value in vars(self).values() if isinstance(value, tuple)), default=0)

    def to_json(self) -> dict[str, Any]:
        return {key: _JSON.get(key, _unchanged)(value) for key, value in vars(self).items()}

    @classmethod
    def from_json(cls: type[Same], entry: Entry) -> Same:
        statistics = cls(**{field.name: _TAKE.get(field.name, Entry.whole)(entry, field.name) for field in fields(cls)})
        lists = [value for value in vars(statistics).values() if isinstance(value, tuple)]
        if len(set(map(len, lists))) > 1:
            entry.problem("", f"expected lists of one length, found {', '.join(str(len(values)) for values in lists)}")
        facts = vars(statistics)
        counted = getattr(statistics, "counted", ())
        for number, (count, total, square) in enumerate(
            zip(counted, facts.get("sums", ()), facts.get("squares", ()), strict=False)
        ):
            if count < 0 or square < 0 or square * count < total * total:
                entry.problem(f"squares.{number}", "is less than this count of numbers with this sum can have")
        entry.close()
        return statistics


@dataclass(frozen=True)
class PictureStatistics(FieldStatistics):
    """Pixels of all rows; for each band the sum of its numbers and of their squares."""

    numbers: int
    sums: Counts
    squares: Counts

    @property
    def counted(self) -> Counts:
        """The numbers of each band that are in its sums."""
        return (self.numbers,) * len(self.sums)


@dataclass(frozen=True)
class MaskedStatistics(PictureStatistics):
    """The same of pictures with pixels without data: these are in no sum, and are counted for each band."""

    missing: Counts

    @property
    def counted(self) -> Counts:
        return tuple([self.numbers - missing for missing in self.missing])


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


@dataclass(frozen=True)
class IdStatistics(FieldStatistics):
    """Pixels of all rows, and those that belong to no object."""

    numbers: int
    empty: int


@dataclass(frozen=True)
class ValueStatistics(FieldStatistics):
    """Pixels with a measurement and without one; the sum of the measured numbers and of their squares."""

    numbers: int
    invalid: int
    sums: Counts
    squares: Counts

    @property
    def counted(self) -> Counts:
        """The numbers that are in the sums."""
        return (self.numbers,) * len(self.sums)


Statistics = Mapping[str, FieldStatistics]
"""The statistics of each field by its name."""


def no_rows(fields: Iterable[Field]) -> dict[str, FieldStatistics]:
    """Return the statistics of no rows of these fields."""
    return {field.name: _nothing(field) for field in fields}


def _nothing(field: Field) -> FieldStatistics:
    if field.kind == PICTURE:
        nothing = (0,) * field.numbers
        if field.no_data:
            return MaskedStatistics(0, nothing, nothing, nothing)
        return PictureStatistics(0, nothing, nothing)
    if field.kind == IDS:
        return IdStatistics(0, 0)
    if field.kind == VALUES:
        return ValueStatistics(0, 0, (0,), (0,))
    return ClassStatistics.none(len(field.classes or ()))


def total(fields: Sequence[Field], parts: Iterable[Statistics]) -> dict[str, FieldStatistics]:
    """Return the sum of statistics, each of some or all of these fields."""
    return reduce(_together, parts, no_rows(fields))


def _together(statistics: dict[str, FieldStatistics], more: Statistics) -> dict[str, FieldStatistics]:
    return {name: ours + more[name] if name in more else ours for name, ours in statistics.items()}


def misfit(statistics: Statistics, fields: Sequence[Field]) -> str | None:
    """Return what is wrong with statistics that do not belong to these fields; None if they do."""
    expected = no_rows(fields)
    if list(statistics) != list(expected):
        return f"expected statistics of {', '.join(expected)}, found {', '.join(statistics) or 'none'}"
    for name, nothing in expected.items():
        if (type(statistics[name]), statistics[name].length) != (type(nothing), nothing.length):
            return f"{name}: expected {_described(nothing)}, found {_described(statistics[name])}"
    return None


def _described(statistics: FieldStatistics) -> str:
    return f"{', '.join(vars(statistics))} for {statistics.length} bands or classes"


def class_counts(statistics: Statistics) -> ClassStatistics:
    """Return the statistics of the field `label`, or else of the first field with classes; empty ones if none has."""
    with_classes = {name: counts for name, counts in statistics.items() if isinstance(counts, ClassStatistics)}
    return with_classes.get(LABEL) or next(iter(with_classes.values()), ClassStatistics.none(0))


def statistics_json(statistics: Statistics) -> dict[str, Any]:
    return {name: counts.to_json() for name, counts in statistics.items()}


def read_statistics(entry: Entry, key: str) -> dict[str, FieldStatistics]:
    """Take the statistics of fields. Their keys show their kind."""
    names, inner = entry.anything(key), entry.entry(key)
    entries = {name: inner.entry(name) for name in names}
    return {name: _form(field_entry).from_json(field_entry) for name, field_entry in entries.items()}


def _form(entry: Entry) -> type[FieldStatistics]:
    if entry.has("classes"):
        return ClassStatistics
    if entry.has("empty"):
        return IdStatistics
    if entry.has("missing"):
        return MaskedStatistics
    return ValueStatistics if entry.has("invalid") else PictureStatistics


def _sums(entry: Entry, key: str) -> Counts:
    """Take whole numbers of any size, which JSON has as texts."""
    texts = entry.texts(key)
    for number, text in enumerate(texts):
        if not _SUM.fullmatch(text):
            entry.problem(f"{key}.{number}", f"expected a whole number in digits, found {text[:40]!r}")
            return ()
    return tuple(map(int, texts))


def _unchanged(value: Any) -> Any:
    return value


def _texts(values: Counts) -> list[str]:
    return list(map(str, values))


_JSON: dict[str, Callable[[Any], Any]] = {
    "classes": list,
    "rows": list,
    "areas": list,
    "missing": list,
    "sums": _texts,
    "squares": _texts,
}
_TAKE: dict[str, Callable[[Entry, str], Any]] = {
    "classes": Entry.wholes,
    "rows": Entry.wholes,
    "areas": Entry.wholes,
    "missing": Entry.wholes,
    "sums": _sums,
    "squares": _sums,
}


def _added(ours: Any, theirs: Any) -> Any:
    if type(ours) is int:
        return ours + theirs
    if len(ours) != len(theirs):
        raise ValueError(f"statistics of {len(ours)} and of {len(theirs)} bands or classes do not add up")
    return tuple(map(add, ours, theirs))  # called for every row: half the time of a generator
