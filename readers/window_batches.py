"""`WindowBatches`: batches of windows of rows, each with the key that `stitch` takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from readers.batch_memory import Lease
from readers.batches import Batches
from readers.contract.tiles import window_key
from readers.drawn import BatchDraw
from readers.holding import HeldRows, HeldWindows
from readers.sliding_windows import SlidingWindows
from readers.tone import BatchTones
from readers.window_order import WindowRows

KEYS = "keys"
"""The name of the first part of a batch of windows."""


@dataclass(frozen=True)
class WindowBatches(Batches):
    """The reading of batches of windows."""

    windows: SlidingWindows = field(kw_only=True)

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts of a batch: the keys come first."""
        return (KEYS, *super().parts)

    def drawn(self, batch: Any, lease: Lease, counts: bool = False) -> tuple[tuple[Any, ...], BatchDraw]:
        """Return the keys of the windows of a batch, and the windows in memory from `lease`; and how many they are."""
        windows, draw = super().drawn(batch, lease, counts)
        return (self.keys(batch), *windows), draw

    def keys(self, batch: WindowRows) -> list[str]:
        """Return the key of each window: the key of its row, where it begins, and the scaled size of the row."""
        in_pack, pack = self.rows.at(batch.rows).tolist(), self.reader.pack
        sizes = self.reader.sizes(in_pack)
        starts, scaled = self.windows.starts(sizes, batch.numbers), self.windows.scaled(sizes)
        rows = dict(zip(in_pack, pack.table.locate_all(in_pack), strict=True))
        names = {row: pack.shard(shard).key(number) for row, (shard, number) in rows.items()}
        places = zip(in_pack, starts.tolist(), scaled.tolist(), strict=True)
        return [window_key(names[row], start, tuple(sides)) for row, start, sides in places]

    def _tones(self, batch: Any) -> BatchTones | None:
        """Return the tones of a batch: evaluation knows no random colours."""
        return None if self.tone is None else self.tone.of_batch(batch.rows, ())

    def _windows(self, batch: Any, held: HeldRows) -> HeldWindows:
        """Return the windows of a batch."""
        sizes = self.reader.sizes(held.rows.tolist())
        return HeldWindows(self.windows.windows(sizes, self.windows.starts(sizes, batch.numbers)))
