"""A command with the options of a build: from the command line, the environment, a configuration file or a preset."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from packer.cli.output import STDOUT, show
from packer.cli.presets import preset_names
from packer.config.config import Settings, to_toml
from packer.config.effective import effective, from_environment, portable
from packer.config.options import ARGUMENTS, CONFIGURATION, GROUPS, OPTIONS, Option, value_of
from packer.errors import UsageError
from packer.publish.target import holds_pack, raw_and_out
from readers.stores.open_store import url_of

SETTINGS = "packer.settings"
"""The key under which a context holds the effective settings."""
PRINT = "print-config"
_GIVEN = (str, bool, list, tuple)
"""Types of given values; click marks an option that was not given with an object of its own."""


class ConfiguredCommand(click.Command):
    """The command line wins, then the environment (PACKER_WORKERS=8), the configuration, the preset, the defaults."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += [click.Argument([argument.name], type=click.Path()) for argument in ARGUMENTS]
        self.params += [
            click.Option([f"--{option.name}"], **_attributes(option)) for group in GROUPS.values() for option in group
        ]
        self.params.append(
            click.Option([f"--{PRINT}"], is_flag=True, help="Print the effective configuration and stop.")
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        parsed, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        help_option = self.get_help_option(ctx)
        if not ctx.resilient_parsing and not (help_option and parsed.get(str(help_option.name))):
            named = {**from_environment(os.environ), **_arguments(_settings(parsed))}
            STDOUT.json = bool(named.get("json"))
            settings = _in_order(effective(named))
            STDOUT.json = bool(settings["json"])
            if parsed.get(_parameter(PRINT)):
                show(to_toml(portable(settings)), nl=False)
                ctx.exit()
            ctx.meta[SETTINGS] = settings
            ctx.default_map = {_parameter(name): setting for name, setting in settings.items()}
            if "from" in settings:
                ctx.default_map["raw"] = settings["from"]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by group, after the options of this command alone."""
        records = {param.name: param.get_help_record(ctx) for param in self.get_params(ctx)}
        grouped = {_parameter(option.name) for group in GROUPS.values() for option in group}
        own = [
            records[param.name]
            for param in self.get_params(ctx)
            if isinstance(param, click.Option)
            and param.name not in (*grouped, _parameter(PRINT))
            and not _is_help(param)
        ]
        if own:
            with formatter.section("Plans"):
                formatter.write_dl([record for record in own if record])
        for title, group in GROUPS.items():
            names = [option.name for option in group]
            if group is CONFIGURATION:
                names.append(PRINT)
            with formatter.section(title):
                formatter.write_dl([record for name in names if (record := records[_parameter(name)])])


class ValueType(click.ParamType[Any]):
    """A value that its option parses."""

    def __init__(self, option: Option) -> None:
        self.name = option.kind.metavar
        self._kind = option.kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._kind.parse(value)
        except ValueError as error:
            return self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Let the shell complete a file name."""
        return [CompletionItem(incomplete, type="file")] if self._kind.is_path else []


class ChoiceType(click.Choice[str]):
    """One of the choices of an option of a build, in any case."""

    def __init__(self, option: Option) -> None:
        super().__init__(option.kind.choices, case_sensitive=False)
        self._option = option

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return value_of(self._option, value)
        except ValueError as error:
            return self.fail(str(error), param, ctx)


def build_option(name: str) -> Callable[[Any], Any]:
    """A decorator: another command takes this option of a build, too."""
    return click.option(f"--{name}", **_attributes(OPTIONS[name]))


def overriding_option(name: str) -> Callable[[Any], Any]:
    """A decorator: another command takes this option of a build; None means the setting of the last build."""
    option = OPTIONS[name]
    text = f"{option.help.removesuffix(' Default: no limit.')} Default: as in the last build."
    return click.option(f"--{name}", **{**_attributes(option), "default": None, "show_default": False, "help": text})


def _attributes(option: Option) -> dict[str, Any]:
    """The option as click describes it."""
    if option.is_flag:
        return {"is_flag": True, "help": option.help}
    return {
        "type": ChoiceType(option) if option.kind.choices else ValueType(option),
        "metavar": None if option.kind.choices else option.kind.metavar,
        "multiple": option.several,
        "default": option.default,
        "show_default": option.default is not None,
        "help": option.help,
        "shell_complete": preset_names if option.name == "preset" else None,
    }


def _in_order(settings: Settings) -> Settings:
    """The settings with the intended RAW and OUT."""
    if "raw" not in settings or "out" not in settings or url_of(settings["out"]) is not None:
        return settings
    raw, out = raw_and_out(Path(str(settings["raw"])), Path(str(settings["out"])))
    if holds_pack(raw):
        raise UsageError(f"{raw}: is a pack; to pack its rows again: packer build --from {raw} {out}")
    return {**settings, "raw": url_of(raw) or str(raw), "out": str(out)}


def _arguments(settings: Settings) -> Settings:
    """The settings on the command line; with --from the only argument is OUT."""
    if "from" not in settings or "raw" not in settings:
        return settings
    if "out" in settings:
        raise UsageError(f"--from {settings['from']}: stands for RAW, so name OUT alone")
    return {"out" if name == "raw" else name: setting for name, setting in settings.items()}


def _parameter(name: str) -> str:
    """The name that click gives to the parameter of an option."""
    return name.replace("-", "_")


def _settings(parameters: dict[str, Any]) -> Settings:
    """The settings on the command line."""
    names = {_parameter(option.name): option.name for option in (*CONFIGURATION, *OPTIONS.values())}
    return {
        names[name]: list(value) if isinstance(value, (list, tuple)) else value
        for name, value in parameters.items()
        if name in names and isinstance(value, _GIVEN)
    }


def _is_help(param: click.Option) -> bool:
    return "--help" in param.opts
