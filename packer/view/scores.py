"""Scores of rows, such as those of a model: a CSV with the key, or split/key, and a number."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from packer.errors import InputError, first_of
from readers.contract.manifest import ALL
from readers.contract.regular_files import read_raw
from readers.find_key import rows_with_key
from readers.pack import Pack


def read_scores(pack: Pack, path: Path) -> NDArray[np.float32]:
    """Return a score for each row, NaN for those without one. Raises InputError with the lines that do not fit.

    A first line whose second cell is not a number is a head.
    """
    try:
        text = read_raw(path).decode("utf-8-sig")
    except (UnicodeDecodeError, OSError) as error:
        raise InputError(f"{path}: cannot be read as a table of scores ({error})") from error
    scores = np.full(pack.manifest.rows, np.nan, np.float32)
    problems = []
    for number, cells in enumerate(csv.reader(io.StringIO(text, newline="")), 1):
        if not cells:
            continue
        score = _number(cells[1]) if len(cells) == 2 else None
        if score is None and number == 1:
            continue
        rows = rows_named(pack, cells[0]) if score is not None else []
        if not rows:
            problems.append(f"line {number}: {'unknown key' if score is not None else 'expected KEY,NUMBER'}")
        scores[rows] = score
    if problems:
        raise InputError(f"{path}: {'; '.join(first_of(problems, 5))}")
    return scores


def rows_named(pack: Pack, name: str) -> list[int]:
    """Return the rows with a name such as `train/street_01`, or with this key in any split."""
    split, _, key = name.partition("/")
    if split in {known.name for known in pack.manifest.splits} and key:
        rows = rows_with_key(pack, key, pack.rows_of(split))
        if rows:
            return rows
    return rows_with_key(pack, name, pack.rows_of(ALL))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
