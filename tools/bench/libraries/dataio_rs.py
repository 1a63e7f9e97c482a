"""dataio-rs: a pipeline in Rust over records that name files; a `.npy` file for each array.

Its README: a slot for each field, `batch` with `prefetch`, and `concurrency="auto"` to start with. `records` of a list
are shuffled in full without a buffer.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import dataio
import torch

from bench.libraries import BATCH, Loaders, Tensors
from bench.pairs import save_rows

write = save_rows


def loaders(out: Path) -> Loaders:
    columns = (sorted((out / name).iterdir()) for name in ("image", "label"))
    records = [{"image": str(image), "label": str(label)} for image, label in zip(*columns, strict=True)]
    slots = (dataio.slot(name).decode_npy() for name in ("image", "label"))
    return {"threads of its own": partial(batches, dataio.pipeline(*slots, dataio.batch(BATCH, prefetch=4)), records)}


def batches(pipeline: Any, records: list[dict[str, str]]) -> Iterator[Tensors]:
    seed = int(torch.randint(2**31, ()))
    with pipeline.bind(dataio.records(records, indexed=True).shuffle(seed=seed)).run("torch") as loader:
        for batch in loader:
            yield batch["image"], batch["label"]
