"""A keyed permutation of 0…n-1 that is computed and never stored, and the keyed numbers it is made of."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Words = NDArray[np.uint64]

ROUNDS = 8
FEW = 256
"""Up to this many rows are sorted by random numbers: on a small grid the network is not uniform."""
MOST_ROWS = 2**62

_STEP, _FIRST, _SECOND = (np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def keys_of(*words: int | str) -> Words:
    """Return eight numbers that follow from the words, the same on every machine."""
    text = "\0".join(map(str, words)).encode()
    return np.frombuffer(hashlib.blake2b(text, digest_size=8 * ROUNDS).digest(), "<u8").astype(np.uint64)


def mixed(values: Numbers | Words, key: np.uint64 | Words) -> Words:
    """Return a number for each value that looks random: the last step of SplitMix64. Many keys may broadcast."""
    out = values.astype(np.uint64)
    out *= _STEP
    out += key
    out ^= out >> np.uint64(30)
    out *= _FIRST
    out ^= out >> np.uint64(27)
    out *= _SECOND
    out ^= out >> np.uint64(31)
    return out


@dataclass(frozen=True)
class Permutation:
    """`Permutation(n, keys_of(…))(positions)` returns the new index of each position, each of 0…n-1 once.

    A Feistel network on a grid of about sqrt(n) x sqrt(n) cells: a cell moves along its column by a number that depends
    on the column, then along its row by one that depends on the row, and so on. The grid has a few cells from n on: a
    position that lands on one moves again.
    """

    n: int
    keys: Words

    def __post_init__(self) -> None:
        if not 1 <= self.n <= MOST_ROWS:
            raise ValueError(f"expected 1 to 2**62 rows, found {self.n}")

    def __call__(self, positions: Numbers) -> Numbers:
        if self.n <= FEW:
            return np.argsort(mixed(np.arange(self.n), self.keys[0]), kind="stable")[positions]
        return _moved(self.n, self.keys, positions)

    def positions(self, indices: Numbers) -> Numbers:
        """Return the position of each index: what a call returns the index for."""
        if self.n <= FEW:
            return np.argsort(self(np.arange(self.n)))[indices]
        return _moved(self.n, self.keys, indices, back=True)


@dataclass(frozen=True)
class Permutations:
    """Permutations of equal length at once. Each has a row of `keys`, and is what a `Permutation` with them is."""

    n: int
    keys: Words

    def __call__(self, numbers: Numbers, positions: Numbers) -> Numbers:
        """Return the new index of each position in the permutation of this number."""
        if self.n <= FEW:
            places = np.broadcast_to(np.arange(self.n), (len(self.keys), self.n))
            return np.argsort(mixed(places, self.keys[:, :1]), axis=1, kind="stable")[numbers, positions]
        return _moved(self.n, self.keys[numbers].T, positions)


def _moved(n: int, keys: Words, cells: Numbers, back: bool = False) -> Numbers:
    """Return where cells move, or with `back` where they came from. They may have a column of keys each."""
    out = _moved_once(n, keys, cells, back)
    outside = np.flatnonzero(out >= n)
    while len(outside):
        out[outside] = _moved_once(n, keys if keys.ndim == 1 else keys[:, outside], out[outside], back)
        outside = outside[out[outside] >= n]
    return out


def _moved_once(n: int, keys: Words, cells: Numbers, back: bool) -> Numbers:
    height = math.isqrt(n - 1) + 1
    width = -(-n // height)
    rows, columns = (part.astype(np.uint64) for part in np.divmod(cells, width))
    steps = list(enumerate(keys))
    for number, key in reversed(steps) if back else steps:
        side = np.uint64(width if number % 2 else height)
        far = mixed(rows if number % 2 else columns, key) % side
        if back:
            far = side - far
        if number % 2:
            columns = (columns + far) % side
        else:
            rows = (rows + far) % side
    return (rows * np.uint64(width) + columns).astype(np.int64)
