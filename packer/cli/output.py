"""The one way in which commands print. Names that come from files may hold escape sequences of a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import click

from readers.contract.plain_text import harmless


@dataclass
class Stdout:
    """The state of stdout: does the command owe JSON on it, and has it printed there?"""

    json: bool = False
    used: bool = False


STDOUT = Stdout()
"""The stdout of this process: a process runs one command."""


def show(text: str, err: bool = False, nl: bool = True) -> None:
    r"""Print a text to stdout, or to stderr, with `\u001b` instead of what a terminal obeys.

    In JSON and TOML this is another spelling of the same character.
    """
    STDOUT.used |= not err
    click.echo(harmless(text), err=err, nl=nl)


def show_drawn(lines: Iterable[str]) -> None:
    """Print lines with colours. Their texts must be harmless: the code that draws them has escaped all names."""
    STDOUT.used = True
    click.echo("\n".join(lines), color=True)


def join_lines(lines: Iterable[str]) -> str:
    """Return the lines as one text. A name with a line feed cannot pretend to be another line."""
    return "\n".join(line.replace("\n", "\\u000a") for line in lines)
