"""`PartnerBatches`: batches in which each row has a partner, for mixup, CutMix and copy-paste."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from readers.batch_memory import Lease
from readers.batch_reader import BatchReader
from readers.contract.errors import RequestError
from readers.contract.fields import Field
from readers.drawn import BatchDraw
from readers.epoch import BatchRows, Run
from readers.fetch_ahead import AllFetching, Fetching
from readers.permutation import Numbers, Permutation, keys_of
from readers.statistics import MeanStd
from readers.tone import Tone


@dataclass(frozen=True)
class PartnerBatches:
    """The reading of batches with the partners of their rows: the fields come twice, of the rows and of the partners.

    The rows of each side, such as a pack, form one circle in an order that follows from seed and epoch. The partner of
    a row is the next one. So in an epoch each row is a partner once, of another row where there are two, on any number
    of ranks. Partners are cropped and flipped by dice of their own.
    """

    batches: BatchReader
    sides: tuple[range, ...]
    """The rows whose partners are among them; they follow each other from 0 on."""

    @classmethod
    def of(cls, batches: BatchReader, sides: Sequence[range], partners: int) -> BatchReader:
        """Return the batches with this number of partners for each row, none or one."""
        if partners not in (0, 1):
            raise RequestError(f"partners={partners!r}: expected 0, or 1 for a partner of each row")
        if partners and batches.on_device:
            raise RequestError('on="device" and partners=: partners are made on the CPU; leave out on=')
        return cls(batches, tuple(sides)) if partners else batches

    @property
    def size(self) -> int:
        """The number of rows in a batch, without partners."""
        return self.batches.size

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields that the parts of a batch are."""
        return (*self.batches.fields, *self.batches.fields)

    @property
    def mean_std(self) -> MeanStd | None:
        """Mean and standard deviation of the training split's images."""
        return self.batches.mean_std

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts of a batch."""
        return tuple(field.name for field in self.fields)

    @property
    def tone(self) -> Tone | None:
        """The colours and numbers that images get while they are read."""
        return self.batches.tone

    @property
    def on_device(self) -> bool:
        return False

    @property
    def steps(self) -> tuple[str, ...]:
        """The options of a loader that cost the CPU more than a copy."""
        return self.batches.steps

    @property
    def unpacks(self) -> bool:
        """True if a field is not stored raw."""
        return self.batches.unpacks

    def with_stored_labels(self) -> tuple[PartnerBatches, int | None]:
        """Return the same with labels that are not expanded, and the planes to expand them into, or None."""
        batches, planes = self.batches.with_stored_labels()
        return replace(self, batches=batches), planes

    def read(self, batch: BatchRows, lease: Lease) -> tuple[Any, ...]:
        """Return a batch in memory from `lease`."""
        return self.drawn(batch, lease)[0]

    def drawn(self, batch: BatchRows, lease: Lease, counts: bool = False) -> tuple[tuple[Any, ...], BatchDraw]:
        """Return the same, and how the rows were drawn, without their partners."""
        own, draw = self.batches.drawn(batch, lease, counts)
        return (*own, *self.batches.read(self.partners(batch), lease)), draw

    @property
    def label(self) -> Field | None:
        """The label by whose classes rows or windows are drawn; None if they are not."""
        return self.batches.label

    def prefetch(self, batches: Sequence[BatchRows]) -> None:
        """Ask the kernel to read batches from the disk before they are needed."""
        self.batches.prefetch([part for batch in batches for part in (batch, self.partners(batch))])

    def drop(self, batch: BatchRows) -> None:
        """Take what was read of a batch out of the page cache."""
        self.batches.drop(batch)
        self.batches.drop(self.partners(batch))

    def bytes(self) -> int:
        """Return about how many bytes of the disk a batch has."""
        return 2 * self.batches.bytes()

    def fetch_ahead(self, coming: Callable[[], Iterator[BatchRows]], at_once: int, ranks: int) -> Fetching | None:
        """Begin to fetch the shards of coming batches and of their partners; None if there is nothing to fetch."""

        def partners() -> Iterator[BatchRows]:
            return map(self.partners, coming())

        return AllFetching.of([self.batches.fetch_ahead(rows, at_once, 2 * ranks) for rows in (coming, partners)])

    def partners(self, batch: BatchRows) -> BatchRows:
        """Return the partners of the rows of a batch, as rows of a batch."""
        rows, runs, first = [], [], 0
        for run in batch.runs:
            part = batch.rows[first : first + run.length]
            rows.append(self._next(part, run))
            runs.append(run._replace(seed=int(keys_of(run.seed, "partner")[0]) >> 11))
            first += run.length
        return BatchRows(np.concatenate(rows), runs, ())

    def _next(self, rows: Numbers, run: Run) -> Numbers:
        """Return the next row in the circle of each row; the rows of a run are of one side."""
        side = next((side for side in self.sides if len(rows) and rows[0] in side), None)
        if side is None:
            return rows
        circle = Permutation(len(side), keys_of(run.seed, run.epoch, "partner"))
        return circle((circle.positions(rows - side.start) + 1) % len(side)) + side.start
