"""`TileTable`: the ends of the tiles of a row, while the tiles are encoded."""

from __future__ import annotations

import numpy as np

from readers.contract.tile_grid import aligned


class TileTable:
    """The ends of the tiles of a row. They lie before the tiles, and are known after the last one is encoded."""

    def __init__(self, tiles: int) -> None:
        self._ends = np.zeros(tiles, "<u8")
        self._count = 0

    @property
    def end(self) -> int:
        """The bytes of the row so far."""
        return int(self._ends[self._count - 1]) if self._count else self._ends.nbytes

    def gap(self) -> bytes:
        """Return the zeros before the next tile."""
        return bytes(aligned(self.end) - self.end)

    def add(self, size: int) -> None:
        """Count a tile of this number of bytes."""
        self._ends[self._count] = aligned(self.end) + size
        self._count += 1

    def to_bytes(self) -> bytes:
        """Return the bytes of the table."""
        return self._ends.tobytes()
