"""SPDL: a pipeline of threads. It has no format of its own, so there is a file for each array, and one for all rows.

Its docs: `load_npy` is more efficient than `numpy.load`, and takes no copy of the bytes of a file; functions that
release the GIL run in the threads of a `Pipeline`, with a concurrency of their own. Reading and stacking both do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import spdl.io
import torch
from spdl.pipeline import PipelineBuilder

from bench.libraries import WORKERS, Loaders, Tensors, shuffled
from bench.pairs import Pairs, save_rows

NAMES = ("image", "label")
READY = 2
"""Batches that wait for the training."""


def write(pairs: Pairs, out: Path) -> None:
    save_rows(pairs, out)
    for name, column in zip(NAMES, (pairs.images, pairs.labels), strict=True):
        np.save(out / f"{name}.npy", column)


def loaders(out: Path) -> Loaders:
    columns = [np.load(out / f"{name}.npy", mmap_mode="r") for name in NAMES]
    files = [sorted((out / name).iterdir()) for name in NAMES]
    from_files, mapped = partial(read_files, files), partial(read_mapped, columns)
    rows = len(columns[0])
    ways = {"files": from_files, "mapped": mapped}
    return {f"{WORKERS} threads, {name}": partial(batches, way, rows) for name, way in ways.items()}


def batches(read: Callable[[list[int]], Tensors], rows: int) -> Iterator[Tensors]:
    """Yield the batches of a pass, which a pipeline makes."""
    builder = PipelineBuilder[Any, Any]().add_source(shuffled(rows)).pipe(read, concurrency=WORKERS).add_sink(READY)
    pipeline = builder.build(num_threads=WORKERS)
    with pipeline.auto_stop():
        yield from pipeline


def read_files(files: list[list[Path]], rows: list[int]) -> Tensors:
    image, label = ([spdl.io.load_npy(column[row].read_bytes()) for row in rows] for column in files)
    return torch.from_numpy(np.stack(image)), torch.from_numpy(np.stack(label))


def read_mapped(columns: list[Any], rows: list[int]) -> Tensors:
    image, label = (torch.from_numpy(column[rows]) for column in columns)
    return image, label
