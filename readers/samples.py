"""`SampleReader`: rows as samples, tensors in memory of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from readers.augmentation import Augmentation
from readers.batch_memory import BatchMemory
from readers.collate import AnySample, PlainSample, Sample, SamplesOfBatch
from readers.contract.errors import RequestError
from readers.contract.fields import IMAGE, LABEL, VOLUME, Sides
from readers.crop import CenterCrop, CropAndFlip, RandomCrop, drawn_row, window_of
from readers.row_reader import RowReader
from readers.statistics import MeanStd
from readers.tone import BatchTones
from readers.windows import BatchWindows, whole_numbers

IDLE = 4
"""Blocks of memory of samples that are kept for the next samples."""

Transform = Callable[..., Any]
"""Takes the fields of a sample. Its result is delivered in place of the sample."""


class SampleReader:
    """Reads rows as samples: `Sample` if the fields are image and label, else `PlainSample`."""

    def __init__(self, reader: RowReader, mean_std: Callable[[], MeanStd | None]) -> None:
        self._reader = reader
        self._mean_std = mean_std
        self._memory = BatchMemory(IDLE)
        names = tuple(delivered.field.name for delivered in reader.fields)
        self._kind: type[Sample | PlainSample] = Sample if names == (IMAGE, LABEL) else PlainSample

    def one(self, row: int, windows: BatchWindows | None = None, tones: BatchTones | None = None) -> AnySample:
        """Return a row of the pack as a sample, or the window of it."""
        arrays = self._reader.read([row], self._memory.lease, windows, tones)
        parts = [torch.from_numpy(array[0, ...]) for array in arrays]
        if tones is not None and tones.tone.bits_of is not None:
            names = [delivered.field.name for delivered in self._reader.fields]
            number = names.index(tones.tone.bits_of)
            parts[number] = parts[number].view(torch.bfloat16)
        return self._kind._make(parts)

    def many(self, rows: list[int]) -> Sequence[AnySample]:
        """Return rows of the pack in one block of memory, or in one block each if they are native."""
        if self._reader.native:
            return [self.one(row) for row in rows]
        if not rows:
            return []
        arrays = self._reader.read(rows, self._memory.lease)
        return SamplesOfBatch(self._kind._make(map(torch.from_numpy, arrays)))

    def window(self, row: int, start: Sequence[int], size: Sides) -> AnySample:
        """Return a window of a row as a sample: it begins at `start`, which may be outside of the row."""
        starts, sides = whole_numbers(start), whole_numbers(size)
        if not len(starts) == len(sides) == len(self._reader.sides) or min(sides) < 1:
            expected = (
                "(depth, top, left), (D, H, W)" if len(self._reader.sides) == len(VOLUME) else "(top, left), (H, W)"
            )
            raise RequestError(f"window(…, {start}, {size}): expected {expected}")
        return self.one(row, BatchWindows(sides, 0, [list(starts)], [0]))

    def transformed(self, transform: Transform, rows: list[int]) -> list[Any]:
        """Return what a transform makes of rows of the pack. Our own ones read no more of a row than they need."""
        if isinstance(transform, Augmentation):
            return self._augmented(transform, rows)
        if not isinstance(transform, CenterCrop) or type(transform) not in (CenterCrop, RandomCrop):
            return [self._transformed(transform, sample) for sample in self.many(rows)]
        CropAndFlip.of(transform, False, False, self._reader.sides)
        sizes = self._reader.sizes(rows)
        return [tuple(self.one(row, window_of(transform, size))) for row, size in zip(rows, sizes, strict=True)]

    def _augmented(self, augmentation: Augmentation, rows: Sequence[int]) -> list[AnySample]:
        """Return rows as a loader would deliver them, each for a seed that PyTorch draws."""
        cut = augmentation.cut(self._reader.sides) or CropAndFlip(None, False)
        tone = augmentation.tone([delivered.field for delivered in self._reader.fields], self._mean_std())
        samples = []
        for row in rows:
            drawn = drawn_row()
            windows = cut.of_one(*drawn, self._reader.sizes([row])[0])
            samples.append(self.one(row, windows, None if tone is None else tone.of_batch(*drawn)))
        return samples

    def _transformed(self, transform: Transform, sample: AnySample) -> Any:
        """Return what a transform makes of a sample. Crops need to know what each field is padded with."""
        if isinstance(transform, CenterCrop):
            CropAndFlip.of(transform, False, False, self._reader.sides)
            return transform(*sample, fills=[delivered.fill for delivered in self._reader.fields])
        return transform(*sample)
