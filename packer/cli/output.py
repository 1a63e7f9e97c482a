"""The one way in which commands print. Names that come from files may hold escape sequences of a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import click

UNSAFE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
"""Control characters except the line feed, marks that change the direction of text, and bytes that are not UTF-8."""


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
    click.echo(UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text), err=err, nl=nl)


def join_lines(lines: Iterable[str]) -> str:
    """Return the lines as one text. A name with a line feed cannot pretend to be another line."""
    return "\n".join(line.replace("\n", "\\u000a") for line in lines)
