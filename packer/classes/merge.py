"""The draft of a class table: what the rows of a file say, before they are one table or a list of problems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from packer.classes.values import MOST_SAID, MOST_VALUE, drawn
from packer.errors import InputError
from readers.contract.classes import MOST_CLASSES, ClassTable, Colour, DrawnColour, SegClass

T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """What one row, or one entry, says of a class; several of one name are sources of one class."""

    place: str
    name: str
    colour: DrawnColour | None = None
    values: tuple[range, ...] = ()
    colours: tuple[Colour, ...] = ()
    train_id: int | None = None
    ignored: bool = False

    @property
    def owner(self) -> str | int | None:
        """What rows of one class have in common; None is the owner of what is ignored."""
        if self.ignored:
            return None
        return self.name if self.train_id is None else self.train_id


def coloured(place: str, name: str, colour: Colour | None, values: tuple[range, ...] = ()) -> Row:
    """A row whose one colour is both what the class is drawn in and what means it."""
    return Row(place, name, None if colour is None else drawn(colour), values, () if colour is None else (colour,))


def join(path: Path, rows: Sequence[Row], problems: list[str], shared_colours: bool = False) -> ClassTable:
    """One class per name, or per train id, in order; every problem of the file at once.

    With `shared_colours`, those of classes that have values may be shared, as Cityscapes' and Mapillary's are: then all
    colours are but to draw in.
    """
    if sum(len(values) for row in rows for values in row.values) > MOST_SAID:
        raise InputError(f"{path}: says again and again which values are which class; there are {MOST_VALUE + 1}")
    if shared_colours and all(row.values for row in rows) and any(_clashes([_of_colours(row) for row in rows])):
        rows = [replace(row, colours=()) for row in rows]
    groups: dict[object, list[Row]] = {}
    for row in sorted(rows, key=lambda row: -1 if row.train_id is None else row.train_id):
        groups.setdefault(row.owner, []).append(row)
    ignored = groups.pop(None, [])
    if not problems and not 1 <= len(groups) <= MOST_CLASSES:
        problems.append(f"{path}: expected 1 to {MOST_CLASSES} classes, found {len(groups)}")
    problems += [*_divided(rows), *_clashes(rows)]
    if problems:
        raise InputError(f"{path}: {len(problems)} problems in the class table", problems)
    return ClassTable(
        tuple(_class(group) for group in groups.values()),
        _once(value for row in ignored for values in row.values for value in values),
        _once(colour for row in ignored for colour in row.colours),
    )


def _class(rows: Sequence[Row]) -> SegClass:
    """One class of all its rows. Where a train id has several names, all of them together are its name."""
    return SegClass(
        "+".join(_once(row.name for row in rows)),
        next((row.colour for row in rows if row.colour is not None), None),
        _once(value for row in rows for values in row.values for value in values),
        _once(colour for row in rows for colour in row.colours),
    )


def _once(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))


def _divided(rows: Sequence[Row]) -> Iterator[str]:
    """One name must be one class: rows of it that differ in their train id say two things."""
    first: dict[str, Row] = {}
    for row in rows:
        if not row.ignored and first.setdefault(row.name, row).owner != row.owner:
            yield f"{row.place}: {row.name!r} is another class than at {first[row.name].place}, by its train id"


def _of_colours(row: Row) -> Row:
    return replace(row, values=())


def _clashes(rows: Sequence[Row]) -> Iterator[str]:
    """Two classes must not claim one colour or value."""
    first: dict[tuple[str, object], Row] = {}
    for row in rows:
        for claim in (
            *(("colour", one) for one in row.colours),
            *(("value", one) for values in row.values for one in values),
        ):
            other = first.setdefault(claim, row)
            if other.owner != row.owner:
                what, source = claim
                yield f"{row.place}: {what} {source} is both {_shown(other)} and {_shown(row)}"


def _shown(row: Row) -> str:
    return "ignored" if row.ignored else repr(row.name)
