"""`Batches`: how the batches of a data set are read; `ReadAhead`: how many are read ahead of use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from readers.batch_memory import Lease
from readers.contract.errors import RequestError
from readers.contract.fields import LABEL, Field
from readers.crop import CropAndFlip, RandomCrop
from readers.drawn import BatchDraw, pixels_of
from readers.epoch import BatchRows
from readers.fetch_ahead import Fetching, fetch_ahead
from readers.holding import HeldRows, HeldWindows, Holding
from readers.machine import usable_cores
from readers.on_device import read_raw
from readers.row_ranges import RowRanges
from readers.row_reader import RowReader
from readers.row_weights import RowWeights
from readers.statistics import MeanStd
from readers.tone import BatchTones, Tone


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
    tone: Tone | None
    on_device: bool
    """True if windows are made on the device: a batch is a `RawBatch`."""
    training: Callable[[], MeanStd | None]
    """Returns mean and standard deviation of the training split's images; None if it is not clear which split that
    is."""
    weights: RowWeights | None = None
    holding: Holding | None = None

    def __post_init__(self) -> None:
        if self.size < 1:
            raise RequestError(f"batch_size={self.size}: expected a number from 1 on")

    @property
    def mean_std(self) -> MeanStd | None:
        """The mean and standard deviation of the training split's images."""
        return self.training()

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields that the parts of a batch are."""
        return tuple(delivered.field for delivered in self.reader.fields)

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts of a batch: fields."""
        return tuple(field.name for field in self.fields)

    @property
    def unpacks(self) -> bool:
        """True if a field is not stored raw."""
        return self.reader.unpacks

    def with_stored_labels(self) -> tuple[Batches, int | None]:
        """Return batches whose labels are indices if they are stored so, and the planes to expand them into, or
        None."""
        label = next((delivered for delivered in self.reader.fields if delivered.field.name == LABEL), None)
        if label is None or not label.expands:
            return self, None
        return replace(self, reader=self.reader.as_stored(LABEL)), label.field.numbers

    def fetch_ahead(self, coming: Callable[[], Iterator[BatchRows]], at_once: int, ranks: int) -> Fetching | None:
        """Begin to fetch the shards of coming batches; None if there is nothing to fetch."""
        return fetch_ahead(self.reader.pack, self.rows.ranges, map(self.in_pack, coming()), at_once, ranks)

    def read(self, batch: BatchRows, lease: Lease) -> tuple[Any, ...]:
        """Return a batch in memory from `lease`: arrays, or a `RawBatch` for the device."""
        return self.drawn(batch, lease)[0]

    def drawn(self, batch: BatchRows, lease: Lease, counts: bool = False) -> tuple[tuple[Any, ...], BatchDraw]:
        """Return the same, and how it was drawn; with `counts` also the pixels of its classes."""
        held = self.held(batch)
        in_pack = held.rows.tolist()
        windows, again, above = self._windows(batch, held)
        draw, reading = (
            BatchDraw(len(in_pack), held.classes, again, above),
            (in_pack, lease, windows, self._tones(batch)),
        )
        if self.on_device:
            return read_raw(self.reader, *reading), draw
        arrays = self.reader.read(*reading)
        return arrays, draw._replace(pixels=self._counted(arrays) if counts else None)

    def _tones(self, batch: Any) -> BatchTones | None:
        return None if self.tone is None else self.tone.of_batch(batch.rows, batch.runs)

    @property
    def label(self) -> Field | None:
        """The label by whose classes rows or windows are drawn; None if they are not."""
        if self.holding is not None:
            return self.holding.index.field
        return None if self.weights is None else self.weights.field

    def _counted(self, arrays: Sequence[NDArray[Any]]) -> NDArray[np.int64] | None:
        """Return the pixels of each class in each window; None if rows are not drawn by classes that are read."""
        for delivered, array in zip(self.reader.fields, arrays, strict=True):
            if self.label is not None and delivered.field.name == self.label.name:
                return pixels_of(delivered.field, array)
        return None

    @property
    def steps(self) -> tuple[str, ...]:
        """The options of a loader that cost the CPU more than a copy."""
        if self.on_device:
            return ()
        crop, tone = self.crop, self.tone
        options = {
            "scale=": crop is not None and isinstance(crop.crop, RandomCrop) and crop.crop.scales,
            "turn=": crop is not None and crop.turn,
            "colour=": tone is not None and tone.colour is not None,
            "normalize=": tone is not None and tone.mean_std is not None,
            "dtype=": tone is not None and tone.numbers is not None,
        }
        return tuple(name for name, is_used in options.items() if is_used)

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
        """Return the windows of a batch, if it is cropped, flipped or has tones."""
        crop = self.crop or (CropAndFlip(None, False) if self.tone is not None and not self.reader.native else None)
        if crop is None:
            return HeldWindows(None)
        sizes = self.reader.sizes(held.rows.tolist())
        if self.holding is None:
            return HeldWindows(crop.windows(batch.rows, batch.runs, sizes))
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
        return self.size * self.reader.row_bytes(self.rows[0], window) if len(self.rows) else 0
