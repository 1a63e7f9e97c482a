"""Configurations: a TOML file of the options of `packer build` by their long names, and the classes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from packer.classes.documents import describe, parse_toml, read_text, unknown_key
from packer.classes.from_toml import CLASS, class_tables
from packer.classes.values import is_values
from packer.errors import InputError
from readers.contract.classes import ClassTable, SegClass

CLASSES = "classes"
RIVALS = ({"pairs"}, {"image", "label", "lists"}), ({"split"}, {"lists"})
"""Options that cannot be together: what counts more drives out its rivals, which nobody could unsay else."""
Setting = str | bool | list[str] | ClassTable
Settings = Mapping[str, Setting]


@dataclass(frozen=True)
class Key:
    """What a key may be: true or false, a list, or one value; and whether that is the path of a file."""

    flag: bool = False
    several: bool = False
    path: bool = False


def read_config(path: Path, keys: Mapping[str, Key]) -> Settings:
    """The settings of a file; what paths it names are beside it. Nothing in it is passed over."""
    document = parse_toml(path, read_text(path))
    problems: list[str] = []
    settings: dict[str, Setting] = {}
    for name, value in document.items():
        if name == CLASS:
            continue
        if name not in keys:
            problems.append(f"{path}: {name}: {unknown_key(name, [*keys, CLASS])}")
        elif (setting := _setting(value, keys[name])) is None:
            problems.append(f"{path}: {name}: expected {_expected(keys[name])}, found {describe(value)}")
        else:
            settings[name] = _beside(path, name, setting, keys[name])
    if CLASS in document:
        settings[CLASSES] = _classes(path, document, problems)
    if problems:
        raise InputError(f"{path}: {len(problems)} problems in the configuration", problems)
    return settings


def without_rivals(settings: Settings, stronger: Set[str]) -> Settings:
    """The settings but for those that cannot be beside options which count more."""
    gone: set[str] = set()
    for one, other in RIVALS:
        gone |= (other if one & stronger else set()) | (one if other & stronger else set())
    return {name: value for name, value in settings.items() if name not in gone}


def to_toml(settings: Settings) -> str:
    """The file that says just this."""
    lines = [f"{name} = {_toml(value)}" for name, value in settings.items() if not isinstance(value, ClassTable)]
    for value in settings.values():
        if isinstance(value, ClassTable):
            lines += [line for one in value.classes for line in _class_lines(one)]
    return "".join(f"{line}\n" for line in lines)


def _classes(path: Path, document: Mapping[str, object], problems: list[str]) -> ClassTable:
    """The classes of a configuration; their problems come with those of the rest of the file."""
    if CLASSES in document:
        problems.append(f"{path}: {CLASSES}: is beside [[{CLASS}]] tables; give one of both")
    try:
        return class_tables(path, document[CLASS], [])
    except InputError as error:
        problems += error.problems
        return ClassTable(())


def _setting(value: object, key: Key) -> Setting | None:
    """The value as the command line would be told; None where it is of another kind."""
    if key.flag:
        return value if isinstance(value, bool) else None
    if not key.several:
        return str(value) if type(value) in (str, int) else None
    if isinstance(value, list) and all(type(item) in (str, int) for item in value):
        return [str(item) for item in value]
    return None


def _expected(key: Key) -> str:
    if key.flag:
        return "true or false"
    return "a list of texts and whole numbers" if key.several else "a text or a whole number"


def _beside(path: Path, name: str, setting: Setting, key: Key) -> Setting:
    """A path that is meant from where the file lies."""
    if not key.path or not isinstance(setting, str) or (name == CLASSES and is_values(setting)):
        return setting
    return str(path.absolute().parent / setting)


def _class_lines(one: SegClass) -> list[str]:
    lines = ["", f"[[{CLASS}]]", f"name = {_text(one.name)}"]
    if one.colour is not None:
        lines.append(f"colour = {_text('#' + bytes(one.colour).hex())}")
    if one.values:
        lines.append(f"values = [{', '.join(map(str, one.values))}]")
    if one.colours:
        lines.append(f"colours = [{', '.join(_text('#' + bytes(colour).hex()) for colour in one.colours)}]")
    return lines


def _toml(value: str | bool | list[str]) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(_toml(item) for item in value)}]"
    return value if re.fullmatch("0|[1-9][0-9]{0,17}", value) else _text(value)


def _text(text: str) -> str:
    """A text as TOML writes it: as JSON does, but for the one control character that JSON lets through."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
