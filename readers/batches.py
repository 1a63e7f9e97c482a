"""`Batches`: how the batches of a split are read; `ReadAhead`: how many are read ahead of use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from readers.batch_memory import Lease
from readers.contract.errors import RequestError
from readers.crop import CropAndFlip
from readers.epoch import BatchRows
from readers.finish import MeanStd
from readers.machine import usable_cores
from readers.permutation import Numbers
from readers.row_reader import Arrays, RowReader


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
    """The reading of batches of a split. `split` are its rows in the pack."""

    reader: RowReader
    split: range
    size: int
    crop: CropAndFlip | None
    mean_std: MeanStd | None
    """Mean and standard deviation of the training split's images; None if it is not clear which split that is."""

    def __post_init__(self) -> None:
        if self.size < 1:
            raise RequestError(f"batch_size={self.size}: expected a number from 1 on")

    def read(self, batch: BatchRows, lease: Lease) -> Arrays:
        """Return a batch in memory from `lease`."""
        in_pack = self.in_pack(batch.rows)
        if self.crop is None:
            return self.reader.read(in_pack, lease)
        windows = self.crop.windows(batch.rows, batch.runs, self.reader.sizes(in_pack))
        return self.reader.read(in_pack, lease, windows)

    def in_pack(self, rows: Numbers) -> list[int]:
        """Return rows of the split as rows of the pack."""
        in_pack: list[int] = (rows + self.split.start).tolist()
        return in_pack

    def bytes(self) -> int:
        """Return about how many bytes of the disk a batch has: as if all rows were as large as the first."""
        return self.size * self.reader.row_bytes(self.split.start)
