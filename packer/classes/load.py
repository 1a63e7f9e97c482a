"""Load the class table of a build: from a file, or from a number or list of values."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from packer.classes.documents import parse_json, parse_toml, read_text
from packer.classes.from_json import table_from_json
from packer.classes.from_text import table_from_names, table_from_text
from packer.classes.from_toml import table_from_toml
from packer.classes.ignore import with_ignored
from packer.classes.values import distinct_colours, is_values, parse_values
from packer.errors import BadPair, SettingsError, UsageError
from readers.contract.classes import MOST_CLASSES, ClassTable, SegClass
from readers.contract.plain_text import odd_character

TABLE_NAMES = ("class_dict.csv", "classes.csv", "class_table.csv", "labelmap.txt")
"""Without --classes, files of these names in the raw folder are class tables."""
PROPOSED_TABLES = ("data.yaml", "data.yml", "dataset.yaml", "dataset.yml")
"""Files that are proposed for --classes, and never taken without it."""
YAML = (".yaml", ".yml")
SPLIT_TABLE = "_classes.csv"
"""Roboflow writes this table into the folder of each split."""


def load_class_table(
    raw: Path | None, classes: str | ClassTable | None, ignore: Sequence[str] = ()
) -> ClassTable | None:
    """Load the class table that --classes names, or the one in the raw folder; None if there is neither."""
    if classes is None:
        if raw is None:
            return None
        entries = os.listdir(raw)  # noqa: PTH208 - a million files would make a million paths
        names = [name for name in sorted(entries) if name.lower() in TABLE_NAMES]
        paths = [raw / name for name in names] or _split_tables(raw)
        if not paths:
            return None
        if len(paths) > 1:
            raise SettingsError(
                f"{raw}: has several class tables; choose one with --classes", [str(path) for path in paths]
            )
        table = read_table(paths[0])
    elif isinstance(classes, ClassTable):
        table = classes
        for name in table.names:
            _check_name(name)
    elif is_values(classes):
        table = _table_of_values(classes.strip())
    else:
        table = read_table(Path(classes))
    return with_ignored(table, ignore)


def _split_tables(raw: Path) -> list[Path]:
    """Return the tables in the folders of splits; one of them if all are equal."""
    paths = sorted(path for path in raw.glob(f"*/{SPLIT_TABLE}") if path.is_file())
    return paths[:1] if len({read_text(path) for path in paths}) == 1 else paths


def read_table(path: Path) -> ClassTable:
    """Read a class table as TOML, JSON or the YAML of Ultralytics by its suffix, any other file as lines of text."""
    text = read_text(path)
    if path.suffix.lower() == ".toml":
        return table_from_toml(path, parse_toml(path, text))
    if path.suffix.lower() == ".json":
        return table_from_json(path, parse_json(path, text))
    if path.suffix.lower() in YAML:
        from packer.classes.yaml_names import names_of

        try:
            names = names_of(text.encode())
        except BadPair as bad:
            raise SettingsError(f"{path}: {bad}") from bad
        return table_from_names(path, [(f"{path}: names.{number}", name) for number, name in enumerate(names)])
    return table_from_text(path, text)


def _table_of_values(text: str) -> ClassTable:
    """Return one class per value: `12` means 0 to 11, `1-150` and `0,255` list the values."""
    ranges = (range(int(text)),) if text.isdigit() else parse_values(text) or ()
    values = [value for numbers in ranges for value in numbers]
    if not values and not text.isdigit():
        raise UsageError(
            f"--classes {text}: expected a number of classes, or values from 0 to 65535 such as 1-150 or 0,255"
        )
    if not 1 <= len(values) <= MOST_CLASSES:
        raise UsageError(f"--classes {text}: {len(values)} classes; a pack can have 1 to {MOST_CLASSES}")
    if len(set(values)) < len(values):
        raise UsageError(f"--classes {text}: lists a value twice")
    return ClassTable(numbered_classes(values))


def named_classes(names: Sequence[str]) -> ClassTable:
    """Return the classes with these names, whose values are 0, 1, 2 and so on."""
    seen = set[str]()
    for name in names:
        if not isinstance(name, str) or not name.strip() or name in seen:
            raise UsageError(f"--classes: {name!r} is not a name, or occurs twice; expected a list of names")
        _check_name(name)
        seen.add(name)
    if not 1 <= len(names) <= MOST_CLASSES:
        raise UsageError(f"--classes: {len(names)} names; a pack can have 1 to {MOST_CLASSES} classes")
    numbered = enumerate(zip(names, distinct_colours(len(names)), strict=True))
    return ClassTable(tuple(SegClass(name, colour, (value,)) for value, (name, colour) in numbered))


def _check_name(name: str) -> None:
    if code := odd_character(name):
        raise UsageError(f"--classes: the name {name!r} has the character {code}; rename the class")


def numbered_classes(values: Sequence[int]) -> tuple[SegClass, ...]:
    """Return one class per value, each with a colour of its own."""
    colours = distinct_colours(len(values))
    return tuple(SegClass(f"class_{value}", colour, (value,)) for value, colour in zip(values, colours, strict=True))
