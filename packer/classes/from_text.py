"""Class tables as lines of cells: CSV under whatever heading, `name:r,g,b::`, `r g b name`, a name a line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

from packer.classes.merge import Row, coloured, join
from packer.classes.values import MOST_VALUE, parse_colour, parse_values
from packer.errors import InputError
from readers.contract.classes import ClassTable, Colour

COLUMNS = {
    "name": ("name", "class", "class_name", "classname", "label", "label_name", "category"),
    "red": ("r", "red"),
    "green": ("g", "green"),
    "blue": ("b", "blue"),
    "alpha": ("a", "alpha"),
    "colour": ("colour", "color", "hex", "rgb", "rgba", "colour_hex", "color_hex"),
    "value": ("value", "id", "index", "idx", "pixel", "pixel_value", "label_id", "class_id", "gray", "grey"),
    "train": ("train_id", "trainid"),
}
NO_TRAIN_ID = (-1, 255)
_NUMBER = re.compile(r"-?[0-9]{1,5}")
_VALUE = r"(?P<value>\d{1,5})\s*(?:[:=]\s*|\s)"
_RGB = r"(?P<colour>\d{1,3}\s+\d{1,3}\s+\d{1,3})"
_WORDS = r"\S*(?:\s+\S+)*?"
"""What may follow the first letter of a name; `.*?` before white space takes the square of its length."""
_FORMS = (
    re.compile(r"(?P<name>[^:]+):(?P<colour>\d+,\d+,\d+)?:[^:]*:[^:]*"),
    re.compile(rf"{_RGB}\s+(?P<name>[^\d\s].*)"),
    re.compile(rf"(?P<name>[^\d\s]{_WORDS})\s+{_RGB}"),
    re.compile(rf"{_VALUE}(?P<name>[^\d\s:=]{_WORDS})\s+{_RGB}"),
    re.compile(rf"{_VALUE}(?P<name>[^\d\s:=].*)"),
)
"""`road:128,64,128::` as CVAT and datumaro write, `128 64 128 Road` as CamVid and SYNTHIA do, `Road 128 64 128`,
`7 Road 128 64 128`, `7: road` as COCO-Stuff does."""
_NUMBERED = re.compile(r"\d+\s*[:=\s]")
_SEPARATORS = ",;\t|"

Line = tuple[int, str]


def read_cells(path: Path, text: str) -> ClassTable:
    """The class table of a text: the form is known by its lines."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise InputError(f"{path}: the class table is empty")
    plain = [(number, line) for number, line in lines if not line.startswith("#")]
    for form in _FORMS:
        if plain and all(form.fullmatch(line) for _, line in plain):
            return _matched(path, plain, form)
    separated = any(sign in line for _, line in lines for sign in _SEPARATORS)
    if path.suffix.lower() != ".csv" and not separated and not _headed(lines[0][1].split()):
        return _names(path, lines)
    rows = _cells(path, text)
    columns, rows = _columns(path, rows)
    problems: list[str] = []
    drafts = [_row(f"{path}:{number}", row, columns, problems) for number, row in rows]
    return join(path, [row for row in drafts if row is not None], problems, "train" in columns)


def _names(path: Path, lines: list[Line]) -> ClassTable:
    """A name a line. One that begins with a number is more likely a line of another form that went wrong."""
    odd = [f"{path}:{number}: expected a name, found {line!r}" for number, line in lines if _NUMBERED.match(line)]
    if odd:
        raise InputError(f"{path}: is a list of names by its other lines; {len(odd)} problems in the class table", odd)
    return names_table(path, [(f"{path}:{number}", line) for number, line in lines])


def names_table(path: Path, names: list[tuple[str, str]]) -> ClassTable:
    """Names in order of their values; LabelMe's `__ignore__` before them is what its labels hold as 255."""
    rows = []
    if names[:1] and names[0][1] == "__ignore__":
        rows.append(Row(names[0][0], names[0][1], values=(range(255, 256),), ignored=True))
        names = names[1:]
    rows += [Row(place, name, values=(range(value, value + 1),)) for value, (place, name) in enumerate(names)]
    problems = [f"{place}: {name!r} is a second time in the list" for place, name in _repeated(names)]
    problems += [f"{place}: the class has no name" for place, name in names if not name.strip()]
    return join(path, rows, problems)


def _repeated(names: list[tuple[str, str]]) -> list[tuple[str, str]]:
    first = {name: place for place, name in reversed(names)}
    return [(place, name) for place, name in names if place != first[name]]


def _matched(path: Path, lines: list[Line], form: re.Pattern[str]) -> ClassTable:
    """A table of lines that all have one form."""
    problems: list[str] = []
    rows = []
    for number, line in lines:
        found = form.fullmatch(line)
        assert found is not None
        parts, place = found.groupdict(), f"{path}:{number}"
        colour, values = parse_colour(parts.get("colour") or ""), parse_values(parts.get("value") or "") or ()
        if "value" in parts and not values:
            problems.append(f"{place}: expected a value from 0 to {MOST_VALUE}, found {line!r}")
        if "colour" in parts and colour is None:
            problems.append(f"{place}: expected a colour of three numbers from 0 to 255, found {line!r}")
        rows.append(coloured(place, parts["name"].strip(), colour, values))
    return join(path, rows, problems)


def _cells(path: Path, text: str) -> list[tuple[int, list[str]]]:
    """The rows that are not empty, with their line numbers and without the white space and quotes around cells."""
    reader = csv.reader(io.StringIO(text), delimiter=_delimiter(text), skipinitialspace=True, strict=True)
    try:
        rows = [(reader.line_num, [cell.strip().strip("'\"").strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: the class table cannot be read ({error})") from error
    found = [(number, row) for number, row in rows if any(row)]
    if not found:
        raise InputError(f"{path}: the class table has no cell with anything in it")
    return found


def _delimiter(text: str) -> str:
    """The separator of the first line that has one."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    return max(_SEPARATORS, key=line.count) if any(sign in line for sign in _SEPARATORS) else " "


def _columns(path: Path, rows: list[tuple[int, list[str]]]) -> tuple[dict[str, int], list[tuple[int, list[str]]]]:
    """Which column holds what, and the rows below the heading. Without a heading, name,r,g,b is understood."""
    if columns := _headed(rows[0][1]):
        return columns, rows[1:]
    if len(rows[0][1]) in (4, 5) and all(_NUMBER.fullmatch(cell) for cell in rows[0][1][1:]):
        return {"name": 0, "red": 1, "green": 2, "blue": 3, **({"alpha": 4} if len(rows[0][1]) == 5 else {})}, rows
    raise InputError(
        f"{path}:{rows[0][0]}: cannot tell the columns from {', '.join(rows[0][1])!r}; "
        "expected a heading such as name,r,g,b or name,colour or value,name or id,name,train_id"
    )


def _headed(cells: list[str]) -> dict[str, int]:
    """Which column a heading says holds what; nothing where it is none that will do."""
    heading = [cell.casefold().replace(" ", "_") for cell in cells]
    columns = {
        what: heading.index(next(name for name in names if name in heading))
        for what, names in COLUMNS.items()
        if any(cell in names for cell in heading)
    }
    enough = columns.keys() & {"colour", "value", "train"} or {"red", "green", "blue"} <= columns.keys()
    return columns if enough else {}


def _row(place: str, row: list[str], columns: dict[str, int], problems: list[str]) -> Row | None:
    """What a row says; None for an id below 0, which no file can hold."""

    def cell(what: str) -> str:
        return row[columns[what]] if what in columns and columns[what] < len(row) else ""

    if "value" in columns and re.fullmatch(r"-\d+", cell("value")):
        return None
    train_id = _train_id(place, cell("train"), problems) if "train" in columns else None
    ignored = train_id in NO_TRAIN_ID
    values: tuple[range, ...] = ()
    if "value" in columns:
        values = parse_values(cell("value")) or ()
        if not values:
            problems.append(f"{place}: expected a value from 0 to {MOST_VALUE}, found {cell('value')!r}")
    elif train_id is not None and train_id >= 0:
        values = (range(train_id, train_id + 1),)
    name = cell("name") or (f"class_{values[0].start}" if values else "")
    if not name:
        problems.append(f"{place}: the class has no name")
    one = coloured(place, name, _colour(place, cell, columns, problems), values)
    return Row(place, name, one.colour, values, one.colours, None if ignored else train_id, ignored)


def _train_id(place: str, text: str, problems: list[str]) -> int | None:
    if _NUMBER.fullmatch(text) and -1 <= int(text) <= MOST_VALUE:
        return int(text)
    problems.append(f"{place}: expected a train id, with 255 or -1 for what is ignored, found {text!r}")
    return None


def _colour(place: str, cell: Callable[[str], str], columns: dict[str, int], problems: list[str]) -> Colour | None:
    """The colour of a row, from three or four columns or from one."""
    if {"red", "green", "blue"} <= columns.keys():
        text = " ".join(cell(what) for what in ("red", "green", "blue", "alpha") if what in columns)
    elif "colour" in columns:
        text = cell("colour")
    else:
        return None
    colour = parse_colour(text)
    if colour is None:
        problems.append(f"{place}: expected a colour such as #00ff80 or 0 255 128, found {text!r}")
    return colour
