"""The bands of a picture that are stored, as an option names them. Light: numpy is not needed."""

from __future__ import annotations

import re
from typing import TypeAlias

from readers.contract.kinds import MOST_BANDS

ALL, GRAY, RGB = "all", "gray", "rgb"
BandChoice: TypeAlias = "str | tuple[int, ...] | tuple[str, ...]"
"""A word, or the numbers of bands from 1 on, or their names, in the order in which they are stored."""
_NUMBERS = re.compile(r"\s*\[?\s*\d{1,4}(?:\s*,\s*\d{1,4})*\s*\]?\s*")
_NAME = re.compile(r"(?=.*[^\W\d_])[^,\[\]]{1,64}|0\d+")
"""A name has a letter, or is a number that begins with 0, such as 04. Then it may stand next to other numbers."""
EXPECTED = (
    f"expected {ALL}, {GRAY}, {RGB}, or numbers from 1 on such as 4,3,2, or names such as B04,B03; "
    f"at most {MOST_BANDS}, each once"
)


def band_choice(bands: object) -> BandChoice:
    """Return the bands that a word, a list, or a text of numbers or names means; raise ValueError for others."""
    words = bands
    if isinstance(words, (list, tuple)) and words and all(isinstance(band, str) for band in words):
        words = ",".join(words)
    if words in (ALL, GRAY, RGB):
        return str(words)
    chosen = _listed(words) if isinstance(words, str) else words
    if isinstance(chosen, (list, tuple)) and 0 < len(chosen) <= MOST_BANDS:
        numbers = tuple(number for number in chosen if type(number) is int and number > 0)
        names = tuple(name for name in chosen if isinstance(name, str) and name)
        if len(set(numbers or names)) == len(chosen):
            return numbers or names
    raise ValueError(f"{str(bands)!r}: {EXPECTED}")


def _listed(text: str) -> list[int] | list[str]:
    """Return the numbers or the names in a text; nothing if it has neither."""
    names = [name.strip() for name in text.split(",")]
    if any(map(_NAME.fullmatch, names)):
        return names
    return [int(number) for number in re.findall(r"\d+", text)] if _NUMBERS.fullmatch(text) else []


def bands_text(chosen: BandChoice) -> str:
    """Return the text that names these bands."""
    return chosen if isinstance(chosen, str) else ",".join(map(str, chosen))
