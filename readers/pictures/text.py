"""Text in pictures: a font for each character, texts that fit a width, and harmless texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from readers.contract.plain_text import code_of, one_line

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

    Font = FreeTypeFont | ImageFont

FOLDERS = (
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "~/.local/share/fonts",
    "~/.fonts",
    "/System/Library/Fonts",
    "/Library/Fonts",
)
WANTED = ("DejaVuSans.", "NotoSans-Regular", "NotoSansCJK-Regular", "NotoSansCJK", "wqy", "DroidSansFallback", "Arial")
"""Beginnings of the names of fonts with many characters, the first ones first."""
MOST_FONTS = 12
MOST_FILES = 5000
"""The most files of fonts that are opened."""
MOST_CHARACTERS = 300
"""A longer text is cut in the middle before it is measured."""
ELLIPSIS = "…"
NOWHERE = "\U0010fffe"
"""A character that no font has."""


def width_of(text: str, size: int) -> int:
    """Return the width of a text in pixels."""
    return round(sum(_length(font, run) for font, run in _runs(text, size)))


def cut_to(text: str, width: int, size: int) -> str:
    """Return a harmless text that is at most this number of pixels wide, by leaving out its middle."""
    text = visible(text)
    if len(text) > MOST_CHARACTERS:
        text = _middle_out(text, MOST_CHARACTERS)
    if width_of(text, size) <= width:
        return text
    low, high = 0, len(text) - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if width_of(_middle_out(text, middle), size) <= width else (low, middle - 1)
    return _middle_out(text, low)


def visible(text: str) -> str:
    """Return a harmless text of one line, with the codes of characters that no font of this machine has."""
    return "".join(letter if _font_of(letter, 16) is not None else code_of(letter) for letter in one_line(text))


def write(draw: ImageDraw, position: tuple[int, int], text: str, size: int, colour: tuple[int, int, int]) -> None:
    """Draw a visible text with its baseline at a position."""
    left, baseline = float(position[0]), position[1]
    for font, run in _runs(text, size):
        draw.text((left, baseline), run, fill=colour, font=font, anchor="ls")
        left += _length(font, run)


def _middle_out(text: str, kept: int) -> str:
    """Return the beginning and the end of a text, together of this length."""
    return text[: (kept + 1) // 2] + ELLIPSIS + text[len(text) - kept // 2 :]


def _length(font: Font, run: str) -> float:
    return float(font.getlength(run))


def _runs(text: str, size: int) -> Iterator[tuple[Font, str]]:
    """Yield the parts of a text that are drawn in the same font."""
    for number, run in groupby(text, lambda character: _font_of(character, size)):
        yield _fonts(size)[number or 0], "".join(run)


@cache
def _font_of(character: str, size: int) -> int | None:
    """Return the first font that has a character; None if no font has it."""
    if character.isspace():
        return 0 if character == " " else None
    fonts = _fonts(size)
    return next((number for number, font in enumerate(fonts) if _has(font, character)), None)


def _has(font: Font, character: str) -> bool:
    mask, missing = font.getmask(character), font.getmask(NOWHERE)
    return (mask.size, bytes(mask)) != (missing.size, bytes(missing))


@cache
def _fonts(size: int) -> Sequence[Font]:
    """Return the font of Pillow, and fonts of this machine that have more characters."""
    from PIL import ImageFont

    fonts: list[Font] = [ImageFont.load_default(size)]
    for path in _files():
        try:
            fonts.append(ImageFont.truetype(str(path), size))
        except OSError:  # not a font after all
            continue
    return tuple(fonts)


@cache
def _files() -> Sequence[Path]:
    """Return the files of fonts with many characters, by their names."""
    ranks: dict[Path, int] = {}
    folders = (Path(folder).expanduser() for folder in FOLDERS)
    files = (path for folder in folders if folder.is_dir() for path in folder.rglob("*.[to]t[fc]"))
    for _, path in zip(range(MOST_FILES), files, strict=False):
        rank = next((rank for rank, name in enumerate(WANTED) if path.name.startswith(name)), None)
        if rank is not None:
            ranks[path] = rank
    return sorted(ranks, key=lambda path: (ranks[path], path.name))[:MOST_FONTS]
