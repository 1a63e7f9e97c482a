"""The page docs/cli.md: the help of every command, as `--help` prints it. Groups of options are printed once.

    tools/run checks.cli_page

`tests/test_docs.py` fails when the page is not fresh.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
from program import REPO

from packer.cli import main as packer

PAGE = REPO / "docs" / "cli.md"
COLUMNS = 88
GROUP = re.compile(r"\n\n(?=[A-Z][\w ]*:\n)")
"""The gap before a group of options, such as `Pairs:`."""
LEAST_LINES = 3
"""Longer groups that an earlier command has, word for word, are not printed again."""
HEAD = """# Command line

This page is generated from `--help` by `tools/run checks.cli_page`. Do not edit it. `packer` and `segpack` are two
names of one command, and `python -m packer` starts it too. The [guide](guide/README.md) explains the options.
"""


def page() -> str:
    """Return the text that docs/cli.md must have."""
    parts, printed = [HEAD], dict[str, str]()
    for words, command in commands("packer", packer):
        groups = GROUP.split(help_of(words, command))
        again = [group for group in groups if group in printed]
        text = "\n\n".join(group for group in groups if group not in printed)
        parts.append(f"## {words}\n\n```text\n{text}\n```\n")
        if again:
            names = ", ".join(group.partition(":")[0] for group in again)
            first = printed[again[0]]
            parts.append(f"{names}: as [{first}](#{first.replace(' ', '-')}).\n")
        printed |= {group: words for group in groups if len(group.splitlines()) > LEAST_LINES and group not in printed}
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
