"""`PartFile`: a file that has only the requested parts in memory."""

from __future__ import annotations

import os
from pathlib import Path

from packer.errors import BadPair, LostFile
from readers.contract.regular_files import open_raw


class PartFile:
    """The bytes of a regular file. They are read, not mapped: if it becomes shorter in between, no process ends."""

    def __init__(self, path: Path | str) -> None:
        self.file, self._path = open_raw(path), Path(path)
        self._state = _state(os.fstat(self.file.fileno()))
        self._size = self._state[1]

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice, /) -> bytes:
        start, stop, _ = part.indices(self._size)
        data = bytearray()
        while start + len(data) < stop:
            more = os.pread(self.file.fileno(), stop - start - len(data), start + len(data))
            if not more:
                raise BadPair("was cut short while it was read")
            data += more
        return bytes(data)

    def check_unchanged(self) -> None:
        """Refuse a file that is not what it was when it was opened: it may have been identified in between."""
        try:
            is_same = _state(self._path.stat()) == self._state
        except OSError:
            is_same = False
        if not is_same:
            raise LostFile("changed while it was read; build again")

    def close(self) -> None:
        self.file.close()


def _state(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns
