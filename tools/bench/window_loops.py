"""Plain loops on all cores that copy a random window of each mapped picture: the limit of loaders that crop."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.copy_loops import BATCHES, CopyLoop, CopyRows, batch_memory, by_threads
from readers.windows import KERNEL


def window_loops(columns: Sequence[Sequence[NDArray[Any]]], side: int, passes: int) -> list[CopyLoop]:
    """Return a loop for each way to copy a random window of each picture. One pass would end before it is under way."""
    ways: dict[str, CopyRows] = {"NumPy": windows_by_numpy}
    if KERNEL is not None:
        ways["kernel"] = windows_by_kernel
    shapes = [np.empty((1, *pictures[0].shape[:-2], side, side), np.uint8) for pictures in columns]
    memory = [[batch_memory(each, 0) for each in shapes] for _ in range(max(BATCHES))]
    return [
        CopyLoop(
            f"{name} copies into {many} batch{'es' * (many > 1)}",
            repeated(partial(by_threads, columns, copy, memory[:many]), passes),
        )
        for name, copy in ways.items()
        for many in BATCHES
    ]


def windows_by_numpy(pictures: Sequence[NDArray[Any]], rows: NDArray[np.int64], out: NDArray[Any]) -> None:
    for target, (row, (top, left)) in enumerate(zip(rows, starts_of_windows(pictures, rows, out), strict=True)):
        out[target] = pictures[row][..., top : top + out.shape[-2], left : left + out.shape[-1]]


def windows_by_kernel(pictures: Sequence[NDArray[Any]], rows: NDArray[np.int64], out: NDArray[Any]) -> None:
    assert KERNEL is not None
    windows = [
        (pictures[row].reshape(-1), (0, *pictures[row].shape[-2:], target, *start, False))
        for target, (row, start) in enumerate(zip(rows, starts_of_windows(pictures, rows, out), strict=True))
    ]
    KERNEL.copy_all(windows, out if out.ndim == 4 else out[:, None])


def starts_of_windows(pictures: Sequence[NDArray[Any]], rows: NDArray[np.int64], out: NDArray[Any]) -> list[list[int]]:
    """Return where a random window of each picture begins; all pictures have the same size."""
    spare = np.subtract(pictures[0].shape[-2:], out.shape[-2:])
    starts: list[list[int]] = np.random.default_rng().integers(0, spare + 1, (len(rows), 2)).tolist()
    return starts


def repeated(batches: Callable[[], Iterable[Any]], passes: int) -> Callable[[], Iterable[Any]]:
    """Return several passes as one."""
    return lambda: chain.from_iterable(batches() for _ in range(passes))


def mapped_pictures(out: Path, size: tuple[int, int]) -> tuple[list[Any], list[Any]]:
    """Return the images and the labels of a pack in npy, whose sizes are native and all the same, as mapped views."""
    parts: tuple[list[Any], list[Any]] = ([], [])
    for part, field, shape in zip(parts, ("image", "label"), ((-1, 3, *size), (-1, *size)), strict=True):
        for path in sorted((out / "shards").glob(f"*.{field}.npy")):
            part.extend(np.load(path, mmap_mode="r").view(np.ndarray).reshape(shape))
    return parts


def read_all(pictures: Iterable[list[Any]]) -> int:
    """Read every page of these pictures."""
    return sum(int(picture.reshape(-1)[:: mmap.PAGESIZE].sum()) for part in pictures for picture in part)
