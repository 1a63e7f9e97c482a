"""`CopyLoop`: rows copied out of the map on all cores, and nothing else: what memory gives."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.pack import Pack

MOST_SHARDS, MOST_ROWS = 64, 16384
"""Rows of no more shards are copied: each open map costs a descriptor."""
ROOM = 16
"""The memory is a batch of so many rows, of all threads together."""


class CopyLoop:
    """Each thread copies rows of its own, image and label as they are stored, into memory that it uses again and again;
    of larger pictures only a window in the middle, where loaders crop."""

    def __init__(self, pack: Pack, rows: Sequence[int], crop: tuple[int, int] | None, threads: int) -> None:
        self._threads = threads
        self._rows = _views(pack, rows, crop)

    def rate(self, seconds: float) -> float:
        """Samples a second, of all threads together."""
        with ThreadPoolExecutor(self._threads) as pool:
            shares = [self._rows[number :: self._threads] or self._rows for number in range(self._threads)]
            room = max(1, ROOM // self._threads)
            return sum(pool.map(lambda share: _rate(share, room, seconds), shares))


def _views(pack: Pack, rows: Sequence[int], crop: tuple[int, int] | None) -> list[list[NDArray[Any]]]:
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


def _rate(rows: Sequence[Sequence[NDArray[Any]]], room: int, seconds: float) -> float:
    """Of one thread. Where rows have many sizes, there is memory for the largest."""
    sizes = [max(part.size for part in parts) for parts in zip(*rows, strict=True)]
    rooms = cycle(
        [[np.empty(size, part.dtype) for size, part in zip(sizes, rows[0], strict=True)] for _ in range(room)]
    )
    started = time.perf_counter()
    for done, (parts, memory) in enumerate(zip(cycle(rows), rooms, strict=False), 1):  # noqa: B007 - it is used
        for part, there in zip(parts, memory, strict=True):
            np.copyto(there[: part.size].reshape(part.shape), part)
        if (now := time.perf_counter()) >= started + seconds:
            break
    return done / (now - started)
