"""FFCV: a .beton file with raw pixels, read by compiled threads into reused memory.

Its tuning guide, for a data set that fits in memory: `os_cache=True`, `OrderOption.RANDOM`, raw rather than JPEG. Its
writer divides an indexable data set among `num_workers` processes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from ffcv.fields import NDArrayField, RGBImageField
from ffcv.fields.decoders import NDArrayDecoder, SimpleRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import ToTensor
from ffcv.writer import DatasetWriter

from bench.libraries import BATCH, WORKERS, Loaders
from bench.pairs import ArrayPairs

CHUNK = 100
"""The default number of rows that a worker of the writer takes at a time. With few rows it is less."""


def write(rows: ArrayPairs, out: Path, workers: int = 1) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    label = NDArrayField(dtype=np.dtype(np.uint8), shape=(rows.side, rows.side))
    fields = {"image": RGBImageField(write_mode="raw"), "label": label}
    chunk = max(1, min(CHUNK, len(rows) // (8 * workers)))
    DatasetWriter(str(out), fields, num_workers=workers).from_indexed_dataset(rows, chunksize=chunk)


def loaders(out: Path) -> Loaders:
    loader = Loader(
        str(out),
        batch_size=BATCH,
        num_workers=WORKERS,
        os_cache=True,
        order=OrderOption.RANDOM,
        drop_last=False,
        pipelines={"image": [SimpleRGBImageDecoder(), ToTensor()], "label": [NDArrayDecoder(), ToTensor()]},
    )
    return {f"{WORKERS} threads": lambda: loader}
