"""`Batches`: which rows make a batch, and how a batch is read; `ReadAhead`: how many are read ahead of use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from readers.batch_memory import Lease
from readers.contract.errors import RequestError
from readers.crop import CropAndFlip
from readers.epoch import Epoch
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
    """The batches of a split, and how each is read. `first` is the row of the pack that is the split's row 0."""

    reader: RowReader
    first: int
    size: int
    drop_last: bool
    crop: CropAndFlip | None
    mean_std: MeanStd | None
    """Mean and standard deviation of the training split's images; None if it is not clear which split that is."""

    def __post_init__(self) -> None:
        if self.size < 1:
            raise RequestError(f"batch_size={self.size}: expected a number from 1 on")

    def count(self, epoch: Epoch) -> int:
        """Return the number of batches of an epoch."""
        return epoch.count // self.size if self.drop_last else -(-epoch.count // self.size)

    def rows(self, epoch: Epoch) -> Iterator[Numbers]:
        """Yield the rows of each batch, as indices in the split."""
        return islice(epoch.chunks(self.size), self.count(epoch))

    def read(self, epoch: Epoch, rows: Numbers, lease: Lease) -> Arrays:
        """Return a batch in memory from `lease`."""
        in_pack = self.in_pack(rows)
        if self.crop is None:
            return self.reader.read(in_pack, lease)
        windows = self.crop.windows(epoch.seed, epoch.number, rows, self.reader.sizes(in_pack))
        return self.reader.read(in_pack, lease, windows)

    def in_pack(self, rows: Numbers) -> list[int]:
        """Return rows of the split as rows of the pack."""
        in_pack: list[int] = (rows + self.first).tolist()
        return in_pack

    def bytes(self) -> int:
        """Return about how many bytes of the disk a batch has: as if all rows were as large as the first."""
        return self.size * self.reader.row_bytes(self.first)
