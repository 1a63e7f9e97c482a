"""Class tables as lines of text: CSV with many headings, `name:r,g,b::`, `r g b name`, one name per line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

from packer.classes.class_row import (
    ClassRow,
    check_colour,
    check_name,
    check_train_id,
    check_values,
    class_row,
    expected,
)
from packer.classes.merge import merge_rows
from packer.classes.values import is_negative, is_number
from packer.errors import SettingsError
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
"""The headings of each column, and the keys in JSON."""
_VALUE = r"(?P<value>\d{1,5})\s*(?:[:=]\s*|\s)"
_RGB = r"(?P<colour>\d{1,3}\s+\d{1,3}\s+\d{1,3})"
_WORDS = r"\S*(?:\s+\S+)*?"
"""The rest of a name after its first letter. The simpler `.*?` before white space takes the square of its length."""
_FORMS = (
    re.compile(r"(?P<name>[^:]+):(?P<colour>\d+,\d+,\d+)?:[^:]*:[^:]*"),
    re.compile(rf"{_RGB}\s+(?P<name>[^\d\s].*)"),
    re.compile(rf"(?P<name>[^\d\s]{_WORDS})\s+{_RGB}"),
    re.compile(rf"{_VALUE}(?P<name>[^\d\s:=]{_WORDS})\s+{_RGB}"),
    re.compile(rf"{_VALUE}(?P<name>[^\d\s:=].*)"),
)
"""`road:128,64,128::` (CVAT and datumaro), `128 64 128 Road` (CamVid and SYNTHIA), `Road 128 64 128`,
`7 Road 128 64 128`, `7: road` (COCO-Stuff)."""
_NUMBERED = re.compile(r"\d+\s*[:=\s]")
_SEPARATORS = ",;\t|"

Line = tuple[int, str]
TableCells = tuple[int, list[str]]
"""The number of a line, and its cells."""


def table_from_text(path: Path, text: str) -> ClassTable:
    """Return the class table of a text; its lines show which form it has."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise SettingsError(f"{path}: the class table is empty")
    plain = [(number, line) for number, line in lines if not line.startswith("#")]
    for form in _FORMS:
        if plain and all(form.fullmatch(line) for _, line in plain):
            return _matched(path, plain, form)
    separated = any(sign in line for _, line in lines for sign in _SEPARATORS)
    if path.suffix.lower() != ".csv" and not separated and not _heading(lines[0][1].split()):
        return _one_name_per_line(path, lines)
    columns, rows = _columns(path, _cells(path, text))
    problems: list[str] = []
    checked = [_row(f"{path}:{number}", cells, columns, problems) for number, cells in rows]
    return merge_rows(path, [row for row in checked if row is not None], problems, "train" in columns)


def _one_name_per_line(path: Path, lines: list[Line]) -> ClassTable:
    """Refuse lines that begin with a number: they are more likely mistakes in another form than names."""
    odd = [expected(f"{path}:{number}", "a name", line) for number, line in lines if _NUMBERED.match(line)]
    if odd:
        raise SettingsError(f"{path}: most lines are plain names, but {len(odd)} begin with a number", odd)
    return table_from_names(path, [(f"{path}:{number}", line) for number, line in lines])


def table_from_names(path: Path, names: list[tuple[str, str]]) -> ClassTable:
    """Number names from 0. A leading `__ignore__`, as LabelMe writes it, is the value 255."""
    rows = []
    if names[:1] and names[0][1] == "__ignore__":
        rows.append(ClassRow(names[0][0], names[0][1], values=(range(255, 256),), ignored=True))
        names = names[1:]
    rows += [ClassRow(where, name, values=(range(value, value + 1),)) for value, (where, name) in enumerate(names)]
    problems = [f"{where}: {name!r} is in the list twice" for where, name in _repeated(names)]
    for where, name in names:
        check_name(where, name, problems)
    return merge_rows(path, rows, problems)


def _repeated(names: list[tuple[str, str]]) -> list[tuple[str, str]]:
    first = {name: where for where, name in reversed(names)}
    return [(where, name) for where, name in names if where != first[name]]


def _matched(path: Path, lines: list[Line], form: re.Pattern[str]) -> ClassTable:
    """Return the table of lines that all have one form."""
    problems: list[str] = []
    rows = []
    for number, line in lines:
        match = form.fullmatch(line)
        assert match is not None
        parts, where = match.groupdict(), f"{path}:{number}"
        values = check_values(where, parts["value"], problems) if "value" in parts else ()
        colour = check_colour(where, parts["colour"], problems) if "colour" in parts else None
        rows.append(class_row(where, parts["name"].strip(), colour, values))
    return merge_rows(path, rows, problems)


def _cells(path: Path, text: str) -> list[TableCells]:
    """Split the lines that are not empty into cells, without white space and quotes around them."""
    reader = csv.reader(io.StringIO(text), delimiter=_delimiter(text), skipinitialspace=True, strict=True)
    try:
        rows = [(reader.line_num, [cell.strip().strip("'\"").strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise SettingsError(f"{path}:{reader.line_num}: the class table cannot be read ({error})") from error
    filled = [(number, cells) for number, cells in rows if any(cells)]
    if not filled:
        raise SettingsError(f"{path}: all cells of the class table are empty")
    return filled


def _delimiter(text: str) -> str:
    """Return the most frequent separator of the first line; a space if it has none."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    return max(_SEPARATORS, key=line.count) if any(sign in line for sign in _SEPARATORS) else " "


def _columns(path: Path, rows: list[TableCells]) -> tuple[dict[str, int], list[TableCells]]:
    """Return the index of each column and the rows below the heading. Without a heading, columns are name,r,g,b."""
    number, first = rows[0]
    if columns := _heading(first):
        return columns, rows[1:]
    if len(first) in (4, 5) and all(map(is_number, first[1:])):
        return {"name": 0, "red": 1, "green": 2, "blue": 3, **({"alpha": 4} if len(first) == 5 else {})}, rows
    raise SettingsError(
        f"{path}:{number}: cannot tell the columns from {', '.join(first)!r}; "
        "expected a heading such as name,r,g,b or name,colour or value,name or id,name,train_id"
    )


def _heading(cells: list[str]) -> dict[str, int]:
    """Return the index of each column that a heading names, or nothing if these are too few for a class table."""
    heading = [cell.casefold().replace(" ", "_") for cell in cells]
    columns = {
        column: heading.index(next(name for name in names if name in heading))
        for column, names in COLUMNS.items()
        if any(cell in names for cell in heading)
    }
    enough = columns.keys() & {"colour", "value", "train"} or {"red", "green", "blue"} <= columns.keys()
    return columns if enough else {}


def _row(where: str, cells: list[str], columns: dict[str, int], problems: list[str]) -> ClassRow | None:
    """Check a row; return None for a negative value, which no label file can contain."""

    def cell(column: str) -> str:
        return cells[columns[column]] if column in columns and columns[column] < len(cells) else ""

    if is_negative(cell("value")):
        return None
    train_id = check_train_id(where, cell("train"), problems) if "train" in columns else None
    values: tuple[range, ...] = ()
    if "value" in columns:
        values = check_values(where, cell("value"), problems)
    elif train_id is not None and train_id >= 0:
        values = (range(train_id, train_id + 1),)
    name = cell("name") or (f"class_{values[0].start}" if values else "")
    return class_row(
        where, check_name(where, name, problems), _colour(where, cell, columns, problems), values, train_id
    )


def _colour(where: str, cell: Callable[[str], str], columns: dict[str, int], problems: list[str]) -> Colour | None:
    """Return the colour of a row, from three or four columns or from one."""
    if {"red", "green", "blue"} <= columns.keys():
        return check_colour(
            where, " ".join(cell(column) for column in ("red", "green", "blue", "alpha") if column in columns), problems
        )
    return check_colour(where, cell("colour"), problems) if "colour" in columns else None
