"""LitData: chunks on the local disk, with JPEG files as bytes and labels as tensors.

Its serializer of JPEG files decodes with torchvision, which is not built for a PyTorch without CUDA. Here the rows are
decoded with simplejpeg, which calls the same library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import simplejpeg
import torch
from litdata import StreamingDataLoader, StreamingDataset, optimize
from scenes.mosaics import Mosaics

from bench.jpeg_libraries import QUALITY, collated
from bench.libraries import BATCH, WORKERS, Loaders, Tensors, forked


def write(rows: Mosaics, out: Path) -> None:
    optimize(
        fn=partial(sample, rows),
        inputs=list(range(len(rows))),
        output_dir=str(out),
        chunk_bytes="64MB",
        num_workers=1,
        start_method="fork",
    )


def sample(rows: Mosaics, row: int) -> dict[str, Any]:
    image, label = rows[row]
    return {"image": simplejpeg.encode_jpeg(image, QUALITY, "RGB", "444"), "label": torch.from_numpy(label)}


def loaders(out: Path) -> Loaders:
    return {"0 workers": loaded(out, 0), f"{WORKERS} workers": loaded(out, WORKERS)}


def loaded(out: Path, workers: int) -> Callable[[], Iterable[Tensors]]:
    data = StreamingDataset(str(out), shuffle=True)
    loader = StreamingDataLoader(data, batch_size=BATCH, collate_fn=batch, **forked(workers))
    return lambda: loader


def batch(samples: list[dict[str, Any]]) -> Tensors:
    return collated([(simplejpeg.decode_jpeg(each["image"], "RGB"), each["label"].numpy()) for each in samples])
