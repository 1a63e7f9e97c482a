"""States: how the raw files of pairs are now, each pair looked at once, and a million of them in little memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from packer.stamps import state_of

THREADS, CHUNK = 16, 256
"""Where files are far away, one answer is waited for while others are asked for."""

Files = tuple[str, str]
"""An image and a label, below the raw folder."""


class States:
    """The states of pairs of files of one raw folder."""

    def __init__(self, raw: Path) -> None:
        self._raw = str(raw)
        self._places: dict[Files, int] = {}
        self._states: NDArray[np.int64] = np.empty((0, 6), np.int64)

    def of(self, files: Iterable[Files]) -> NDArray[np.int64]:
        """(N,6): the state of each image and of its label."""
        files = list(files)
        self._look(list(dict.fromkeys(pair for pair in files if pair not in self._places)))
        return self._states[[self._places[pair] for pair in files]]

    def _look(self, new: Sequence[Files]) -> None:
        known, found = len(self._places), len(self._places) + len(new)
        if found > len(self._states):
            self._states = np.concatenate([self._states[:known], np.empty((max(known, len(new)), 6), np.int64)])
        self._places.update(zip(new, range(known, found), strict=True))
        chunks = [new[start : start + CHUNK] for start in range(0, len(new), CHUNK)]
        with ThreadPoolExecutor(THREADS) as pool:
            for chunk, states in zip(chunks, pool.map(self._chunk, chunks), strict=True):
                self._states[known : known + len(chunk)] = states
                known += len(chunk)

    def _chunk(self, files: Sequence[Files]) -> NDArray[np.int64]:
        raw = self._raw
        return np.array(
            [(*state_of(f"{raw}/{image}"), *state_of(f"{raw}/{label}")) for image, label in files], np.int64
        )
