"""Lines on a terminal: none is wider than it, what is pasted stays whole, and colours only where they are wanted."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from packer.cli.page import painter, wrapped

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("width", [40, 60, 80])
def test_long_lines_are_wrapped_below_their_text(width: int) -> None:
    line = "  tools           " + ", ".join(f"library {number}.{number}" for number in range(12))
    parts = list(wrapped(line, width))
    assert max(map(len, parts)) <= width
    assert all(part.startswith(" " * 18) for part in parts[1:])
    assert " ".join(" ".join(parts).split()) == " ".join(line.split())


@pytest.mark.parametrize(
    "line",
    [
        "field     --field 'depth=values:right/depth/{split}/{key}.png'  (6 files) and more words than fit",
        '          image = "a very long template/{split}/{key}.png" and more words that do not fit in here',
        "x" * 200,
        "short",
        "",
    ],
)
def test_what_is_pasted_stays_whole(line: str) -> None:
    assert list(wrapped(line, 60)) == [line]


def test_colours() -> None:
    line = "classes   #ff0000 road"
    assert painter("none")(line) == line
    assert painter("24bit")(line) == "\x1b[1mclasses\x1b[0m   \x1b[38;2;255;0;0m██\x1b[0m #ff0000 road"
    assert ESCAPE.sub("", painter("256")(line)).replace("██ ", "") == line


@pytest.mark.parametrize("no_colour", [False, True])
def test_a_terminal_gets_a_page_that_fits(packed: Path, no_colour: bool) -> None:
    shown = on_a_terminal(packed, 60, no_colour)
    assert bool(ESCAPE.search(shown)) != no_colour
    lines = ESCAPE.sub("", shown).splitlines()
    assert len(lines) > 10
    assert max(len(line) for line in lines if "--" not in line and len(line.split()) > 2) <= 64  # with swatches


def on_a_terminal(out: Path, columns: int, no_colour: bool) -> str:
    """Return what `packer info` prints to a terminal of so many columns."""
    ours, theirs = pty.openpty()
    settings = {
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "COLUMNS": str(columns),
        "PYTHONIOENCODING": "utf-8",
    }
    variables = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    variables |= settings | ({"NO_COLOR": "1"} if no_colour else {})
    command = [sys.executable, "-m", "packer", "info", str(out)]
    with subprocess.Popen(command, stdout=theirs, stdin=subprocess.DEVNULL, env=variables) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                data = os.read(ours, 1 << 16)
            except OSError:  # the command has ended
                break
            if not data:
                break
            shown += data
        assert process.wait() == 0
    os.close(ours)
    return shown.decode()
