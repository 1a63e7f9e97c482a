"""The bands of a picture that are stored, as an option names them. Light: numpy is not needed."""

from __future__ import annotations

import re
from typing import TypeAlias

from readers.contract.kinds import MOST_BANDS

ALL, GRAY, RGB = "all", "gray", "rgb"
BandChoice: TypeAlias = "str | tuple[int, ...]"
"""A word, or the numbers of bands from 1 on, in the order in which they are stored."""
_NUMBERS = re.compile(r"\s*\[?\s*\d{1,4}(?:\s*,\s*\d{1,4})*\s*\]?\s*")
EXPECTED = f"expected {ALL}, {GRAY}, {RGB}, or numbers from 1 on such as 4,3,2; at most {MOST_BANDS}, each once"


def band_choice(bands: object) -> BandChoice:
    """Return the bands that a word, a list of numbers, or a text of numbers names; raise ValueError for others."""
    if isinstance(bands, str) and _NUMBERS.fullmatch(bands):
        bands = [int(number) for number in re.findall(r"\d+", bands)]
    if isinstance(bands, (list, tuple)):
        numbers = tuple(number for number in bands if type(number) is int and number > 0)
        if 0 < len(numbers) == len(bands) <= MOST_BANDS and len(set(numbers)) == len(numbers):
            return numbers
    elif bands in (ALL, GRAY, RGB):
        return str(bands)
    raise ValueError(f"{str(bands)!r}: {EXPECTED}")


def bands_text(chosen: BandChoice) -> str:
    """Return the text that names these bands."""
    return chosen if isinstance(chosen, str) else ",".join(map(str, chosen))
