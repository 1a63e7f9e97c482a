"""Merge the rows of a file into a class table, or report every problem of the file together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from packer.classes.class_row import ClassRow
from packer.classes.values import MOST_LISTED, MOST_VALUE
from packer.errors import SettingsError, counted
from readers.contract.classes import MOST_CLASSES, ClassTable, SegClass

T = TypeVar("T")


def merge_rows(path: Path, rows: Sequence[ClassRow], problems: list[str], shared_colours: bool = False) -> ClassTable:
    """Merge rows into one class per name, or per train id, in the order of the file or of the train ids.

    With `shared_colours`, two classes that both have values may have the same colour, as in Cityscapes and Mapillary.
    Colours then only draw the classes.
    """
    if sum(len(values) for row in rows for values in row.values) > MOST_LISTED:
        raise SettingsError(f"{path}: repeats the same values too often; there are only {MOST_VALUE + 1}")
    if shared_colours and all(row.values for row in rows) and any(_clashes([_without_values(row) for row in rows])):
        rows = [replace(row, colours=()) for row in rows]
    groups: dict[object, list[ClassRow]] = {}
    for row in sorted(rows, key=lambda row: -1 if row.train_id is None else row.train_id):
        groups.setdefault(row.owner, []).append(row)
    ignored = groups.pop(None, [])
    if not problems and not 1 <= len(groups) <= MOST_CLASSES:
        problems.append(f"{path}: expected 1 to {MOST_CLASSES} classes, found {len(groups)}")
    problems += [*_divided(rows), *_clashes(rows)]
    if problems:
        raise table_problems(path, problems)
    return ClassTable(
        tuple(_class(group) for group in groups.values()),
        _once(value for row in ignored for values in row.values for value in values),
        _once(colour for row in ignored for colour in row.colours),
    )


def table_problems(path: Path, problems: Sequence[str]) -> SettingsError:
    return SettingsError(f"{path}: {counted(len(problems), 'problem')} in the class table", problems)


def _class(rows: Sequence[ClassRow]) -> SegClass:
    """Merge the rows of one class. Several names of one train id are joined with a plus sign."""
    return SegClass(
        "+".join(_once(row.name for row in rows)),
        next((row.colour for row in rows if row.colour is not None), None),
        _once(value for row in rows for values in row.values for value in values),
        _once(colour for row in rows for colour in row.colours),
    )


def _once(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))


def _divided(rows: Sequence[ClassRow]) -> Iterator[str]:
    """Report rows that have the same name but different train ids."""
    first: dict[str, ClassRow] = {}
    for row in rows:
        if not row.ignored and first.setdefault(row.name, row).owner != row.owner:
            yield f"{row.where}: {row.name!r} has another train id at {first[row.name].where}"


def _without_values(row: ClassRow) -> ClassRow:
    return replace(row, values=())


def _clashes(rows: Sequence[ClassRow]) -> Iterator[str]:
    """Report values and colours that belong to two classes."""
    first: dict[tuple[str, object], ClassRow] = {}
    for row in rows:
        for source in (
            *(("colour", colour) for colour in row.colours),
            *(("value", value) for values in row.values for value in values),
        ):
            other = first.setdefault(source, row)
            if other.owner != row.owner:
                yield f"{row.where}: {source[0]} {source[1]} is both {_shown(other)} and {_shown(row)}"


def _shown(row: ClassRow) -> str:
    return "ignored" if row.ignored else repr(row.name)
