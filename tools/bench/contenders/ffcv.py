"""FFCV: a .beton file with raw pixels, read by compiled threads into memory that it uses again.

Its tuning guide, for a data set that fits in memory: `os_cache=True`, `OrderOption.RANDOM`, raw rather than JPEG.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from ffcv.fields import NDArrayField, RGBImageField
from ffcv.fields.decoders import NDArrayDecoder, SimpleRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import ToTensor
from ffcv.writer import DatasetWriter

from bench.contenders import BATCH, WORKERS, Ways
from bench.contenders.pairs import SIDE, Pairs


class Rows:
    """What its writer takes."""

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, row: int) -> tuple[Any, Any]:
        return np.array(self.pairs.images[row]), np.array(self.pairs.labels[row])


def write(pairs: Pairs, out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    label = NDArrayField(dtype=np.dtype(np.uint8), shape=(SIDE, SIDE))
    fields = {"image": RGBImageField(write_mode="raw"), "label": label}
    DatasetWriter(str(out), fields, num_workers=1).from_indexed_dataset(Rows(pairs))


def ways(out: Path) -> Ways:
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
