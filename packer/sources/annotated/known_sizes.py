"""`KnownSizes`: the sizes of annotated pictures that were read before, 16 bytes each, so that no file is read again."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np

from readers.contract.tiles import Size

MOST_SIDE = 1 << 31


class KnownSizes:
    """The size that each file gives its picture, by the hash of its path. Hashes are valid in this process."""

    def __init__(self, parts: Iterable[tuple[str, Size | None]] = ()) -> None:
        hashes, sizes = array("q"), array("i")
        for part, size in parts:
            if max(size or (0, 0)) < MOST_SIDE:
                hashes.append(hash(part))
                sizes.extend(size or (0, 0))
        order = np.argsort(np.frombuffer(hashes, np.int64)) if hashes else np.zeros(0, np.int64)
        self._hashes = np.array(hashes, np.int64)[order]
        self._sizes = np.array(sizes, np.int32).reshape(-1, 2)[order]

    def of(self, part: str) -> Size | None:
        """Return the size; (0, 0) if the file gives none. None: the file was not read."""
        number = int(np.searchsorted(self._hashes, hash(part)))
        if number == len(self._hashes) or self._hashes[number] != hash(part):
            return None
        return int(self._sizes[number, 0]), int(self._sizes[number, 1])
