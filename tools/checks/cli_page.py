"""The page docs/cli.md: the help of every command, as `--help` prints it.

    tools/run checks.cli_page

`tests/test_docs.py` fails when the page is not fresh.
"""

from __future__ import annotations

from collections.abc import Iterator

import click
from program import REPO

from packer.cli import main as packer

PAGE = REPO / "docs" / "cli.md"
COLUMNS = 88
HEAD = """# Command line

This page is generated from `--help` by `tools/run checks.cli_page`. Do not edit it. `packer` and `segpack` are two
names of one command, and `python -m packer` starts it too. The [guide](guide/README.md) explains the options.
"""


def page() -> str:
    """Return the text that docs/cli.md must have."""
    parts = [HEAD]
    for words, command in commands("packer", packer):
        parts.append(f"## {words}\n\n```text\n{help_of(words, command)}\n```\n")
    return "\n".join(parts)


def commands(words: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and its subcommands with the words that start each."""
    yield words, command
    if isinstance(command, click.Group):
        for name, below in sorted(command.commands.items()):
            yield from commands(f"{words} {name}", below)


def help_of(words: str, command: click.Command) -> str:
    """Return what `--help` prints in a terminal of COLUMNS."""
    context = click.Context(
        command, info_name=words, terminal_width=COLUMNS, max_content_width=COLUMNS, help_option_names=["-h", "--help"]
    )
    return "\n".join(line.rstrip() for line in command.get_help(context).splitlines())


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.relative_to(REPO)}: written")
