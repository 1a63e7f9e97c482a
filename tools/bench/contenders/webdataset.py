"""WebDataset: tar files, read from front to back, shuffled in a buffer.

Its docs: decode and batch in the workers, `WebLoader` with `batch_size=None`. The pixels are stored as they are, and
decoded with `np.frombuffer`, which is less work than `.npy` in the tar.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
import webdataset as wds

from bench.contenders import BATCH, WORKERS, Ways, forked
from bench.contenders.pairs import SIDE, Pairs

SHARD_BYTES = 100 << 20
BUFFER = 100


def write(pairs: Pairs, out: Path) -> None:
    out.mkdir(parents=True)
    shard = max(1, min(SHARD_BYTES // pairs.images[0].nbytes, len(pairs) // (2 * WORKERS)))
    with wds.ShardWriter(str(out / "%05d.tar"), maxcount=shard, verbose=0) as writer:
        for row in range(len(pairs)):
            parts = {"image": pairs.images[row].tobytes(), "label": pairs.labels[row].tobytes()}
            writer.write({"__key__": f"{row:05}", **parts})


def ways(out: Path) -> Ways:
    shards = [str(path) for path in sorted(out.glob("*.tar"))]
    data = wds.WebDataset(shards, shardshuffle=len(shards)).shuffle(BUFFER).map(decoded)
    batches = data.batched(BATCH, collation_fn=collated)
    loader = wds.WebLoader(batches, batch_size=None, **forked(WORKERS))
    return {f"{WORKERS} workers": lambda: loader}


def decoded(sample: dict[str, Any]) -> tuple[Any, Any]:
    """Arrays over the bytes that were read."""
    image, label = (np.frombuffer(sample[name], np.uint8) for name in ("image", "label"))
    return image.reshape(SIDE, SIDE, 3), label.reshape(SIDE, SIDE)


def collated(samples: list[tuple[Any, Any]]) -> tuple[torch.Tensor, ...]:
    return tuple(torch.from_numpy(np.stack(parts)) for parts in zip(*samples, strict=True))
