"""Reading the class table: a CSV as people ship it, or just a range of values; then what is to be ignored."""

from __future__ import annotations

import colorsys
import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from packer.errors import InputError, UsageError
from readers.contract.classes import MOST_CLASSES, ClassTable, Colour, SegClass

TABLE_NAMES = ("class_dict.csv", "classes.csv", "class_table.csv")
"""Looked for in the raw folder when --classes is not given."""

MOST_VALUE = 65_535
_COLUMNS = {
    "name": ("name", "class", "class_name", "classname", "label", "label_name", "category"),
    "red": ("r", "red"),
    "green": ("g", "green"),
    "blue": ("b", "blue"),
    "colour": ("colour", "color", "hex", "rgb", "colour_hex", "color_hex"),
    "value": ("value", "id", "index", "pixel", "pixel_value", "label_id", "class_id", "train_id", "gray", "grey"),
}
_NUMBER = re.compile(r"[0-9]{1,5}")
_VALUES = re.compile(r"[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*")


def class_table(raw: Path, classes: str | None, ignore: Sequence[str] = ()) -> ClassTable | None:
    """The class table that --classes names, or that lies in the raw folder; None where there is neither."""
    if classes is None:
        paths = [path for path in sorted(raw.iterdir()) if path.name.lower() in TABLE_NAMES]
        if not paths:
            return None
        if len(paths) > 1:
            raise InputError(
                f"{raw}: has several class tables; choose one with --classes", [str(path) for path in paths]
            )
        table = read_table(paths[0])
    elif _VALUES.fullmatch(classes.strip()):
        table = _values_table(classes.strip())
    else:
        table = read_table(Path(classes))
    return _ignoring(table, ignore)


def _values_table(text: str) -> ClassTable:
    """`12` is the values 0 to 11; `1-150` and `0,255` are what they say."""
    if text.isdigit():
        values = list(range(int(text)))
    else:
        ends = [(part.partition("-")[0], part.rpartition("-")[2]) for part in text.split(",")]
        values = [value for first, last in ends for value in range(int(first), int(last) + 1)]
    if not 1 <= len(set(values)) == len(values) <= MOST_CLASSES or max(values) > MOST_VALUE:
        raise UsageError(f"--classes {text}: expected a number of classes, or different values such as 1-150 or 0,255")
    drawn = _distinct_colours(len(values))
    return ClassTable(
        tuple(SegClass(f"class_{value}", colour, (value,)) for value, colour in zip(values, drawn, strict=True))
    )


def _distinct_colours(count: int) -> Iterable[Colour]:
    """Colours to draw classes in that come without: hues a golden angle apart."""
    for number in range(count):
        red, green, blue = colorsys.hsv_to_rgb(number * 0.618034 % 1, 0.55 + 0.4 * (number % 2), 0.95)
        yield round(red * 255), round(green * 255), round(blue * 255)


def read_table(path: Path) -> ClassTable:
    """A CSV of classes: a name, and r,g,b or a colour such as #RRGGBB or a value, under whatever heading says so."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the class table cannot be read ({error})") from error
    rows = _cells(path, text)
    columns, rows = _columns(path, rows)
    problems: list[str] = []
    classes = [_one_class(f"{path}:{number}", row, columns, problems) for number, row in rows]
    problems += _clashes(path, classes)
    if problems:
        raise InputError(f"{path}: {len(problems)} problems in the class table", problems)
    return ClassTable(tuple(classes))


def _cells(path: Path, text: str) -> list[tuple[int, list[str]]]:
    """The rows that are not empty, with their line numbers and without the white space and quotes around cells."""
    reader = csv.reader(io.StringIO(text), delimiter=_delimiter(text), skipinitialspace=True, strict=True)
    try:
        rows = [(reader.line_num, [cell.strip().strip("'\"").strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: the class table cannot be read ({error})") from error
    return [(number, row) for number, row in rows if any(row)]


def _delimiter(text: str) -> str:
    """The separator of the first line that has one."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    return max(",;\t|", key=line.count) if any(sign in line for sign in ",;\t|") else " "


def _columns(path: Path, rows: list[tuple[int, list[str]]]) -> tuple[dict[str, int], list[tuple[int, list[str]]]]:
    """Which column holds what, and the rows below the heading. Without a heading, name,r,g,b is understood."""
    if not rows:
        raise InputError(f"{path}: the class table is empty")
    heading = [cell.casefold().replace(" ", "_") for cell in rows[0][1]]
    columns = {
        what: next(place for place, cell in enumerate(heading) if cell in names)
        for what, names in _COLUMNS.items()
        if any(cell in names for cell in heading)
    }
    if "colour" in columns or "value" in columns or {"red", "green", "blue"} <= columns.keys():
        return columns, rows[1:]
    if len(rows[0][1]) == 4 and all(_NUMBER.fullmatch(cell) for cell in rows[0][1][1:]):
        return {"name": 0, "red": 1, "green": 2, "blue": 3}, rows
    raise InputError(
        f"{path}:{rows[0][0]}: cannot tell the columns from {', '.join(rows[0][1])!r}; "
        "expected a heading such as name,r,g,b or name,colour or value,name"
    )


def _one_class(place: str, row: list[str], columns: dict[str, int], problems: list[str]) -> SegClass:
    def cell(what: str) -> str:
        return row[columns[what]] if what in columns and columns[what] < len(row) else ""

    colour = _colour(place, cell, columns, problems)
    values: tuple[int, ...] = ()
    if "value" in columns:
        value = cell("value")
        if _NUMBER.fullmatch(value) and int(value) <= MOST_VALUE:
            values = (int(value),)
        else:
            problems.append(f"{place}: expected a value from 0 to {MOST_VALUE}, found {value!r}")
    name = cell("name") or (f"class_{values[0]}" if values else "")
    if not name:
        problems.append(f"{place}: the class has no name")
    return SegClass(name, colour, values, () if colour is None else (colour,))


def _colour(place: str, cell: Callable[[str], str], columns: dict[str, int], problems: list[str]) -> Colour | None:
    """The colour of a row, from three columns or from one."""
    if "red" in columns:
        text = " ".join(cell(what) for what in ("red", "green", "blue"))
    elif "colour" in columns:
        text = cell("colour")
    else:
        return None
    colour = parse_colour(text)
    if colour is None:
        problems.append(f"{place}: expected a colour such as #00ff80 or 0 255 128, found {text!r}")
    return colour


def parse_colour(text: str) -> Colour | None:
    """`#00ff80`, `0,255,128` or `0 255 128`; None for anything else."""
    text = text.strip()
    if re.fullmatch(r"#[0-9a-fA-F]{6}", text):
        red, green, blue = bytes.fromhex(text[1:])
        return red, green, blue
    parts = re.split(r"[\s,;]+", text.strip("()[] "))
    if len(parts) == 3 and all(_NUMBER.fullmatch(part) and int(part) <= 255 for part in parts):
        return int(parts[0]), int(parts[1]), int(parts[2])
    return None


def _clashes(path: Path, classes: list[SegClass]) -> list[str]:
    """Two classes must not claim one name, colour or value."""
    problems = [] if 1 <= len(classes) <= MOST_CLASSES else [f"{path}: expected 1 to {MOST_CLASSES} classes"]
    owners: dict[object, str] = {}
    for one in classes:
        for claim in (("name", one.name), *(("colour", c) for c in one.colours), *(("value", v) for v in one.values)):
            if claim in owners:
                problems.append(f"{path}: {claim[0]} {claim[1]} is both {owners[claim]!r} and {one.name!r}")
            owners[claim] = one.name
    return problems


def _ignoring(table: ClassTable, ignore: Sequence[str]) -> ClassTable:
    """Move what --ignore names out of the classes: a class by its name, a value, or a colour."""
    for text in ignore:
        gone = [one for one in table.classes if one.name == text]
        if gone:
            table = replace(
                table,
                classes=tuple(one for one in table.classes if one not in gone),
                ignored_values=(*table.ignored_values, *gone[0].values),
                ignored_colours=(*table.ignored_colours, *gone[0].colours),
            )
        elif _NUMBER.fullmatch(text) and int(text) <= MOST_VALUE:
            table = _without(table, value=int(text))
        elif (colour := parse_colour(text)) is not None:
            table = _without(table, colour=colour)
        else:
            raise UsageError(
                f"--ignore {text}: is no class ({', '.join(table.names)}), no value and no colour such as #000000"
            )
    if not table.classes:
        raise UsageError("--ignore leaves no class")
    return table


def _without(table: ClassTable, value: int | None = None, colour: Colour | None = None) -> ClassTable:
    """Ignore a value or a colour. A class that loses its last value, or its last colour, is ignored altogether."""
    values: tuple[int, ...] = () if value is None else (value,)
    colours: tuple[Colour, ...] = () if colour is None else (colour,)
    classes = []
    for one in table.classes:
        kept = replace(
            one,
            values=tuple(v for v in one.values if v not in values),
            colours=tuple(c for c in one.colours if c not in colours),
        )
        if bool(kept.values) == bool(one.values) and bool(kept.colours) == bool(one.colours):
            classes.append(kept)
        else:
            values, colours = values + kept.values, colours + kept.colours
    return ClassTable(tuple(classes), (*table.ignored_values, *values), (*table.ignored_colours, *colours))
