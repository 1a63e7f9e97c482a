"""Grain over ArrayRecord: records of one pair, uncompressed, read by threads of one process or by two processes.

ArrayRecord's README: `group_size:1` for random access. Grain's docs: `to_iter_dataset` reads ahead with threads,
`mp_prefetch` in processes.
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

from contenders import BATCH, WORKERS, Tensors, Ways
from contenders.pairs import SIDE, Pairs

IMAGE = SIDE * SIDE * 3


def write(pairs: Pairs, out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    writer = ArrayRecordWriter(str(out), "group_size:1,uncompressed")
    for row in range(len(pairs)):
        writer.write(pairs.images[row].tobytes() + pairs.labels[row].tobytes())
    writer.close()


def ways(out: Path) -> Ways:
    source = grain.sources.ArrayRecordDataSource(str(out))
    return {f"{WORKERS} threads": partial(parts, source)}


def parts(source: Any) -> Iterable[Tensors]:
    seed = int(torch.randint(2**31, ()))
    options = grain.ReadOptions(num_threads=WORKERS, prefetch_buffer_size=2 * WORKERS)
    rows = grain.MapDataset.source(source).shuffle(seed).map(decoded).batch(BATCH)
    return ((torch.from_numpy(images), torch.from_numpy(labels)) for images, labels in rows.to_iter_dataset(options))


def decoded(record: bytes) -> tuple[Any, Any]:
    image, label = np.split(np.frombuffer(record, np.uint8), [IMAGE])
    return image.reshape(SIDE, SIDE, 3), label.reshape(SIDE, SIDE)
