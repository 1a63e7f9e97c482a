"""`CopyLoop`: rows copied out of the map on all cores, and nothing else: what memory gives."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.batch_memory import Slots
from readers.pack import Pack

MOST_SHARDS, MOST_ROWS = 64, 16384
"""Rows of no more shards are copied: each open map costs a descriptor."""

Row = list[NDArray[Any]]
"""Its image and its label."""


class CopyLoop:
    """Each thread copies rows of its own, image and label as they are stored, into memory that it uses again and again:
    a batch, of all threads together. Of larger pictures it copies a window in the middle, where loaders crop."""

    def __init__(self, pack: Pack, rows: Sequence[int], crop: tuple[int, int] | None, threads: int, batch: int) -> None:
        views = _views(pack, rows, crop)
        self._shares = [views[number::threads] or views for number in range(threads)]
        self._rooms = [_room(views, max(1, batch // threads)) for _ in range(threads)]

    def rate(self, seconds: float) -> float:
        """Samples a second, of all threads together."""
        with ThreadPoolExecutor(len(self._shares)) as pool:
            return sum(pool.map(lambda share, room: _rate(share, room, seconds), self._shares, self._rooms))


def _room(views: Sequence[Row], rows: int) -> list[Row]:
    """Memory for so many rows, each as large as the largest: a batch's, as a loader has it."""
    slots, parts = Slots(0), list(zip(*views, strict=True))
    batch = [slots.lease((rows, max(one.size for one in of)), of[0].dtype.str) for of in parts]
    return [list(row) for row in zip(*batch, strict=True)]


def _views(pack: Pack, rows: Sequence[int], crop: tuple[int, int] | None) -> list[Row]:
    """What is copied of each row, as it lies in the map."""
    places = [pack.table.locate(row) for row in rows[:MOST_ROWS]]
    numbers = set(list(dict.fromkeys(number for number, _ in places))[:MOST_SHARDS])
    shards = {number: pack.shard(number) for number in numbers}
    return [
        [_middle(shards[number].pixels(field, place), crop) for field in pack.manifest.fields]
        for number, place in places
        if number in numbers
    ]


def _middle(pixels: NDArray[Any], size: tuple[int, int] | None) -> NDArray[Any]:
    if size is None:
        return pixels
    top, left = (max(0, (have - want) // 2) for have, want in zip(pixels.shape[-2:], size, strict=True))
    return pixels[..., top : top + size[0], left : left + size[1]]


def _rate(rows: Sequence[Row], room: Sequence[Row], seconds: float) -> float:
    """Of one thread."""
    started, done = time.perf_counter(), 0
    for parts, memory in zip(cycle(rows), cycle(room), strict=False):
        for part, there in zip(parts, memory, strict=True):
            np.copyto(there[: part.size].reshape(part.shape), part)
        done += 1
        if (now := time.perf_counter()) >= started + seconds:
            break
    return done / (now - started)
