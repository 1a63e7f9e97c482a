"""Lance: its own columnar files, read by its own threads.

Its docs: random access is `take`, of all rows of a batch at once, as `SafeLanceDataset.__getitems__` does, too.
`LanceDataset` reads ahead in its own threads. With a randomized `ShardedBatchSampler` it delivers batches of
neighbouring rows in random order, which is faster and a weaker shuffle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import torch
from lance.sampler import ShardedBatchSampler
from lance.torch.data import LanceDataset
from scenes.squares import SIDE

from bench.libraries import BATCH, Loaders, Tensors, shuffled
from bench.pairs import Pairs

AHEAD = 8
SHAPES = {"image": (SIDE, SIDE, 3), "label": (SIDE, SIDE)}
SCHEMA = pa.schema([(name, pa.list_(pa.uint8(), int(np.prod(shape)))) for name, shape in SHAPES.items()])


def write(pairs: Pairs, out: Path) -> None:
    lance.write_dataset(batches(pairs), str(out), schema=SCHEMA)


def batches(pairs: Pairs) -> Iterator[pa.RecordBatch]:
    for first in range(0, len(pairs), BATCH):
        parts = [column[first : first + BATCH].reshape(-1) for column in (pairs.images, pairs.labels)]
        columns = [
            pa.FixedSizeListArray.from_arrays(pa.array(part), type=field.type)
            for part, field in zip(parts, SCHEMA, strict=True)
        ]
        yield pa.record_batch(columns, schema=SCHEMA)


def loaders(out: Path) -> Loaders:
    data = lance.dataset(str(out))
    sampler = ShardedBatchSampler(0, 1, randomize=True)
    scan = LanceDataset(data, batch_size=BATCH, batch_readahead=AHEAD, sampler=sampler)
    return {"take": partial(taken, data), "batches of neighbours": partial(scanned, scan)}


def scanned(scan: Any) -> Iterable[Tensors]:
    return (tuple(batch[name].view(-1, *shape) for name, shape in SHAPES.items()) for batch in scan)


def taken(data: Any) -> Iterable[Tensors]:
    for rows in shuffled(data.count_rows()):
        table = data.take(rows)
        images, labels = (tensor(table[name], shape) for name, shape in SHAPES.items())
        yield images, labels


def tensor(column: Any, shape: tuple[int, ...]) -> torch.Tensor:
    flat = column.combine_chunks().flatten().to_numpy()
    return torch.from_numpy(flat).view(-1, *shape)
