"""`Batches`: how the batches of a data set are read; `ReadAhead`: how many are read ahead of use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from readers.batch_memory import Lease
from readers.contract.errors import RequestError
from readers.contract.fields import Field
from readers.crop import CropAndFlip
from readers.drawn import BatchDraw, pixels_of
from readers.epoch import BatchRows
from readers.finish import MeanStd
from readers.holding import HeldRows, HeldWindows, Holding
from readers.machine import usable_cores
from readers.row_ranges import RowRanges
from readers.row_reader import Arrays, RowReader
from readers.row_weights import RowWeights


@dataclass(frozen=True)
class ReadAhead:
    """Options of reading: the number of threads, the batches ahead of use, and whether rows leave memory once read."""

    threads: int | Literal["auto"]
    batches: int
    drop_behind: bool

    def __post_init__(self) -> None:
        if self.batches < 1 or (self.threads != "auto" and self.threads < 1):
            raise RequestError(f"threads={self.threads!r}, ahead={self.batches}: expected numbers from 1 on")

    @property
    def workers(self) -> int:
        """The number of threads: no more than cores, and no more than batches ahead."""
        if self.threads != "auto":
            return self.threads
        return min(usable_cores(), self.batches)


@dataclass(frozen=True)
class Batches:
    """The reading of batches of a data set. `rows` are its rows in the pack."""

    reader: RowReader
    rows: RowRanges
    size: int
    crop: CropAndFlip | None
    mean_std: MeanStd | None
    """Mean and standard deviation of the training split's images; None if it is not clear which split that is."""
    weights: RowWeights | None = None
    holding: Holding | None = None

    def __post_init__(self) -> None:
        if self.size < 1:
            raise RequestError(f"batch_size={self.size}: expected a number from 1 on")

    def read(self, batch: BatchRows, lease: Lease) -> Arrays:
        """Return a batch in memory from `lease`."""
        return self.drawn(batch, lease)[0]

    def drawn(self, batch: BatchRows, lease: Lease, counts: bool = False) -> tuple[Arrays, BatchDraw]:
        """Return the same, and how it was drawn; with `counts` also the pixels of its classes."""
        held = self.held(batch)
        in_pack = held.rows.tolist()
        windows, again, above = self._windows(batch, held)
        arrays = self.reader.read(in_pack, lease, windows)
        return arrays, BatchDraw(len(in_pack), held.classes, again, above, self._counted(arrays) if counts else None)

    @property
    def label(self) -> Field | None:
        """The label by whose classes rows or windows are drawn; None if they are not."""
        if self.holding is not None:
            return self.holding.index.field
        return None if self.weights is None else self.weights.field

    def _counted(self, arrays: Arrays) -> NDArray[np.int64] | None:
        """Return the pixels of each class in each window; None if rows are not drawn by classes that are read."""
        for delivered, array in zip(self.reader.fields, arrays, strict=True):
            if self.label is not None and delivered.field.name == self.label.name:
                return pixels_of(delivered.field, array)
        return None

    def prefetch(self, batches: Sequence[BatchRows]) -> None:
        """Ask the kernel to read batches from the disk before they are needed: of fields in tiles only the tiles that
        the windows touch."""
        if self.crop is None or not self.reader.reads_parts:
            self.reader.prefetch([row for batch in batches for row in self.in_pack(batch)])
            return
        for batch in batches:
            held = self.held(batch)
            in_pack = held.rows.tolist()
            if self.reader.are_near(in_pack):  # the sizes of native rows are in their shards
                self.reader.prefetch(in_pack, self._windows(batch, held).windows)

    def drop(self, batch: BatchRows) -> None:
        """Take what was read of a batch out of the page cache: it is not needed again soon."""
        held = self.held(batch)
        self.reader.drop(held.rows.tolist(), self._windows(batch, held).windows if self.reader.reads_parts else None)

    def _windows(self, batch: BatchRows, held: HeldRows) -> HeldWindows:
        """Return the windows of a batch, if it is cropped or flipped."""
        if self.crop is None:
            return HeldWindows(None)
        sizes = self.reader.sizes(held.rows.tolist())
        if self.holding is None:
            return HeldWindows(self.crop.windows(batch.rows, batch.runs, sizes))
        return self.holding.windows(batch, held, sizes)

    def held(self, batch: BatchRows) -> HeldRows:
        """Return the rows of the pack that a batch reads."""
        rows = batch.rows if self.weights is None else self.weights.rows(batch.rows, batch.runs)
        in_pack = self.rows.at(rows)
        return HeldRows(in_pack) if self.holding is None else self.holding.replaced(batch, in_pack)

    def in_pack(self, batch: BatchRows) -> list[int]:
        """Return the rows of the pack that a batch reads."""
        rows: list[int] = self.held(batch).rows.tolist()
        return rows

    def bytes(self) -> int:
        """Return about how many bytes of the disk a batch has: as if all rows were as large as the first."""
        window = None if self.crop is None or self.crop.crop is None else self.crop.crop.size
        return self.size * self.reader.row_bytes(self.rows[0], window)
