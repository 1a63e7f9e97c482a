"""Plain loops on all cores that copy rows of two mapped arrays into batches: the limit that loaders are compared with.

There is a loop for each way to copy, into one batch and into six in turn, which begin at a page or at an odd address: a
kernel or memcpy may be slow at one of them. A loop with six batches copies the next one
while the last is in use, as a loader does. The fastest loop is the limit: `fastest` times them in turn and names it.
"""

from __future__ import annotations

import os
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from readers.formats.shard import KERNEL
from readers.huge_pages import map_memory

BATCH, BATCHES = 16, (1, 6)
PLACES = {"": 0, ", odd": 33}
"""The byte of a page at which a batch begins, and its name."""
ROUNDS = 3
Tensors = tuple[torch.Tensor, torch.Tensor]
CopyRows = Callable[[Any, NDArray[np.int64], NDArray[Any]], object]
"""`copy(source, rows, out)` copies rows of an array into another."""


@dataclass(frozen=True)
class CopyLoop:
    """A way to copy, the number of batches in turn, and a pass over shuffled rows."""

    name: str
    batches: Callable[[], Iterable[Tensors]]


def fastest(loops: Sequence[CopyLoop], report: Callable[[str], object] = print) -> CopyLoop:
    """Return the fastest of these loops, by the medians of passes in turn; report the rate of each."""
    rates: dict[str, list[float]] = {loop.name: [] for loop in loops}
    for _ in range(ROUNDS):
        for loop in loops:
            started = time.perf_counter()
            rows = sum(len(batch[0]) for batch in loop.batches())
            rates[loop.name].append(rows / (time.perf_counter() - started))
    for name, passes in rates.items():
        report(f"  copy loop, {name:38}{statistics.median(passes):8.0f} rows/s")
    best = max(loops, key=lambda loop: statistics.median(rates[loop.name]))
    report(f"  the limit: {best.name}")
    return best


def copy_loops(columns: Sequence[Any]) -> list[CopyLoop]:
    """Return a loop for each way to copy that this installation has."""
    ways: dict[str, CopyRows] = {"NumPy": copy_by_numpy}
    if KERNEL is not None:
        ways["kernel"] = copy_by_kernel
    loops = []
    for place, offset in PLACES.items():
        memory = [[batch_memory(column, offset) for column in columns] for _ in range(max(BATCHES))]
        loops.append(CopyLoop(f"index_select into 1 batch{place}", partial(by_torch, columns, memory[0])))
        loops += [
            CopyLoop(
                f"{name} copies into {many} batch{'es' * (many > 1)}{place}",
                partial(by_threads, columns, copy, memory[:many]),
            )
            for name, copy in ways.items()
            for many in BATCHES
        ]
    return loops


def copy_by_numpy(source: NDArray[Any], rows: NDArray[np.int64], out: NDArray[Any]) -> None:
    for target, row in enumerate(rows.tolist()):
        out[target] = source[row]


def copy_by_kernel(source: NDArray[Any], rows: NDArray[np.int64], out: NDArray[Any]) -> None:
    assert KERNEL is not None
    flat, size = source.reshape(-1).view(np.uint8), source[0].nbytes
    starts, targets = (rows * size).tolist(), list(range(len(rows)))
    KERNEL.gather([(flat, starts, targets)], out.reshape(len(out), -1).view(np.uint8))


def by_torch(columns: Sequence[Any], memory: Sequence[Any]) -> Iterator[Tensors]:
    """Copy with `torch.index_select`, which has threads of its own."""
    sources, buffers = ([torch.from_numpy(array) for array in arrays] for arrays in (columns, memory))
    for rows in shuffled(len(columns[0])):
        first, second = (buffer[: len(rows)] for buffer in buffers)
        for source, part in zip(sources, (first, second), strict=True):
            torch.index_select(source, 0, torch.from_numpy(rows), out=part)
        yield first, second


def by_threads(columns: Sequence[Any], copy: CopyRows, memory: Sequence[Any]) -> Iterator[Tensors]:
    """Copy rows into the batches of `memory` in turn.

    All but the one in use are copied ahead. If there is only one, each thread copies a part of it.
    """
    threads, buffers = os.cpu_count() or 1, deque(memory)
    parts = threads if len(memory) == 1 else 1
    waiting: deque[tuple[list[Future[None]], Tensors]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for rows in shuffled(len(columns[0])):
            batch = [array[: len(rows)] for array in buffers[0]]
            buffers.rotate(-1)
            pieces = [np.array_split(each, parts) for each in (rows, *batch)]
            futures = [pool.submit(copy_all, copy, columns, *piece) for piece in zip(*pieces, strict=True)]
            first, second = map(torch.from_numpy, batch)
            waiting.append((futures, (first, second)))
            if len(waiting) == max(1, len(memory) - 1):
                yield finished(*waiting.popleft())
        while waiting:
            yield finished(*waiting.popleft())


def copy_all(copy: CopyRows, columns: Sequence[Any], rows: NDArray[np.int64], *out: NDArray[Any]) -> None:
    """Copy these rows of all columns."""
    for column, part in zip(columns, out, strict=True):
        copy(column, rows, part)


def finished(futures: Sequence[Future[None]], batch: Tensors) -> Tensors:
    for future in futures:
        future.result()
    return batch


def shuffled(count: int) -> list[NDArray[np.int64]]:
    """Return the rows of each batch."""
    order = np.random.default_rng().permutation(count)
    return [order[first : first + BATCH] for first in range(0, count, BATCH)]


def batch_memory(column: NDArray[Any], offset: int) -> NDArray[Any]:
    """Return memory for a batch, of the kind that loaders use, which begins at this offset of a page."""
    shape = (BATCH, *column.shape[1:])
    size = int(np.prod(shape)) * column.itemsize
    return np.frombuffer(map_memory(size + offset), np.uint8, size, offset).view(column.dtype).reshape(shape)
