"""The user's choice of the number that pixels without data have. Light: numpy is not needed."""

from __future__ import annotations

import math

FILE, NONE = "file", "none"
"""The number that each file names; no number, so that all pixels have data."""
NAN = "nan"


def no_data_choice(choice: object) -> str:
    """Return `file`, `none`, or a number as a text, such as `-9999` and `nan`. Raise ValueError for others."""
    text = str(choice).strip().lower()
    number = None if isinstance(choice, bool) else number_of(text)
    if text in (FILE, NONE):
        return text
    if number is None or math.isinf(number):
        raise ValueError(f"{text!r}: expected {FILE}, {NONE}, {NAN} or a number, such as -9999")
    return NAN if math.isnan(number) else text


def number_of(text: str) -> float | None:
    """Return the number that a header or the user writes, NaN included; None if the text is no number."""
    try:
        return float(text)
    except ValueError:
        return None
