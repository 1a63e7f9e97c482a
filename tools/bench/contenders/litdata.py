"""LitData: chunks on the local disk.

Its README: `optimize` writes chunks of 64 MB, `StreamingDataset(shuffle=True)` in a `StreamingDataLoader` reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from litdata import StreamingDataLoader, StreamingDataset, optimize

from bench.contenders import BATCH, WORKERS, Tensors, Ways, forked
from bench.contenders.pairs import Rows


def write(rows: Rows, out: Path, workers: int = 1) -> None:
    optimize(
        fn=partial(sample, rows),
        inputs=list(range(len(rows))),
        output_dir=str(out),
        chunk_bytes="64MB",
        num_workers=workers,
        start_method="fork",  # else each worker imports PyTorch anew
    )


def sample(rows: Rows, row: int) -> dict[str, torch.Tensor]:
    image, label = rows[row]
    return {"image": torch.from_numpy(image), "label": torch.from_numpy(label)}


def ways(out: Path) -> Ways:
    return {"0 workers": loaded(out, 0), f"{WORKERS} workers": loaded(out, WORKERS)}


def loaded(out: Path, workers: int) -> Callable[[], Iterable[Tensors]]:
    data = StreamingDataset(str(out), shuffle=True)
    return partial(parts, StreamingDataLoader(data, batch_size=BATCH, **forked(workers)))


def parts(loader: Any) -> Iterable[Tensors]:
    return ((batch["image"], batch["label"]) for batch in loader)
