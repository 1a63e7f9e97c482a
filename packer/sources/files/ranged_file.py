"""`RangedFile`: an object of a store as a file that reads only the requested blocks."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, BinaryIO, cast

from packer.sources.files.seekable_file import SeekableFile

BLOCK = 1 << 16
"""Most headers are in the first block. A smaller object is read whole."""
MOST_BLOCKS = 64
"""Blocks that are kept. A hostile header may lead through the whole object."""


class RangedFile(SeekableFile):
    """Reads an object of `size` bytes by ranges: `read(start, stop)`."""

    def __init__(self, size: int, read: Callable[[int, int], bytes]) -> None:
        super().__init__(size)
        self._read_range = read
        self._blocks: dict[int, bytes] = {}

    def buffered(self) -> BinaryIO:
        """Return a file that reads ahead in blocks."""
        return cast("BinaryIO", io.BufferedReader(self, BLOCK))

    def readinto(self, buffer: Any) -> int:
        if self._at >= self._size:
            return 0
        number = self._at // BLOCK
        start = number * BLOCK
        if number not in self._blocks:
            if len(self._blocks) == MOST_BLOCKS:
                self._blocks.clear()
            self._blocks[number] = self._read_range(start, min(start + BLOCK, self._size))
        data = self._blocks[number][self._at - start :][: len(buffer)]
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
