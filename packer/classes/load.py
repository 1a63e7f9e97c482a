"""Reading the class table: a file as people ship it, or just a range of values; then what is to be ignored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from packer.classes.documents import parse_json, parse_toml, read_text
from packer.classes.from_json import read_foreign
from packer.classes.from_text import read_cells
from packer.classes.from_toml import read_tables
from packer.classes.ignore import ignoring
from packer.classes.values import MOST_VALUE, distinct_colours, is_values
from packer.errors import InputError, UsageError
from readers.contract.classes import MOST_CLASSES, ClassTable, SegClass

TABLE_NAMES = ("class_dict.csv", "classes.csv", "class_table.csv")
"""Looked for in the raw folder when --classes is not given."""


def class_table(raw: Path, classes: str | ClassTable | None, ignore: Sequence[str] = ()) -> ClassTable | None:
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
    elif isinstance(classes, ClassTable):
        table = classes
    elif is_values(classes):
        table = _values_table(classes.strip())
    else:
        table = read_table(Path(classes))
    return ignoring(table, ignore)


def read_table(path: Path) -> ClassTable:
    """The class table of a file: TOML and JSON by their suffix, anything else as lines."""
    text = read_text(path)
    if path.suffix.lower() == ".toml":
        return read_tables(path, parse_toml(path, text))
    if path.suffix.lower() == ".json":
        return read_foreign(path, parse_json(path, text))
    return read_cells(path, text)


def _values_table(text: str) -> ClassTable:
    """`12` is the values 0 to 11; `1-150` and `0,255` are what they say."""
    if text.isdigit():
        values = list(range(int(text)))
    else:
        ends = [(part.partition("-")[0], part.rpartition("-")[2]) for part in text.split(",")]
        values = [value for first, last in ends for value in range(int(first), int(last) + 1)]
    if not 1 <= len(set(values)) == len(values) <= MOST_CLASSES or max(values) > MOST_VALUE:
        raise UsageError(f"--classes {text}: expected a number of classes, or different values such as 1-150 or 0,255")
    return ClassTable(numbered_classes(values))


def numbered_classes(values: Sequence[int]) -> tuple[SegClass, ...]:
    """A class for each value, in colours of its own."""
    drawn = distinct_colours(len(values))
    return tuple(SegClass(f"class_{value}", colour, (value,)) for value, colour in zip(values, drawn, strict=True))
