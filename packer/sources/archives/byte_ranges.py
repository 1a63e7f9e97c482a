"""`ByteRanges`: archives whose pictures are plain ranges of bytes of their files."""

from __future__ import annotations

import io
import os
from typing import Any, BinaryIO

from packer.decoding.file_types import read_header
from packer.decoding.header import Header
from packer.errors import BadPair
from packer.sources.archives.archive import ArchiveSource
from packer.sources.archives.position import Position

MOST_BYTES = 1 << 32
"""The most bytes of a picture, which is read whole. A TIFF has no more."""


class ByteRanges(ArchiveSource):
    """An archive from which a picture is read at its place, without what lies before it."""

    def read(self, position: Position) -> bytes:
        if position.size > MOST_BYTES:
            raise BadPair(f"has {position.size} bytes; {MOST_BYTES >> 30} GiB are read at most")
        with self.open(position.file) as file:
            file.seek(position.start)
            data = file.read(position.size)
            self.check_state(position.file, file)
        if len(data) != position.size:
            raise BadPair(f"ends after {len(data)} of {position.size} bytes")
        return data

    def header(self, position: Position) -> Header:
        with self.open(position.file) as file:
            return read_header(io.BufferedReader(_Range(file, position)), self.max_pixels)


class _Range(io.RawIOBase):
    """A range of bytes of a file, as a file."""

    def __init__(self, file: BinaryIO, position: Position) -> None:
        self._descriptor, self._start, self._size, self._at = file.fileno(), position.start, position.size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = max(0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence])
        return self._at

    def readinto(self, buffer: Any) -> int:
        count = min(len(buffer), max(0, self._size - self._at))
        data = os.pread(self._descriptor, count, self._start + self._at)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
