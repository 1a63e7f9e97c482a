"""Grain over ArrayRecord: records of one pair, uncompressed, read ahead by threads.

ArrayRecord's README: `group_size:1` for random access. Grain's docs: `to_iter_dataset` reads ahead, by default with 16
threads and 500 rows, which was as fast as 2 threads or faster. `mp_prefetch` starts new processes for each pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import grain
import numpy as np
import torch
from array_record.python.array_record_module import ArrayRecordWriter
from scenes.squares import SIDE

from bench.libraries import BATCH, Loaders, Tensors
from bench.pairs import Pairs

OPTIONS = grain.ReadOptions()
IMAGE = SIDE * SIDE * 3


def write(pairs: Pairs, out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    writer = ArrayRecordWriter(str(out), "group_size:1,uncompressed")
    for row in range(len(pairs)):
        writer.write(pairs.images[row].tobytes() + pairs.labels[row].tobytes())
    writer.close()


def loaders(out: Path) -> Loaders:
    source = grain.sources.ArrayRecordDataSource(str(out))
    return {f"{OPTIONS.num_threads} threads": partial(parts, source)}


def parts(source: Any) -> Iterable[Tensors]:
    seed = int(torch.randint(2**31, ()))
    rows = grain.MapDataset.source(source).shuffle(seed).map(decoded).to_iter_dataset(OPTIONS).batch(BATCH)
    return ((torch.from_numpy(images), torch.from_numpy(labels)) for images, labels in rows)


def decoded(record: bytes) -> tuple[Any, Any]:
    image, label = np.split(np.frombuffer(record, np.uint8), [IMAGE])
    return image.reshape(SIDE, SIDE, 3), label.reshape(SIDE, SIDE)
