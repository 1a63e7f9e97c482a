"""`CopyLoop`: copy rows out of the memory map on all cores, the upper limit of every loader."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.batch_memory import BatchMemory
from readers.contract.fields import Sides
from readers.pack import Pack
from readers.windows import centered, overlap, spare_pixels

MOST_SHARDS, MOST_ROWS = 64, 16384
"""Limits of the rows to copy: each open map of a shard costs a file descriptor."""

RowArrays = list[NDArray[Any]]
"""The fields of a row that are read."""


class CopyLoop:
    """Copy the stored fields that are read, each thread its own rows, into the memory of one batch, again and again.

    With a crop, only a window in the middle of each row is copied, as large as the one that loaders cut out.
    """

    def __init__(self, pack: Pack, rows: Sequence[int], crop: Sides | None, threads: int, batch: int) -> None:
        stored = _stored_rows(pack, rows, crop)
        self._shares = [stored[number::threads] or stored for number in range(threads)]
        self._buffers = [_buffers(stored, max(1, batch // threads)) for _ in range(threads)]

    def rate(self, seconds: float) -> float:
        """Return the samples per second of all threads together."""
        with ThreadPoolExecutor(len(self._shares)) as pool:
            return sum(pool.map(lambda share, buffers: _rate(share, buffers, seconds), self._shares, self._buffers))


def _buffers(stored: Sequence[RowArrays], rows: int) -> list[RowArrays]:
    """Return memory for this number of rows, each as large as the largest, from the allocator that loaders use."""
    memory, columns = BatchMemory(0), list(zip(*stored, strict=True))
    batch = [memory.lease((rows, max(part.size for part in column)), column[0].dtype.str) for column in columns]
    return [list(row) for row in zip(*batch, strict=True)]


def _stored_rows(pack: Pack, rows: Sequence[int], crop: Sides | None) -> list[RowArrays]:
    """Return views of the memory map."""
    located = [pack.table.locate(row) for row in rows[:MOST_ROWS]]
    numbers = set(list(dict.fromkeys(number for number, _ in located))[:MOST_SHARDS])
    shards = {number: pack.shard(number) for number in numbers}
    return [
        [middle(shards[number].pixels(field, index), crop) for field in pack.fields]
        for number, index in located
        if number in numbers
    ]


def middle(pixels: NDArray[Any], size: Sides | None) -> NDArray[Any]:
    """Return a view of the window in the middle of a picture, as much of it as the picture has."""
    if size is None:
        return pixels
    starts = centered(spare_pixels(pixels.shape[-len(size) :], size)).tolist()
    part, _ = overlap(pixels.shape, size, starts)
    return pixels[part]


def _rate(rows: Sequence[RowArrays], buffers: Sequence[RowArrays], seconds: float) -> float:
    """Return the samples per second of one thread."""
    started, done = time.perf_counter(), 0
    for row, buffer in zip(cycle(rows), cycle(buffers), strict=False):
        for source, target in zip(row, buffer, strict=True):
            np.copyto(target[: source.size].reshape(source.shape), source)
        done += 1
        if (now := time.perf_counter()) >= started + seconds:
            break
    return done / (now - started)
