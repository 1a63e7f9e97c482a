"""The bytes of a file in slices: of its map, or read from the open file where the file system refuses maps."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import DamagedError
from readers.contract.mapped import map_file
from readers.contract.system import open_to_read, read_into


class OpenFile:
    """An open file, read slice by slice. What opens a shard needs few slices of it, and small ones."""

    def __init__(self, path: Path, file: int) -> None:
        self._path = path
        self._file = file
        self._size = os.fstat(file).st_size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> memoryview:
        start, stop, _ = part.indices(self._size)
        data = np.empty(max(0, stop - start), np.uint8)
        self.read(start, data)
        return data.data

    def read(self, start: int, out: NDArray[np.uint8]) -> None:
        """Read bytes from a position on, until the array is full."""
        done = 0
        while done < len(out):
            count = read_into(self._file, out[done:].data, start + done)
            if count == 0:
                raise DamagedError(f"{self._path}: ends before byte {start + len(out)}; was it cut short?")
            done += count


Contents: TypeAlias = "memoryview | OpenFile"


@contextmanager
def contents(path: Path) -> Iterator[Contents]:
    """Yield the bytes of a file: its map, or the open file, which is closed at the end."""
    data = map_file(path)
    if data is not None:
        yield data.data
        return
    with open_file(path) as opened:
        yield opened


@contextmanager
def open_file(path: Path) -> Iterator[OpenFile]:
    """Open a file for reading without a map."""
    file = open_to_read(path)
    try:
        yield OpenFile(path, file)
    finally:
        os.close(file)


def read_spans(path: Path, spans: Sequence[tuple[int, int]]) -> tuple[NDArray[np.uint8], list[int]]:
    """Read parts of a file into memory of their own. Return it, and where in it each part begins."""
    ends = np.cumsum([0, *(stop - start for start, stop in spans)]).tolist()
    data = np.empty(ends[-1], np.uint8)
    with open_file(path) as opened:
        for (start, _), begin, end in zip(spans, ends, ends[1:], strict=False):
            opened.read(start, data[begin:end])
    return data, ends[:-1]
