"""Random numbers of the rows of a batch: they follow from seed, epoch and row, and from the purpose."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from readers.epoch import Run
from readers.permutation import ROUNDS, Numbers, Words, keys_of, mixed


def dice(rows: Numbers, runs: Sequence[Run], purpose: str, count: int) -> Words:
    """Return this many lines of random numbers of 64 bits, one for each row."""
    lines, first = [], 0
    for run in runs:
        part = rows[first : first + run.length]
        words = [
            keys_of(run.seed, run.epoch, purpose, *([more] if more else [])) for more in range(-(-count // ROUNDS))
        ]
        lines.append([mixed(part, key) for key in np.concatenate(words)[:count]])
        first += run.length
    return np.concatenate(lines, 1)


def draws(rows: Numbers, runs: Sequence[Run], purpose: str, count: int) -> NDArray[np.float64]:
    """Return this many lines of random numbers from 0 to below 1, one for each row."""
    return unit(dice(rows, runs, purpose, count))


def unit(words: Words) -> NDArray[np.float64]:
    """Return random numbers from 0 to below 1 for random words."""
    return (words >> np.uint64(11)).astype(np.float64) / (1 << 53)
