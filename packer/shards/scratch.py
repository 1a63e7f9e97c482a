"""`Scratch`: files of a shard for what does not fit into memory while it is built."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from shutil import copyfileobj
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from readers.contract.atomic import partial

CHUNK = 1 << 20
"""The bytes of a file that are copied at a time."""


class Scratch:
    """A private folder, made for the first file and removed at the end.

    The next build removes the folder of a killed one.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._exits = ExitStack()
        self._private: Path | None = None

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    def path(self, name: str) -> Path:
        """Return the path of a new file."""
        if self._private is None:
            self._private = self._exits.enter_context(partial(self._folder)).parent
        return self._private / name

    def joined(self, name: str, rows: Sequence[bytes | Path]) -> NDArray[np.uint8]:
        """Return rows back to back: a map of a file. Some of the rows are files."""
        files = [row for row in rows if isinstance(row, Path)]
        if len(files) == len(rows) == 1:
            return mapped(files[0])
        path = self.path(name)
        with path.open("wb") as file:
            for row in rows:
                if isinstance(row, bytes):
                    file.write(row)
                    continue
                with row.open("rb") as encoded:
                    copyfileobj(encoded, file, CHUNK)
                row.unlink()
        return mapped(path)


def mapped(path: Path) -> NDArray[np.uint8]:
    """Return a map of a file that is not empty. Its pages can be dropped at any time: they are pages of the file."""
    with path.open("rb") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
