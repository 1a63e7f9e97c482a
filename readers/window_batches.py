"""`WindowBatches`: batches of windows of rows, each with the key that `stitch` takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from readers.batch_memory import Lease
from readers.batches import Batches
from readers.contract.tiles import window_key
from readers.sliding_windows import SlidingWindows
from readers.window_order import WindowRows
from readers.windows import BatchWindows

KEYS = "keys"
"""The name of the first part of a batch of windows."""


@dataclass(frozen=True)
class WindowBatches(Batches):
    """The reading of batches of windows."""

    windows: SlidingWindows

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts of a batch: the keys come first."""
        return (KEYS, *super().parts)

    def read(self, batch: Any, lease: Lease) -> tuple[Any, ...]:
        """Return the keys of the windows of a batch, and the windows in memory from `lease`."""
        return (self.keys(batch), *super().read(batch, lease))

    def keys(self, batch: WindowRows) -> list[str]:
        """Return the key of each window: the key of its row, where it begins, and the scaled size of the row."""
        in_pack, pack = self.in_pack(batch.rows), self.reader.pack
        sizes = self.reader.sizes(in_pack)
        starts, scaled = self.windows.starts(sizes, batch.numbers), self.windows.scaled(sizes)
        rows = dict(zip(in_pack, pack.table.locate_all(in_pack), strict=True))
        names = {row: pack.shard(shard).key(number) for row, (shard, number) in rows.items()}
        places = zip(in_pack, starts.tolist(), scaled.tolist(), strict=True)
        return [window_key(names[row], start, tuple(sides)) for row, start, sides in places]

    def _windows(self, batch: Any, in_pack: list[int]) -> BatchWindows:
        """Return the windows of a batch."""
        sizes = self.reader.sizes(in_pack)
        return self.windows.windows(sizes, self.windows.starts(sizes, batch.numbers))
