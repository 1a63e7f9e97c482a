"""`PackBatches`: batches of rows of several packs, read into one array for each field."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readers.batch_memory import Lease
from readers.batch_reader import BatchReader
from readers.class_change import ClassChange
from readers.collate import different_sizes
from readers.contract.classes import ClassTable
from readers.contract.errors import RequestError
from readers.contract.fields import LABEL, Field, classes_field
from readers.contract.kinds import ONEHOT
from readers.contract.onehot import expand
from readers.drawn import BatchDraw
from readers.epoch import BatchRows, Run
from readers.fetch_ahead import AllFetching, Fetching
from readers.row_reader import as_series
from readers.statistics import MeanStd
from readers.tone import Tone


class PackRows(NamedTuple):
    """The rows of a batch that are in one pack: the number of the pack, their places in the batch, the rows there."""

    pack: int
    places: slice
    rows: BatchRows


class BatchArrays:
    """The arrays of a batch, which several readers fill: each leases its rows of every array, in one order of fields.

    Labels of another dtype than `dtype` get memory of their own, because they are changed before they are delivered.
    """

    def __init__(self, lease: Lease, rows: int, labels: Sequence[int], dtype: str) -> None:
        self.arrays: list[NDArray[Any]] = []
        self._lease, self._rows, self._labels, self._dtype = lease, rows, labels, dtype

    def lease_of(self, places: slice) -> Lease:
        """Return the lease of the reader of these rows."""
        fields = itertools.count()

        def lease(shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
            field = next(fields)
            if field == len(self.arrays):
                delivered = self._dtype if field in self._labels else dtype
                self.arrays.append(self._lease((self._rows, *shape[1:]), delivered))
            whole = self.arrays[field]
            if whole.shape[1:] != shape[1:]:
                sizes = [array.shape[-2:] for array in (whole, np.empty((0, *shape[1:])))]
                raise RequestError(
                    f"a batch has pictures of {different_sizes(sizes)} from several packs: give loader() crop=(H, W)"
                )
            return whole[places] if whole.dtype == dtype else np.empty(shape, dtype)

        return lease


@dataclass(frozen=True)
class PackBatches:
    """The reading of batches of several packs. Rows count on from pack to pack, and a batch has them pack by pack."""

    packs: tuple[BatchReader, ...]
    firsts: tuple[int, ...]
    """The first row of each pack."""
    changes: tuple[ClassChange | None, ...]
    """The change of the labels of each pack."""
    classes: ClassTable
    """The classes of the delivered labels."""
    labels: str
    """The form of the delivered labels."""
    size: int
    mean_std: MeanStd | None
    counts: bool = False
    """True if the last part of a batch is the number of rows of each pack."""

    def __post_init__(self) -> None:
        if self.size < 1:
            raise RequestError(f"batch_size={self.size}: expected a number from 1 on")

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields that the parts of a batch are."""
        return tuple(
            replace(classes_field(LABEL, self.labels, self.classes, field.size), optional=field.optional)
            if field.name == LABEL
            else field
            for field in self.packs[0].fields
        )

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts of a batch."""
        return tuple(field.name for field in self.fields)

    @property
    def tone(self) -> Tone | None:
        """The colours and numbers that images of all packs get while they are read."""
        return self.packs[0].tone

    @property
    def on_device(self) -> bool:
        return False

    @property
    def steps(self) -> tuple[str, ...]:
        """The options of a loader that cost the CPU more than a copy."""
        return self.packs[0].steps

    @property
    def unpacks(self) -> bool:
        """True if a field of a pack is not stored raw."""
        return any(pack.unpacks for pack in self.packs)

    def with_stored_labels(self) -> tuple[PackBatches, int | None]:
        """Return batches whose labels are indices, and the planes to expand them into, or None."""
        if self.labels != ONEHOT or not self._label_numbers:
            return self, None
        return replace(self, labels="index"), len(self.classes)

    def read(self, batch: BatchRows, lease: Lease) -> tuple[NDArray[Any], ...]:
        """Return a batch in memory from `lease`."""
        labels = self._label_numbers
        out = BatchArrays(lease, len(batch.rows), labels, self.classes.index_dtype)
        for pack, places, rows in self._by_pack(batch):
            arrays, change = self.packs[pack].read(rows, out.lease_of(places)), self.changes[pack]
            for number in labels:
                if change is not None:
                    change.apply(arrays[number], out.arrays[number][places])
        for number in labels if self.labels == ONEHOT else ():
            out.arrays[number] = self._planes(out.arrays[number], lease)
        parts = tuple(map(as_series, self.fields, out.arrays))
        return (*parts, self._counts(batch)) if self.counts else parts

    def drawn(self, batch: BatchRows, lease: Lease, counts: bool = False) -> tuple[tuple[Any, ...], BatchDraw]:
        """Return the same, and how many rows it has: classes are counted of one pack alone."""
        return self.read(batch, lease), BatchDraw(len(batch.rows))

    @property
    def label(self) -> None:
        """No label: classes are counted of one pack alone."""
        return None

    @property
    def each_mean_std(self) -> list[MeanStd | None]:
        """Mean and standard deviation of the training split of each pack."""
        return [pack.mean_std for pack in self.packs]

    def _counts(self, batch: BatchRows) -> NDArray[np.int64]:
        counts = np.zeros(len(self.packs), np.int64)
        for part in self._by_pack(batch):
            counts[part.pack] = len(part.rows.rows)
        return counts

    def prefetch(self, batches: Sequence[BatchRows]) -> None:
        """Ask the kernel to read batches from the disk before they are needed."""
        rows = [part for batch in batches for part in self._by_pack(batch)]
        for number, pack in enumerate(self.packs):
            mine = [part.rows for part in rows if part.pack == number]
            if mine:
                pack.prefetch(mine)

    def drop(self, batch: BatchRows) -> None:
        """Take what was read of a batch out of the page cache."""
        for pack, _, rows in self._by_pack(batch):
            self.packs[pack].drop(rows)

    def bytes(self) -> int:
        """Return about how many bytes of the disk a batch has, at most."""
        return max(pack.bytes() for pack in self.packs)

    def fetch_ahead(self, coming: Callable[[], Iterator[BatchRows]], at_once: int, ranks: int) -> Fetching | None:
        """Begin to fetch the shards of coming batches of every pack; None if there is nothing to fetch."""
        share = ranks * len(self.packs)

        def rows_of(number: int) -> Callable[[], Iterator[BatchRows]]:
            return lambda: (self._rows_in(batch, number) for batch in coming())

        packs = enumerate(self.packs)
        return AllFetching.of([pack.fetch_ahead(rows_of(number), at_once, share) for number, pack in packs])

    @property
    def _label_numbers(self) -> list[int]:
        """The numbers of the fields that are labels."""
        return [number for number, field in enumerate(self.packs[0].fields) if field.name == LABEL]

    def _by_pack(self, batch: BatchRows) -> list[PackRows]:
        """Return the rows of a batch by pack, without the packs that have none in it."""
        packs = np.searchsorted(self.firsts, batch.rows, "right") - 1
        ends = np.searchsorted(packs, np.arange(len(self.packs)), "right").tolist()
        return [part for part in self._parts(batch, ends) if len(part.rows.rows)]

    def _parts(self, batch: BatchRows, ends: Sequence[int]) -> Iterator[PackRows]:
        begin, runs = 0, list(batch.runs)
        for number, end in enumerate(ends):
            mine: list[Run] = []
            while sum(run.length for run in mine) < end - begin:
                mine.append(runs.pop(0))
            yield PackRows(number, slice(begin, end), BatchRows(batch.rows[begin:end] - self.firsts[number], mine, ()))
            begin = end

    def _rows_in(self, batch: BatchRows, pack: int) -> BatchRows:
        """Return the rows of a batch that are in a pack."""
        none = BatchRows(batch.rows[:0], (), ())
        return next((part.rows for part in self._by_pack(batch) if part.pack == pack), none)

    def _planes(self, index: NDArray[Any], lease: Lease) -> NDArray[Any]:
        planes = lease((len(index), len(self.classes), *index.shape[1:]), "|u1")
        for numbers, out in zip(index, planes, strict=True):
            expand(numbers, len(self.classes), out)
        return planes
