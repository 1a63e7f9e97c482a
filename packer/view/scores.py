"""Scores of rows, such as the scores of a model: a CSV with the key, or split/key, and a number."""

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

    A first line whose second cell is not a number is a head. `key` names a row of each split; `split/key` wins over it.
    """
    names, lines, numbers, problems = _read(path)
    scores = np.full(pack.manifest.rows, np.nan, np.float32)
    used = np.zeros(len(numbers), np.bool_)
    row = 0
    for split, shards, _ in pack.splits():  # all keys once: to search each name of a million takes minutes
        for number in shards:
            shard = pack.shard(number)
            for inside in range(pack.table.rows(number)):
                key = shard.key(inside)
                for name in (key, f"{split.name}/{key}"):
                    if (at := names.get(name)) is not None:
                        scores[row], used[at] = numbers[at], True
                row += 1
    problems += [(lines[at], "unknown key") for at in np.flatnonzero(~used).tolist()]
    if problems:
        words = [f"line {line}: {problem}" for line, problem in sorted(problems)]
        raise InputError(f"{path}: {'; '.join(first_of(words, 5))}")
    return scores


def _read(path: Path) -> tuple[dict[str, int], list[int], list[float], list[tuple[int, str]]]:
    """Return the index of each name, the line and the number of each index, and the lines that are wrong."""
    names: dict[str, int] = {}
    lines: list[int] = []
    numbers: list[float] = []
    problems: list[tuple[int, str]] = []
    try:
        reader = csv.reader(io.StringIO(read_raw(path).decode("utf-8-sig"), newline=""))
        for count, cells in enumerate(filter(None, reader)):
            number = _number(cells[1]) if len(cells) == 2 else None
            if number is None:
                if count or len(cells) != 2:
                    problems.append((reader.line_num, "expected KEY,NUMBER"))
            elif cells[0] in names:
                problems.append((reader.line_num, f"the same key as in line {lines[names[cells[0]]]}"))
            else:
                names[cells[0]] = len(numbers)
                lines.append(reader.line_num)
                numbers.append(number)
    except (UnicodeDecodeError, OSError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as a table of scores ({error})") from error
    return names, lines, numbers, problems


def rows_named(pack: Pack, name: str) -> list[int]:
    """Return the rows with a name such as `train/street_01`, or with this key in any split."""
    split, _, key = name.partition("/")
    if split in {entry.name for entry in pack.manifest.splits} and key:
        rows = rows_with_key(pack, key, pack.rows_of(split))
        if rows:
            return rows
    return rows_with_key(pack, name, pack.rows_of(ALL))


def _number(text: str) -> float | None:
    """Return a number; NaN, a row without a score, if the text is `nan` or empty. Infinite numbers are none."""
    try:
        number = float(text.strip() or "nan")
    except ValueError:
        return None
    return None if math.isinf(number) else number
