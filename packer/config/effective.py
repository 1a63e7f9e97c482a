"""The effective settings of a build: the given options, then environment, configuration, preset and defaults."""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

from packer.classes.documents import unknown_key
from packer.classes.load import named_classes
from packer.config.config import Setting, Settings, read_config
from packer.config.from_pack import check_decided, settings_of, with_kept
from packer.config.options import ARGUMENTS, BUILD, CONFIGURATION, FROM, OPTIONS, Option, value_of
from packer.config.preset import find_preset
from packer.config.values import SIZE
from packer.errors import UsageError
from readers.contract.classes import ClassTable
from readers.stores.open_store import url_of

RIVALS = ({"from"}, {"raw"}), ({"pairs"}, {"image", "label", "lists"}), ({"split"}, {"lists", "folds"})
"""Options that exclude each other. Of two conflicting options the one from the stronger source wins."""
KNOWN = {**OPTIONS, **{option.name: option for option in CONFIGURATION}}


def effective(named: Settings) -> Settings:
    """Every setting that a build would use: `named`, then its configuration, its preset, then the defaults."""
    config = read_config(Path(str(named["config"])), more=CONFIGURATION[1:]) if "config" in named else {}
    preset_name = named.get("preset", config.get("preset"))
    preset = find_preset(str(preset_name)).settings() if preset_name else {}
    config = _without_rivals(config, named.keys())
    preset = _without_rivals(preset, named.keys() | config.keys())
    defaults = {name: option.unset for name, option in OPTIONS.items() if isinstance(option.unset, (str, bool))}
    chosen: dict[str, Setting] = {**defaults, **preset, **config, **named}
    _check(chosen)
    if "from" in chosen:
        folder = Path(str(chosen["from"]))
        check_decided(folder, chosen)
        kept = settings_of(folder)
        encode = with_kept(_texts(chosen, "encode"), _texts(kept, "encode"))
        chosen = {**defaults, **kept, **preset, **config, **named, "encode": encode}
    return {name: _canonical(OPTIONS[name], chosen[name]) for name in OPTIONS if chosen.get(name, []) != []}


def _texts(settings: Settings, name: str) -> list[str]:
    """Return an option that is a list."""
    texts = settings.get(name, [])
    assert isinstance(texts, list), "lists were checked"
    return texts


def _canonical(option: Option, setting: Setting) -> Setting:
    """The setting as the help spells it: `--format LMDB` is lmdb."""
    spelled = option.kind.choices or option.kind is SIZE
    return option.kind.format(value_of(option, setting)) if spelled else setting


def portable(settings: Settings) -> Settings:
    """The settings with absolute paths, so that they mean the same in any folder."""
    return {name: _absolute(setting, OPTIONS[name]) for name, setting in settings.items()}


def from_environment(variables: Mapping[str, str]) -> Settings:
    """The settings of environment variables: PACKER_WORKERS=8 is --workers 8. Lists are separated by white space."""
    settings: dict[str, Setting] = {}
    for name, option in KNOWN.items():
        value = variables.get(option.variable, "")
        if value:
            settings[name] = _from_variable(option, value)
    return settings


def from_python(options: Mapping[str, Any]) -> Settings:
    """The settings of keyword arguments: `shard_size=1 << 20` is --shard-size 1048576. None counts as not given."""
    options_of = {
        option.name.replace("-", "_"): option for option in (*CONFIGURATION, *ARGUMENTS, FROM, *BUILD.values())
    }
    options_of["fields"] = options_of.pop("field")
    settings: dict[str, Setting] = {}
    for name, value in options.items():
        if name not in options_of:
            raise TypeError(f"build options: {name!r} {unknown_key(name, list(options_of))}")
        option = options_of[name]
        if option.is_flag or isinstance(value, ClassTable):
            settings[option.name] = value
        elif name == "classes" and isinstance(value, (list, tuple)):
            settings[option.name] = named_classes(value)
        elif option.several and value is not None:
            if isinstance(value, (str, Mapping)):
                such = [value] if isinstance(value, str) else [f"{key}={item}" for key, item in value.items()]
                raise UsageError(f"--{option.name}: expected a list, such as {such}")
            settings[option.name] = [_formatted(option, item) for item in value]
        elif value is not None:
            settings[option.name] = option.kind.format(value)
    return settings


def _formatted(option: Option, value: object) -> str:
    try:
        return option.kind.format(value)
    except ValueError as error:
        raise UsageError(f"--{option.name}: {error}") from error


def _check(settings: Settings) -> None:
    """Refuse settings that are not valid."""
    for name, setting in settings.items():
        if name in OPTIONS:
            try:
                value_of(OPTIONS[name], setting)
            except ValueError as error:
                raise UsageError(f"--{name}: {error}") from error
            _check_text(name, setting)


def _check_text(name: str, setting: Setting) -> None:
    """Refuse a text that `keep_settings` could not write into the pack after the build, such as a path of odd bytes."""
    absolute = _absolute(setting, OPTIONS[name])
    for text in absolute if isinstance(absolute, list) else [absolute]:
        try:
            str(text).encode()
        except UnicodeEncodeError as error:
            option = name.upper() if OPTIONS[name] in ARGUMENTS else f"--{name}"
            raise UsageError(f"{option}: {str(text)!r} is not valid UTF-8; rename it, or use a link to it") from error


def _from_variable(option: Option, value: str) -> Setting:
    setting = value.split() if option.several else value
    try:
        parsed = value_of(option, setting)
    except ValueError as error:
        raise UsageError(f"{option.variable}: {error}") from error
    return bool(parsed) if option.is_flag else setting


def _without_rivals(settings: Settings, stronger: Set[str]) -> Settings:
    """The settings without those that options of a stronger source exclude."""
    excluded: set[str] = set()
    for left, right in RIVALS:
        excluded |= (right if left & stronger else set()) | (left if right & stronger else set())
    return {name: setting for name, setting in settings.items() if name not in excluded}


def _absolute(setting: Setting, option: Option) -> Setting:
    if not isinstance(setting, str) or not option.kind.names_path(setting):
        return setting
    if (url := url_of(setting)) is not None:
        return url
    return str(Path(setting).absolute())
