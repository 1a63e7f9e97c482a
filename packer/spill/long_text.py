"""`LongText`: lines that grow; `LongNumbers`: numbers that grow; `long_table`: numbers of all rows. Long ones are in a
mapped file without a name."""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from typing import IO

import numpy as np
from numpy.typing import NDArray

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
        return self._whole()[index]

    def view(self) -> memoryview:
        """Return all bytes so far. Nothing may be added as long as the view is used."""
        return memoryview(self._whole())

    def _whole(self) -> bytearray | mmap.mmap:
        if self._file is None:
            return self._memory
        if self._map is None or len(self._map) < self._size:
            self._write(b"", flush=True)
            self._map = mmap.mmap(self._file.fileno(), self._size, access=mmap.ACCESS_READ)
        return self._map

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
            raise _too_large(self._size, error) from error


class LongNumbers:
    """Numbers that are added at the end."""

    def __init__(self) -> None:
        self._text = LongText()

    def add(self, numbers: NDArray[np.int64]) -> None:
        """Add numbers at the end."""
        self._text.add(numbers.astype(np.int64, copy=False).tobytes())

    def all(self) -> NDArray[np.int64]:
        """Return all numbers. None may be added any more."""
        return np.frombuffer(self._text.view(), np.int64)


def long_table(rows: int, width: int) -> NDArray[np.int64]:
    """Return zeros. The kernel may take back the memory of a table in a file."""
    size = rows * width * np.dtype(np.int64).itemsize
    if size <= IN_MEMORY or not hasattr(os, "posix_fallocate"):
        return np.zeros((rows, width), np.int64)
    with tempfile.TemporaryFile() as file:
        try:
            os.posix_fallocate(file.fileno(), 0, size)  # a disk that is full later would end the process
        except OSError as error:
            raise _too_large(size, error) from error
        return np.frombuffer(mmap.mmap(file.fileno(), size), np.int64).reshape(rows, width)


def _too_large(size: int, error: OSError) -> TargetError:
    why = f"cannot be written ({os.strerror(error.errno or 0)})"
    advice = f"set TMPDIR to a folder with more than {size:,} bytes free"
    return TargetError(f"{tempfile.gettempdir()}: the list of rows {why}; {advice}")
