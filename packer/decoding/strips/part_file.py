"""`PartFile`: a file of which only the parts that are asked for are in memory."""

from __future__ import annotations

import os
from pathlib import Path

from packer.errors import BadPair
from readers.contract.regular_files import open_raw


class PartFile:
    """The bytes of a regular file. They are read, not mapped: if it becomes shorter in between, no process ends."""

    def __init__(self, path: Path | str) -> None:
        self.file = open_raw(path)
        self._size = os.fstat(self.file.fileno()).st_size

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

    def close(self) -> None:
        self.file.close()
