"""The kinds of fields: what the numbers of a field mean, and which forms, dtypes, planes and fills that allows."""

from __future__ import annotations

import struct

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

DTYPES: dict[str, dict[str, tuple[str, ...]]] = {
    PICTURE: {BANDS: ("|u1", "<u2", "<i2", "<f2", "<f4")},
    CLASSES: {INDEX: ("|u1", "<u2"), ONEHOT: ("|u1",)},
    IDS: {INDEX: ("<u2", "<u4")},
    VALUES: {INDEX: ("<u2", "<i2", "<f2", "<f4")},
    MULTILABEL: {PLANES: ("|u1",), BITS: ("|u1",)},
}
"""For each kind its forms, and for each form its dtypes."""

WITH_CLASSES = (CLASSES, MULTILABEL)
"""The kinds that have a table of classes."""
MOST_BANDS = 16
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
