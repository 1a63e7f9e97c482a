"""The states of files: what shows, without reading them, that they did not change."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from packer.errors import LostFile
from packer.recipe.source import UNKNOWN

MIN_FILE_AGE = int(1e9 * float(os.environ.get("SEGPACK_FILE_AGE", "2")))
"""The state of a file that was changed less than this number of nanoseconds ago is unknown: the file could change again
within one tick of the clock, with the same times."""
UNREADABLE = (0, -1, -1)
"""The state of a file that cannot be read."""
ANY = -2
"""Replaces the ctime of a file that other machines have, too."""

FileState = tuple[int, int, int]
"""Size, mtime and ctime in nanoseconds. The ctime reveals a file that was given another one's name and mtime."""


def state_of(path: str) -> FileState:
    """Return the state of a file now."""
    try:
        status = os.stat(path)  # noqa: PTH116 - called for every file, and a Path takes twice as long
    except OSError:
        return UNREADABLE
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def as_three_numbers(text: str) -> FileState:
    """Return three numbers of 63 bits that stand for a text."""
    digest = blake3(text.encode()).digest(length=24)
    first, second, third = (int.from_bytes(digest[at : at + 8], "little") >> 1 for at in (0, 8, 16))
    return first, second, third


def elsewhere(state: Sequence[int]) -> FileState:
    """Return the state of a file for other machines, whose copy has a ctime of its own."""
    return state[0], state[1], ANY


def state_here(path: str, state: Sequence[int]) -> FileState:
    """Return the state that a file must have on this machine, if it has this one `elsewhere`."""
    size, mtime, ctime = state
    now = state_of(path) if ctime == ANY else UNREADABLE
    return now if now[:2] == (size, mtime) else (size, mtime, ctime)


def is_young(state: Sequence[int]) -> bool:
    """Return whether a file was changed a moment ago, and could change again with the same times.

    The ctime counts, too: `cp -p` and `rsync -a` copy the time of writing.
    """
    return max(state[1], state[2]) >= time.time_ns() - MIN_FILE_AGE


def are_young(states: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each row, which holds the states of several files, whether one of these files is young."""
    changed: NDArray[np.int64] = np.maximum(states[:, 1::3], states[:, 2::3]).max(1, initial=0)
    return changed >= time.time_ns() - MIN_FILE_AGE


class OpenedFiles:
    """The files of a container that has many rows, and their states when the build was planned.

    A worker gets both, so that a build never mixes rows of old files with rows of new ones.
    """

    def __init__(self, paths: Sequence[Path | str], states: Sequence[Sequence[int]] | None = None) -> None:
        self.paths = tuple(map(str, paths))
        planned = self._now() if states is None else states
        self.states = tuple(map(state_here, self.paths, planned))

    def of_rows(self, count: int) -> NDArray[np.int64]:
        """Return the state of `count` rows: the state of the files, or unknown if a file is young or has changed."""
        rows = np.empty((count, 3 * len(self.paths)), np.int64)
        if count:
            rows[:] = np.array(self.states).reshape(-1)
            if any(map(is_young, self.states)) or self._now() != self.states:
                rows[:, 0] = UNKNOWN
        return rows

    def check(self) -> None:
        """Raise BadPair if a file changed. Call it after reading a row: the row then is of the planned files."""
        for path, before in zip(self.paths, self.states, strict=True):
            if state_of(path) != before:
                raise LostFile(f"{Path(path).name} changed while it was packed; build again")

    def _now(self) -> tuple[tuple[int, ...], ...]:
        return tuple(map(state_of, self.paths))
