"""`StreamedFile`: a file of a store that is read from its start to its end, in blocks that are requested ahead."""

from __future__ import annotations

import io
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, BinaryIO, cast

from packer.sources.files.seekable_file import SeekableFile

BLOCK = 4 << 20
AHEAD = 3
"""Blocks that are requested before they are asked for. The first of a run has none ahead, the second has one."""
FAR = 2 * BLOCK
"""The bytes that are jumped over instead of read."""
LANDING = 1 << 16
"""The bytes that are read after a jump: perhaps the next jump is near."""
BUFFER = 1 << 13


class StreamedFile(SeekableFile):
    """Reads a file of `size` bytes by ranges, `read(start, stop)`. It holds AHEAD + 1 blocks at most."""

    def __init__(self, size: int, read: Callable[[int, int], bytes], threads: Executor) -> None:
        super().__init__(size)
        self._read_range, self._threads = read, threads
        self._end = self._run = 0
        """The place where the last read ended, and the number of blocks read in a row."""
        self._blocks: dict[int, Future[bytes]] = {}
        self._landing = (0, b"")

    def buffered(self) -> BinaryIO:
        return cast("BinaryIO", io.BufferedReader(self, BUFFER))

    def readinto(self, buffer: Any) -> int:
        if self._at >= self._size:
            return 0
        start, data = self._piece()
        data = data[self._at - start :][: len(buffer)]
        buffer[: len(data)] = data
        self._at += len(data)
        self._end = max(self._end, self._at)
        return len(data)

    def close(self) -> None:
        for block in self._blocks.values():
            block.cancel()
        self._blocks.clear()
        super().close()

    def _piece(self) -> tuple[int, memoryview]:
        """Return bytes around the present place, and where they begin."""
        start, landed = self._landing
        if start <= self._at < start + len(landed):
            return start, memoryview(landed)
        number = self._at // BLOCK
        if number not in self._blocks and self._at - self._end > FAR:
            self._run = 0
            self._blocks.clear()
            landed = self._read_range(self._at, min(self._at + LANDING, self._size))
            self._landing = self._at, landed
            return self._landing[0], memoryview(landed)
        return number * BLOCK, memoryview(self._block(number))

    def _block(self, number: int) -> bytes:
        """Return a block, and request those after it."""
        if number - 1 in self._blocks:
            self._run += 1
        elif number not in self._blocks:
            self._run = 0
        for old in [old for old in self._blocks if old < number]:
            del self._blocks[old]
        for coming in range(number, number + 1 + min(self._run, AHEAD)):
            if coming not in self._blocks and coming * BLOCK < self._size:
                stop = min((coming + 1) * BLOCK, self._size)
                self._blocks[coming] = self._threads.submit(self._read_range, coming * BLOCK, stop)
        return self._blocks[number].result()
