"""The state of all files of a raw folder, to see how many have changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from packer.pairs.files import find_files

FolderState = NDArray[np.int64]
"""A number for each file, in order: another one if its name, size or time is another."""


def state_of_folder(raw: Path, leave_out: Path) -> FolderState:
    """Return the state of the files below `raw`, without the folder `leave_out` and packs."""
    files = find_files(raw, leave_out)
    return np.sort(np.fromiter(_numbers(raw, files.parts()), np.int64))


def changed_files(before: FolderState, now: FolderState) -> int:
    """Return how many files were added, written again or removed."""
    added, removed = (~np.isin(these, others) for these, others in ((now, before), (before, now)))
    return max(int(added.sum()), int(removed.sum()))


def _numbers(raw: Path, parts: Iterator[Mapping[str, Sequence[str]]]) -> Iterator[int]:
    for folders in parts:
        for folder, names in folders.items():
            for name in names:
                path = f"{folder}{name}"
                try:
                    status = os.stat(f"{raw}/{path}")  # noqa: PTH116 - there may be a million
                    yield hash((path, status.st_size, status.st_mtime_ns, status.st_ino))
                except OSError:
                    yield hash(path)  # it is gone, or a link that leads nowhere
