"""Squirrel: msgpack shards, which it always compresses with gzip; shuffled by shard and in a buffer.

Its docs: split the shards among the workers, batch there, and use a DataLoader of `batch_size=None`. The shards are
shuffled after the split. Before it, each worker would shuffle differently and some shards would be read twice.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from squirrel.driver import MessagepackDriver
from squirrel.iterstream.iterators import shuffle_
from squirrel.iterstream.torch_composables import SplitByWorker
from squirrel.serialization import MessagepackSerializer
from squirrel.store import SquirrelStore
from torch.utils.data import DataLoader

from bench.libraries import BATCH, WORKERS, Loaders, forked
from bench.pairs import Pairs

SHARD, BUFFER = 100, 100


def write(pairs: Pairs, out: Path) -> None:
    store = SquirrelStore(str(out), serializer=MessagepackSerializer())
    shard = max(1, min(SHARD, len(pairs) // (2 * WORKERS)))
    for first in range(0, len(pairs), shard):
        rows = range(first, min(first + shard, len(pairs)))
        samples = [{"image": np.array(pairs.images[row]), "label": np.array(pairs.labels[row])} for row in rows]
        store.set(samples, key=f"{first:05}")


def loaders(out: Path) -> Loaders:
    driver = MessagepackDriver(str(out))
    keys = sorted(driver.keys())
    stream = driver.get_iter(
        keys_iterable=keys,
        shuffle_item_buffer=BUFFER,
        key_hooks=[SplitByWorker, partial(shuffle_, bufsize=len(keys))],
        max_workers=1,
    )
    data = stream.batched(BATCH, collation_fn=collated, drop_last_if_not_full=False).to_torch_iterable()
    loader: DataLoader[Any] = DataLoader(data, batch_size=None, **forked(WORKERS))
    return {f"{WORKERS} workers": lambda: loader}


def collated(samples: list[dict[str, Any]]) -> tuple[torch.Tensor, ...]:
    return tuple(torch.from_numpy(np.stack([sample[name] for sample in samples])) for name in ("image", "label"))
