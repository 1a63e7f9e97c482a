"""A command whose options may also be said by the environment, by a configuration file and by a preset."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from packer.cli.values import ClassesType
from packer.config.config import Key, Setting, Settings, read_config, to_toml, without_rivals
from packer.config.preset import find_preset
from packer.errors import InputError
from readers.contract.classes import ClassTable

CONFIG, PRESET, PRINT = "config", "preset", "print-config"
EFFECTIVE = "packer.effective"
"""Where a context keeps the configuration that is in effect."""
_SAID = (str, int, list, tuple, ClassTable)
"""What an option has been told; any other object is how the parser notes that it has not."""


class ConfiguredCommand(click.Command):
    """The command line counts most, then the environment (PACKER_WORKERS=8), then the configuration, the preset,
    and the defaults. What is in effect is kept for the command, as a configuration that does the same."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for key, option in self._options().items():
            option.envvar = "PACKER_" + key.upper().replace("-", "_")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
            help_option = self.get_help_option(ctx)
            if help_option is None or not given.get(str(help_option.name)):
                given = {**self._of_environment(ctx), **_really(given)}
                said = self._said(ctx, given)
                names = {key: str(option.name) for key, option in self._options().items()}
                ctx.default_map = {names[key]: value for key, value in said.items()}
                effective = to_toml(self._effective(ctx, given, said))
                if given.get("print_config"):
                    click.echo(effective, nl=False)
                    ctx.exit()
                ctx.meta[EFFECTIVE] = effective
        return super().parse_args(ctx, args)

    def keys(self) -> dict[str, Key]:
        """The keys that a preset may have; a configuration may also name a preset."""
        return {name: _key(option) for name, option in self._options().items() if name != PRESET}

    def _options(self) -> dict[str, click.Parameter]:
        """RAW, OUT and the options by their long names without the dashes: so they are the keys of a configuration."""
        arguments = {str(one.name): one for one in self.params if isinstance(one, click.Argument)}
        options = {
            flag.removeprefix("--"): option
            for option in self.params
            if isinstance(option, click.Option)
            for flag in option.opts
            if flag.startswith("--") and flag.removeprefix("--") not in (CONFIG, PRINT)
        }
        return {**arguments, **options}

    def _of_environment(self, ctx: click.Context) -> dict[str, Any]:
        """What environment variables say, by the names of the parameters."""
        said = {str(one.name): (one, one.value_from_envvar(ctx)) for one in self.params}
        flags = (one for one in self.params if isinstance(one, click.Option) and one.is_flag)
        names = {str(one.name) for one in flags}
        return {
            name: one.type_cast_value(ctx, value) if name in names else value
            for name, (one, value) in said.items()
            if value is not None
        }

    def _said(self, ctx: click.Context, given: Mapping[str, Any]) -> Settings:
        """What the configuration and the preset say."""
        keys = {PRESET: Key(), **self.keys()}
        told = {key for key, option in self._options().items() if given.get(str(option.name)) is not None}
        config: Settings = {}
        if given.get(CONFIG):
            config = read_config(Path(given[CONFIG]), keys)
            self._check(ctx, Path(given[CONFIG]), config)
        name = given.get(PRESET) or config.get(PRESET)
        preset = find_preset(str(name)).settings(self.keys()) if name else {}
        config = without_rivals(config, told)
        return {**without_rivals(preset, told | config.keys()), **config}

    def _check(self, ctx: click.Context, path: Path, settings: Settings) -> None:
        """Every value must be one that its option takes."""
        problems = []
        for key, value in settings.items():
            try:
                self._options()[key].type_cast_value(ctx, value)
            except click.BadParameter as error:
                problems.append(f"{path}: {key}: {error.message}")
        if problems:
            raise InputError(f"{path}: {len(problems)} problems in the configuration", problems)

    def _effective(self, ctx: click.Context, given: Mapping[str, Any], said: Settings) -> Settings:
        """Every option as it would be used, also those that nobody changed."""
        effective: dict[str, Setting] = {}
        for key, option in self._options().items():
            value = given.get(str(option.name), said.get(key, option.get_default(ctx)))
            if key != PRESET and isinstance(value, _SAID) and (value or not _is_multiple(option)):
                option.type_cast_value(ctx, value)
                effective[key] = _absolute(value, option)
        return effective


def _really(given: Mapping[str, Any]) -> dict[str, Any]:
    """Without what the parser only notes as not given."""
    return {name: value for name, value in given.items() if isinstance(value, _SAID)}


def _key(option: click.Parameter) -> Key:
    return Key(_is_flag(option), _is_multiple(option), isinstance(option.type, (click.Path, ClassesType)))


def _is_flag(option: click.Parameter) -> bool:
    return isinstance(option, click.Option) and option.is_flag


def _is_multiple(option: click.Parameter) -> bool:
    return isinstance(option, click.Option) and option.multiple


def _absolute(value: Any, option: click.Parameter) -> Setting:
    """A value as a configuration writes it, wherever that is to lie."""
    if isinstance(value, (bool, ClassTable)):
        return value
    if _is_multiple(option):
        return [str(item) for item in value]
    is_file = isinstance(option.type, click.Path) or (isinstance(option.type, ClassesType) and Path(value).is_file())
    return str(Path(value).absolute()) if is_file else str(value)
