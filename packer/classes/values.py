"""Source values and colours as people write them: `7`, `8-10`, `#804080`, `250,170,160`, `[0, 0, 0, 0]`."""

from __future__ import annotations

import colorsys
import re
from collections.abc import Iterable

from readers.contract.classes import Colour, DrawnColour

MOST_VALUE = 65_535
MOST_SAID = 4 * (MOST_VALUE + 1)
"""How many values a file may list, with those that it repeats."""
_VALUES = re.compile(r"[0-9]{1,5}(-[0-9]{1,5})?(\s*,\s*[0-9]{1,5}(-[0-9]{1,5})?)*")
_CHANNEL = re.compile(r"[0-9]{1,3}")


def is_values(text: str) -> bool:
    """Whether a text is meant as values, though perhaps impossible ones, and not as the name of a file."""
    return _VALUES.fullmatch(text.strip()) is not None


def parse_values(item: object) -> tuple[range, ...] | None:
    """`7`, `"7"`, `"8-10"` or `"0,7-9"` as ranges, which take no memory yet; None for anything else."""
    if type(item) is int:
        return (range(item, item + 1),) if 0 <= item <= MOST_VALUE else None
    if not isinstance(item, str) or not is_values(item):
        return None
    ends = [(part.partition("-")[0], part.rpartition("-")[2]) for part in item.split(",")]
    if any(int(last) > MOST_VALUE or int(first) > int(last) for first, last in ends):
        return None
    return tuple(range(int(first), int(last) + 1) for first, last in ends)


def parse_colour(item: object) -> Colour | None:
    """`#00ff80`, `0,255,128`, `0 255 128` or a list of numbers, also with an alpha; None for anything else.

    What is not see-through has three numbers, so that one colour is not written in two ways.
    """
    numbers = _channels(item)
    if numbers is None or len(numbers) not in (3, 4) or not all(0 <= number <= 255 for number in numbers):
        return None
    red, green, blue, alpha = (*numbers, 255)[:4]
    return (red, green, blue) if alpha == 255 else (red, green, blue, alpha)


def _channels(item: object) -> tuple[int, ...] | None:
    if isinstance(item, (list, tuple)):
        return tuple(item) if all(type(number) is int for number in item) else None
    if not isinstance(item, str):
        return None
    text = item.strip()
    if re.fullmatch(r"#([0-9a-fA-F]{6}|[0-9a-fA-F]{8})", text):
        return tuple(bytes.fromhex(text[1:]))
    parts = re.split(r"[\s,;]+", text.strip("()[] "))
    return tuple(int(part) for part in parts) if all(_CHANNEL.fullmatch(part) for part in parts) else None


def drawn(colour: Colour) -> DrawnColour:
    """The colour without its alpha, to draw a class in."""
    return colour[0], colour[1], colour[2]


def distinct_colours(count: int) -> Iterable[DrawnColour]:
    """Colours to draw classes in that come without: hues a golden angle apart."""
    for number in range(count):
        red, green, blue = colorsys.hsv_to_rgb(number * 0.618034 % 1, 0.55 + 0.4 * (number % 2), 0.95)
        yield round(red * 255), round(green * 255), round(blue * 255)
