"""Class tables in our own form: `[[class]]` tables with name, colour, values and colours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from packer.classes.class_row import ClassRow, check_colour, check_name, check_values, expected
from packer.classes.documents import unknown_key
from packer.classes.ignore import with_ignored
from packer.classes.merge import merge_rows, table_problems
from packer.classes.values import drawn, parse_colour
from readers.contract.classes import ClassTable, Colour

T = TypeVar("T")

CLASS, IGNORE = "class", "ignore"
KEYS = ["name", "colour", "values", "colours"]


def table_from_toml(path: Path, document: dict[str, Any]) -> ClassTable:
    """Return the class table of a document that contains nothing else."""
    problems = [f"{path}: {key}: {unknown_key(key, [CLASS, IGNORE])}" for key in document.keys() - {CLASS, IGNORE}]
    ignored = _ignored_texts(f"{path}: {IGNORE}", document.get(IGNORE, []), problems)
    table = class_tables(path, document.get(CLASS), sorted(problems))
    return with_ignored(table, ignored, f"{path}: {IGNORE}:")


def class_tables(path: Path, entries: object, problems: list[str]) -> ClassTable:
    """Return the classes of `[[class]]` tables; `problems` are those found elsewhere in the file."""
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise table_problems(
            path, [*problems, f"{path}: {CLASS}: expected [[{CLASS}]] tables, each with {', '.join(KEYS)}"]
        )
    rows = [_row(f"{path}: {CLASS}.{index}", entry, problems) for index, entry in enumerate(entries)]
    return merge_rows(path, rows, problems)


def _ignored_texts(where: str, items: object, problems: list[str]) -> tuple[str, ...]:
    """Return the items of `ignore` in the form that --ignore takes."""
    if not isinstance(items, list):
        problems.append(expected(where, "a list", items))
        return ()
    texts = []
    for index, item in enumerate(items):
        if isinstance(item, list) and parse_colour(item):
            texts.append(",".join(map(str, item)))
        elif type(item) in (int, str):
            texts.append(str(item))
        else:
            problems.append(expected(f"{where}.{index}", "a value, a colour or a name", item))
    return tuple(texts)


def _row(where: str, entry: dict[str, Any], problems: list[str]) -> ClassRow:
    problems += [f"{where}.{key}: {unknown_key(key, KEYS)}" for key in entry if key not in KEYS]
    name = check_name(f"{where}.name", entry.get("name"), problems)
    values = _each(f"{where}.values", entry.get("values", []), check_values, problems)
    colours: list[Colour] = _each(f"{where}.colours", entry.get("colours", []), check_colour, problems)
    colour = check_colour(f"{where}.colour", entry["colour"], problems) if "colour" in entry else None
    if not any(key in entry for key in ("values", "colours", "colour")):
        problems.append(f"{where}: has neither values nor colours, so no label can contain this class")
    if colour is not None and not colours and "values" not in entry:
        colours = [colour]
    first = colour or next(iter(colours), None)
    return ClassRow(
        where,
        name,
        None if first is None else drawn(first),
        tuple(numbers for item in values for numbers in item),
        tuple(colours),
    )


def _each(
    where: str, items: object, check: Callable[[str, object, list[str]], T | None], problems: list[str]
) -> list[T]:
    """Check every item of a list; return the good ones."""
    if not isinstance(items, list):
        problems.append(expected(where, "a list", items))
        return []
    checked = (check(f"{where}.{index}", item, problems) for index, item in enumerate(items))
    return [item for item in checked if item is not None]
