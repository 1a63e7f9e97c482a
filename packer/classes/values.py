"""Parsers for values, colours and train ids as people write them: `7`, `8-10`, `#804080`, `250,170,160`."""

from __future__ import annotations

import colorsys
import re
from collections.abc import Iterable

from readers.contract.classes import Colour, DrawnColour

MOST_VALUE = 65_535
MOST_LISTED = 4 * (MOST_VALUE + 1)
"""A file may list this many values, repeated ones included."""
_VALUES = re.compile(r"[0-9]{1,5}(-[0-9]{1,5})?(\s*,\s*[0-9]{1,5}(-[0-9]{1,5})?)*")
_CHANNEL = re.compile(r"[0-9]{1,3}")
_NUMBER = re.compile(r"-?[0-9]{1,5}")


def is_values(text: str) -> bool:
    """Tell values, even impossible ones such as `9-5`, from the name of a file."""
    return _VALUES.fullmatch(text.strip()) is not None


def parse_values(item: object) -> tuple[range, ...] | None:
    """Parse `7`, `"7"`, `"8-10"` or `"0,7-9"`; return None for anything else. Ranges take no memory yet."""
    if type(item) is int:
        return (range(item, item + 1),) if 0 <= item <= MOST_VALUE else None
    if not isinstance(item, str) or not is_values(item):
        return None
    ends = [(part.partition("-")[0], part.rpartition("-")[2]) for part in item.split(",")]
    if any(int(last) > MOST_VALUE or int(first) > int(last) for first, last in ends):
        return None
    return tuple(range(int(first), int(last) + 1) for first, last in ends)


def parse_train_id(item: object) -> int | None:
    """Parse `7`, `"7"`, or -1 for ignored; return None for anything else."""
    if isinstance(item, str) and is_number(item):
        item = int(item)
    return item if type(item) is int and -1 <= item <= MOST_VALUE else None


def is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def is_negative(item: object) -> bool:
    """Detect values below 0, which some tables list for classes that no label file can hold."""
    return (type(item) is int and item < 0) or (isinstance(item, str) and re.fullmatch(r"-[0-9]+", item) is not None)


def parse_colour(item: object) -> Colour | None:
    """Parse `#00ff80`, `0,255,128`, `0 255 128` or a list of numbers, each also with alpha; None for anything else.

    An opaque colour always has three numbers, so that equal colours compare equal.
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
    """Drop the alpha of a colour, to draw a class in it."""
    return colour[0], colour[1], colour[2]


def distinct_colours(count: int) -> Iterable[DrawnColour]:
    """Make up colours for classes that have none: hues a golden angle apart."""
    for number in range(count):
        red, green, blue = colorsys.hsv_to_rgb(number * 0.618034 % 1, 0.55 + 0.4 * (number % 2), 0.95)
        yield round(red * 255), round(green * 255), round(blue * 255)
