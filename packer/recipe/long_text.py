"""`LongText`: lines that grow; from a size on, in a file without a name, which is mapped when it is read."""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from typing import IO

from packer.errors import TargetError

IN_MEMORY = 16 << 20
"""The bytes of a text that are kept in memory. A longer one is in a file of the folder for temporary files."""


class LongText:
    """Bytes that are added at the end, and read in slices."""

    def __init__(self) -> None:
        self._size = 0
        self._memory = bytearray()
        self._file: IO[bytes] | None = None
        self._map: mmap.mmap | None = None

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: slice) -> bytes | bytearray:
        if self._file is None:
            return self._memory[index]
        if self._map is None or len(self._map) < self._size:
            self._write(b"", flush=True)
            self._map = mmap.mmap(self._file.fileno(), self._size, access=mmap.ACCESS_READ)
        return self._map[index]

    def add(self, data: bytes) -> None:
        """Add bytes at the end."""
        self._size += len(data)
        if self._file is None and self._size <= IN_MEMORY:
            self._memory += data
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the last reference to this text
            weakref.finalize(self, self._file.close)
            self._write(self._memory)
            self._memory = bytearray()
        self._write(data)

    def _write(self, data: bytes | bytearray, flush: bool = False) -> None:
        assert self._file is not None
        try:
            self._file.write(data)
            if flush:
                self._file.flush()
        except OSError as error:
            why = f"cannot be written ({os.strerror(error.errno or 0)})"
            advice = f"set TMPDIR to a folder with more than {self._size:,} bytes free"
            raise TargetError(f"{tempfile.gettempdir()}: the list of rows {why}; {advice}") from error
