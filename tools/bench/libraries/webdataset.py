"""WebDataset: tar files, read from front to back, shuffled in a buffer.

Its docs: decode and batch in the workers, `WebLoader` with `batch_size=None`. The raw pixels are stored and decoded
with `np.frombuffer`, which is less work than `.npy` in the tar. Shards are independent: to write in parallel, each
process has a writer of its own.
"""

from __future__ import annotations

import math
import multiprocessing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import webdataset as wds

from bench.libraries import BATCH, WORKERS, Loaders, forked
from bench.pairs import ArrayPairs, parted

SHARD_BYTES = 100 << 20
BUFFER = 100


def write(rows: ArrayPairs, out: Path, workers: int = 1) -> None:
    out.mkdir(parents=True)
    parts = list(enumerate(parted(len(rows), workers)))
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        pool.starmap(partial(write_part, rows, out), parts, chunksize=1)


def write_part(rows: ArrayPairs, out: Path, part: int, numbers: list[int]) -> None:
    shard = max(1, min(SHARD_BYTES // (3 * rows.side**2), len(rows) // (2 * WORKERS)))
    with wds.ShardWriter(str(out / f"{part:02}-%05d.tar"), maxcount=shard, verbose=0) as writer:
        for row in numbers:
            image, label = rows[row]
            writer.write({"__key__": f"{row:05}", "image": image.tobytes(), "label": label.tobytes()})


def loaders(out: Path) -> Loaders:
    shards = [str(path) for path in sorted(out.glob("*.tar"))]
    data = wds.WebDataset(shards, shardshuffle=len(shards)).shuffle(BUFFER).map(decoded)
    batches = data.batched(BATCH, collation_fn=collated)
    loader = wds.WebLoader(batches, batch_size=None, **forked(WORKERS))
    return {f"{WORKERS} workers": lambda: loader}


def decoded(sample: dict[str, Any]) -> tuple[Any, Any]:
    """Return arrays over the bytes that were read."""
    image, label = (np.frombuffer(sample[name], np.uint8) for name in ("image", "label"))
    side = math.isqrt(len(label))
    return image.reshape(side, side, 3), label.reshape(side, side)


def collated(samples: list[tuple[Any, Any]]) -> tuple[torch.Tensor, ...]:
    return tuple(torch.from_numpy(np.stack(parts)) for parts in zip(*samples, strict=True))
