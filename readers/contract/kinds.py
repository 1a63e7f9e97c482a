"""The kinds of fields: what the numbers of a field mean, and which forms, dtypes, planes and fills that allows."""

from __future__ import annotations

import struct
from dataclasses import dataclass

PICTURE = "picture"
CLASSES = "classes"
IDS = "ids"
VALUES = "values"
MULTILABEL = "multilabel"

FLAG = "flag"
"""The kind of a field that is not stored: a truth value for each row."""

BANDS = "bands"
INDEX = "index"
ONEHOT = "onehot"
PLANES = "planes"
BITS = "bits"


@dataclass(frozen=True)
class KindFacts:
    """The forms and dtypes of a kind of field, and the words for it."""

    dtypes: dict[str, tuple[str, ...]]
    """Its forms, and for each form its dtypes."""
    words: str
    empty: str = ""
    """The words for pixels that say nothing."""
    has_classes: bool = False
    has_mean: bool = False


KINDS = {
    PICTURE: KindFacts({BANDS: ("|u1", "<u2", "<i2", "<f2", "<f4")}, "a picture", has_mean=True),
    CLASSES: KindFacts({INDEX: ("|u1", "<u2"), ONEHOT: ("|u1",)}, "classes", "ignored", has_classes=True),
    IDS: KindFacts({INDEX: ("<u2", "<u4")}, "objects", "in no object"),
    VALUES: KindFacts({INDEX: ("<u2", "<i2", "<f2", "<f4")}, "measured values", "without a value", has_mean=True),
    MULTILABEL: KindFacts(
        {PLANES: ("|u1",), BITS: ("|u1",)}, "classes that may overlap", "in no class", has_classes=True
    ),
}
MOST_BANDS = 512
NAN = "nan"
"""The fill of values where padding is not a number, as JSON has it."""

_STRUCT = {"|u1": "B", "<u2": "H", "<u4": "I", "<i2": "h", "<f2": "e", "<f4": "f"}


def planes_of(form: str, count: int) -> tuple[int, ...]:
    """Return the dimensions of a row before height and width, for this number of bands or classes."""
    if form == INDEX:
        return ()
    return (-(-count // 8) if form == BITS else count,)


def fits(number: float | str, dtype: str) -> bool:
    """Return whether a dtype has exactly this number; booleans, NaN and infinite numbers are none."""
    if isinstance(number, (str, bool)) or (isinstance(number, float) and dtype[1] != "f"):
        return False
    code = "<" + _STRUCT[dtype]
    try:
        return bool(struct.unpack(code, struct.pack(code, number)) == (number,)) and number - number == 0
    except (struct.error, OverflowError):
        return False
