"""The folds of a cross-validation are splits named fold0, fold1 and so on: training leaves one out and validates on it.

Rows in the split `always` are trained on in every fold. Any other split, such as `test`, belongs to no fold.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable

from readers.contract.errors import RequestError

FOLD = re.compile(r"fold(0|[1-9][0-9]{0,4})")
ALWAYS = "always"
TRAIN, VAL = "train", "val"
"""The two parts that a data set may open of a fold."""


def fold_name(number: int) -> str:
    """Return the name of the split that is validated on in this fold."""
    return f"fold{number}"


def fold_numbers(splits: Iterable[str]) -> tuple[int, ...]:
    """Return the numbers of the folds among these splits."""
    return tuple(sorted(int(match[1]) for match in map(FOLD.fullmatch, splits) if match))


def splits_of_fold(splits: Iterable[str], fold: int, part: str) -> tuple[str, ...]:
    """Return the splits that are the training part of a fold, or the one that is its validation part."""
    names = tuple(splits)
    held_out = fold_name(known_fold(names, fold))
    if part == VAL:
        return (held_out,)
    return tuple(name for name in names if name == ALWAYS or (FOLD.fullmatch(name) and name != held_out))


def known_fold(splits: Iterable[str], fold: int) -> int:
    """Return a fold that is there, or raise RequestError."""
    folds = fold_numbers(splits)
    try:
        number = operator.index(fold)
    except TypeError:
        number = -1
    if number in folds:
        return number
    choices = f"one of {', '.join(map(str, folds))}" if folds else "a pack with folds, as packer build --folds makes"
    raise RequestError(f"fold={fold!r}: expected {choices}")
