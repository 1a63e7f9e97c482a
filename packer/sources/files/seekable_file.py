"""`SeekableFile`: what files that are read by ranges have in common: a size, and a place of the next byte."""

from __future__ import annotations

import io


class SeekableFile(io.RawIOBase):
    """A file of a known size. How it reads is up to its kind."""

    def __init__(self, size: int) -> None:
        self._size, self._at = size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence])
        return self._at
