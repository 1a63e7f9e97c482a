"""Configuration files: options of `packer build` by their long names in TOML, and the classes as `[[class]]` tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from packer.classes.documents import describe, parse_toml, read_text, unknown_key
from packer.classes.from_toml import CLASS, class_tables
from packer.classes.values import is_values
from packer.config.field_tables import format_field, parse_field, to_table
from packer.config.options import OPTIONS, Option, value_of
from packer.errors import InputError, SettingsError, counted
from readers.contract.classes import ClassTable, SegClass
from readers.stores.open_store import url_of

Setting = str | bool | list[str] | ClassTable
"""The value of an option as a configuration file holds it."""
Settings = Mapping[str, Setting]
"""Settings by the names of the options."""

FIELD_TABLES = "field"
DECIDE = "decide"
"""The key of questions that `packer probe` left open. A configuration that has it is refused."""


def read_config(path: Path, more: Iterable[Option] = ()) -> Settings:
    """Read a configuration file. Relative paths in it start at its folder. Every problem is reported at once.

    `more` are options that this file may hold besides the options of a build.
    """
    return parse_config(path, read_text(path), more)


def parse_config(path: Path, text: str, more: Iterable[Option] = ()) -> Settings:
    """Read the text of the configuration file at this path."""
    options = {**OPTIONS, **{option.name: option for option in more}}
    document = parse_toml(path, text)
    problems: list[str] = []
    settings: dict[str, Setting] = {}
    for name, value in document.items():
        if name in (CLASS, FIELD_TABLES):
            continue
        if name == DECIDE:
            problems += [f"{path}: to decide: {question}" for question in _questions(value)]
            problems.append(f"{path}: {DECIDE}: answer each question in this file, then delete the line {DECIDE}")
            continue
        if name not in options:
            problems.append(f"{path}: {name}: {unknown_key(name, [*options, CLASS])}")
            continue
        try:
            settings[name] = _from_folder(path, _setting(value, options[name]), options[name])
        except ValueError as error:
            problems.append(f"{path}: {name}: {error}")
    if FIELD_TABLES in document:
        settings["field"] = _fields(path, document[FIELD_TABLES], problems)
    if CLASS in document:
        settings["classes"] = _classes(path, document, problems)
    if problems:
        raise SettingsError(f"{path}: {counted(len(problems), 'problem')} in the configuration", problems)
    return settings


def to_toml(settings: Settings) -> str:
    """The configuration file with these settings."""
    fields, rest = settings.get(FIELD_TABLES, []), {name: settings[name] for name in settings if name != FIELD_TABLES}
    lines = [f"{name} = {_toml(value)}" for name, value in rest.items() if not isinstance(value, ClassTable)]
    for text in fields if isinstance(fields, list) else ():
        lines += ["", f"[[{FIELD_TABLES}]]", *(f"{key} = {json.dumps(value)}" for key, value in _table(text).items())]
    for value in settings.values():
        if isinstance(value, ClassTable):
            lines += [line for seg_class in value.classes for line in _class_lines(seg_class)]
    return "".join(f"{line}\n" for line in lines)


def _table(text: str) -> dict[str, Any]:
    """Return the table of options that a text of --field stands for."""
    return to_table(parse_field(text))


def _fields(path: Path, tables: object, problems: list[str]) -> list[str]:
    """The texts of [[field]] tables, or of a list of such texts. A class table is a file next to the configuration."""
    texts: list[str] = []
    for number, table in enumerate(tables if isinstance(tables, list) else [tables], 1):
        try:
            options = to_table(parse_field(table))
        except ValueError as error:
            problems.append(f"{path}: {FIELD_TABLES} {number}: {error}")
            continue
        classes = options.get("classes")
        if isinstance(classes, str) and not is_values(classes):
            options["classes"] = str(path.absolute().parent / classes)
        texts.append(format_field(options))
    return texts


def _questions(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _classes(path: Path, document: Mapping[str, object], problems: list[str]) -> ClassTable:
    """The classes of a configuration. Their problems are reported with the rest of the file."""
    if "classes" in document:
        problems.append(f"{path}: classes: cannot be combined with [[{CLASS}]] tables; keep one of them")
    try:
        return class_tables(path, document[CLASS], [])
    except InputError as error:
        problems += error.problems
        return ClassTable(())


def _setting(value: object, option: Option) -> Setting:
    """The value as a text, a flag or a list of texts; ValueError if it has another type or is not valid."""
    setting: Setting
    if option.is_flag:
        if not isinstance(value, bool):
            raise ValueError(f"expected true or false, found {describe(value)}")
        return value
    if option.several:
        if not isinstance(value, list) or any(type(item) not in (str, int) for item in value):
            such = f", such as [{value!r}]" if isinstance(value, str) else ""
            raise ValueError(f"expected a list of texts and whole numbers{such}, found {describe(value)}")
        setting = [str(item) for item in value]
    elif type(value) in (str, int):
        setting = str(value)
    else:
        raise ValueError(f"expected a text or a whole number, found {describe(value)}")
    value_of(option, setting)
    return setting


def _from_folder(path: Path, setting: Setting, option: Option) -> Setting:
    """A relative path, made absolute from the folder of the configuration."""
    if not isinstance(setting, str) or not option.kind.names_path(setting) or url_of(setting) is not None:
        return setting
    return str(path.absolute().parent / setting)


def _class_lines(seg_class: SegClass) -> list[str]:
    lines = ["", f"[[{CLASS}]]", f"name = {_text(seg_class.name)}"]
    if seg_class.colour is not None:
        lines.append(f"colour = {_text('#' + bytes(seg_class.colour).hex())}")
    if seg_class.values:
        lines.append(f"values = [{', '.join(map(str, seg_class.values))}]")
    if seg_class.colours:
        lines.append(f"colours = [{', '.join(_text('#' + bytes(colour).hex()) for colour in seg_class.colours)}]")
    return lines


def _toml(value: str | bool | list[str]) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(_toml(item) for item in value)}]"
    return value if re.fullmatch("0|[1-9][0-9]{0,17}", value) else _text(value)


def _text(text: str) -> str:
    """A TOML string. JSON writes the same, except for one control character that it does not escape."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
