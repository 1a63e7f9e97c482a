"""Pages of lines on a terminal: as wide as the terminal, with names and colours.

Files and pipes get the plain lines.
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator

from packer.cli.loading import loading
from packer.cli.output import join_lines, show, show_drawn
from packer.cli.terminal import MANY, NONE, colours_of_terminal
from readers.contract.plain_text import one_line

NARROWEST = 40
FIRST_COLUMN = re.compile(r" *\S+(?: \S+)?  +")
"""A name and the space after it: what follows is wrapped below its beginning."""
NAME = re.compile(r"[a-z][\w-]*(?: [\w-]+)*(?=  )")
HEX = re.compile(r"(?<= )#([0-9a-f]{6})\b")
PASTED = re.compile(r"--\w|^ *\S+ = ")
"""Options and settings are pasted, so their lines stay whole."""
Paint = Callable[[str], str]


def show_page(lines: Iterable[str]) -> None:
    """Print lines of a name and a text each, or of a table."""
    if not sys.stdout.isatty():
        show(join_lines(lines))
        return
    width = max(NARROWEST, shutil.get_terminal_size().columns)
    paint = painter(colours_of_terminal())
    show_drawn(paint(part) for line in lines for part in wrapped(one_line(line), width))


def wrapped(line: str, width: int) -> Iterator[str]:
    """Yield a line in parts that are not wider. Long words and what is pasted stay whole."""
    if len(line) <= width or PASTED.search(line):
        yield line
        return
    column = FIRST_COLUMN.match(line)
    indent = min(column.end() if column else 2, width // 2)
    yield from textwrap.wrap(
        line, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    ) or [line]


def painter(colours: str) -> Paint:
    """Return what adds colours to a line: the name at its beginning is bold, and a class has its colour."""
    if colours == NONE:
        return str
    with loading():
        from readers.pictures.blocks import swatch

    def colour(match: re.Match[str]) -> str:
        red, green, blue = bytes.fromhex(match[1])
        return f"{swatch((red, green, blue), colours == MANY)} {match[0]}"

    def paint(line: str) -> str:
        name = NAME.match(line)
        begin = "" if name is None else f"\x1b[1m{name[0]}\x1b[0m"
        return begin + HEX.sub(colour, line[0 if name is None else name.end() :])

    return paint
