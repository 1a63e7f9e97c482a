"""LitData: chunks on the local disk.

Its README: `optimize` writes chunks of 64 MB, `StreamingDataset(shuffle=True)` in a `StreamingDataLoader` reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import torch
from litdata import StreamingDataLoader, StreamingDataset, optimize

from bench.libraries import BATCH, WORKERS, Loaders, Tensors, forked, image_and_label
from bench.pairs import ArrayPairs


def write(rows: ArrayPairs, out: Path, workers: int = 1) -> None:
    optimize(
        fn=partial(sample, rows),
        inputs=list(range(len(rows))),
        output_dir=str(out),
        chunk_bytes="64MB",
        num_workers=workers,
        start_method="fork",  # otherwise each worker imports PyTorch again
    )


def sample(rows: ArrayPairs, row: int) -> dict[str, torch.Tensor]:
    image, label = rows[row]
    return {"image": torch.from_numpy(image), "label": torch.from_numpy(label)}


def loaders(out: Path) -> Loaders:
    return {"0 workers": loaded(out, 0), f"{WORKERS} workers": loaded(out, WORKERS)}


def loaded(out: Path, workers: int) -> Callable[[], Iterable[Tensors]]:
    data = StreamingDataset(str(out), shuffle=True)
    return partial(image_and_label, StreamingDataLoader(data, batch_size=BATCH, **forked(workers)))
