"""Class tables in our own form: `[[class]]` tables with name, colour, values and colours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from packer.classes.documents import kind, unknown_key
from packer.classes.ignore import ignoring
from packer.classes.merge import Row, join
from packer.classes.values import MOST_VALUE, drawn, parse_colour, parse_values
from packer.errors import InputError
from readers.contract.classes import ClassTable, Colour

T = TypeVar("T")

CLASS, IGNORE = "class", "ignore"
KEYS = ["name", "colour", "values", "colours"]
_A_VALUE = f"a value such as 7 or a range such as '8-10', from 0 to {MOST_VALUE}"
_A_COLOUR = "a colour such as '#00ff80', '#00000000' or [0, 255, 128]"


def read_tables(path: Path, document: dict[str, Any]) -> ClassTable:
    """The class table of a document that holds nothing else."""
    problems = [f"{path}: {key}: {unknown_key(key, [CLASS, IGNORE])}" for key in document.keys() - {CLASS, IGNORE}]
    ignored = ignore_texts(f"{path}: {IGNORE}", document.get(IGNORE, []), problems)
    table = class_tables(path, document.get(CLASS), sorted(problems))
    return ignoring(table, ignored, f"{path}: {IGNORE}:")


def class_tables(path: Path, entries: object, problems: list[str]) -> ClassTable:
    """The classes of `[[class]]` tables; `problems` are those that the file has elsewhere."""
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        problems = [*problems, f"{path}: {CLASS}: expected [[{CLASS}]] tables, each with {', '.join(KEYS)}"]
        raise InputError(f"{path}: {len(problems)} problems in the class table", problems)
    return join(
        path, [_row(f"{path}: {CLASS}.{number}", entry, problems) for number, entry in enumerate(entries)], problems
    )


def ignore_texts(place: str, items: object, problems: list[str]) -> tuple[str, ...]:
    """A list of what is no class, as --ignore would be told."""
    if not isinstance(items, list):
        problems.append(f"{place}: expected a list, found {kind(items)}")
        return ()
    texts = []
    for number, item in enumerate(items):
        if isinstance(item, list) and parse_colour(item):
            texts.append(",".join(map(str, item)))
        elif type(item) in (int, str):
            texts.append(str(item))
        else:
            problems.append(f"{place}.{number}: expected a value, a colour or a name, found {kind(item)}")
    return tuple(texts)


def _row(place: str, entry: dict[str, Any], problems: list[str]) -> Row:
    problems += [f"{place}.{key}: {unknown_key(key, KEYS)}" for key in entry if key not in KEYS]
    name = entry.get("name")
    if not isinstance(name, str) or not name.strip():
        problems.append(f"{place}.name: expected a text" + (f", found {kind(name)}" if "name" in entry else ""))
        name = ""
    values: list[tuple[range, ...]] = _each(
        f"{place}.values", entry.get("values", []), parse_values, _A_VALUE, problems
    )
    colours: list[Colour] = _each(f"{place}.colours", entry.get("colours", []), parse_colour, _A_COLOUR, problems)
    colour = parse_colour(entry.get("colour"))
    if "colour" in entry and colour is None:
        problems.append(f"{place}.colour: expected {_A_COLOUR}, found {kind(entry['colour'])}")
    elif not any(key in entry for key in ("values", "colours", "colour")):
        problems.append(f"{place}: has neither values nor colours, so that no label can mean it")
    if colour is not None and not colours and "values" not in entry:
        colours = [colour]
    shown = colour or next(iter(colours), None)
    return Row(
        place,
        name,
        None if shown is None else drawn(shown),
        tuple(one for some in values for one in some),
        tuple(colours),
    )


def _each(
    place: str, items: object, parse: Callable[[object], T | None], expected: str, problems: list[str]
) -> list[T]:
    """Every item of a list, as `parse` understands it."""
    if not isinstance(items, list):
        problems.append(f"{place}: expected a list, found {kind(items)}")
        return []
    found = []
    for number, item in enumerate(items):
        parsed = parse(item)
        if parsed is None:
            problems.append(f"{place}.{number}: expected {expected}, found {kind(item)}")
        else:
            found.append(parsed)
    return found
