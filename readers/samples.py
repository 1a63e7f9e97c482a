"""`SampleReader`: rows as samples, tensors in memory of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from readers.batch_memory import BatchMemory
from readers.collate import AnySample, PlainSample, Sample, SamplesOfBatch
from readers.contract.fields import IMAGE, LABEL
from readers.crop import CenterCrop, CropAndFlip
from readers.row_reader import RowReader

IDLE = 4
"""Blocks of memory of samples that are kept for the next samples."""

Transform = Callable[..., Any]
"""Takes the fields of a sample. Its result is delivered in place of the sample."""


class SampleReader:
    """Reads rows as samples: `Sample` if the fields are image and label, else `PlainSample`."""

    def __init__(self, reader: RowReader) -> None:
        self._reader = reader
        self._memory = BatchMemory(IDLE)
        names = tuple(each.field.name for each in reader.fields)
        self._kind: type[Sample | PlainSample] = Sample if names == (IMAGE, LABEL) else PlainSample

    def one(self, row: int) -> AnySample:
        """Return a row of the pack as a sample."""
        arrays = self._reader.read([row], self._memory.lease)
        return self._kind._make([torch.from_numpy(array[0, ...]) for array in arrays])

    def many(self, rows: list[int]) -> Sequence[AnySample]:
        """Return rows of the pack in one block of memory, or in one block each if they are native."""
        if self._reader.native:
            return [self.one(row) for row in rows]
        if not rows:
            return []
        arrays = self._reader.read(rows, self._memory.lease)
        return SamplesOfBatch(self._kind._make(map(torch.from_numpy, arrays)))

    def transformed(self, transform: Transform, sample: AnySample) -> Any:
        """Return what a transform makes of a sample. Our crops need to know what each field is padded with."""
        if isinstance(transform, CenterCrop):
            CropAndFlip.of(transform, False, self._reader.sides)
            return transform(*sample, fills=[each.fill for each in self._reader.fields])
        return transform(*sample)
