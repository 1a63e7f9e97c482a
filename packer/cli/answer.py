"""The answer of a command that fails: with --json it is one JSON object on stdout, whatever the exit code."""

from __future__ import annotations

import json
from typing import Any

import click

from packer.cli.output import STDOUT, show
from packer.errors import FindingsError, InputError


def begin_answer() -> None:
    """Forget the command before this one."""
    STDOUT.used, STDOUT.json = False, False


def note_json(ctx: click.Context, command: click.Command, arguments: list[str]) -> None:
    """Note whether a command was called with --json, before it is known whether the other arguments are valid.

    Arguments after the argument of `packer diagnose` belong to another command.
    """
    parsed = command.make_context(command.name, list(arguments), parent=ctx, resilient_parsing=True).params
    mine = command.context_settings.get("allow_interspersed_args", True)
    STDOUT.json = bool(parsed.get("as_json") or parsed.get("json") or (mine and "--json" in arguments))


def answer_failure(message: str, exit_code: int, error: BaseException | None = None) -> None:
    """With --json print the error, unless the command has answered before it failed."""
    if not STDOUT.json or STDOUT.used:
        return
    causes = error.causes if isinstance(error, InputError) else ()
    facts: dict[str, Any] = {"error": message, "exit_code": exit_code}
    facts["problems"] = [cause.to_json() for cause in causes]
    if isinstance(error, FindingsError):
        facts["findings"] = list(error.findings)
    show(json.dumps(facts, indent=1))
