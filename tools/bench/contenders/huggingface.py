"""HF datasets: Arrow files, memory-mapped.

Its docs on use with PyTorch: fixed shapes as Array3D and `with_format("torch")`; DataLoaders call `__getitems__`, which
reads a whole batch; `batch_size=None` with a sampler of batches spares taking that apart and collating it again. That
turns every number into a Python object on its way; the Arrow format does not, so this is here, too, though no page of
the docs goes so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Array2D, Array3D, Dataset, Features, load_from_disk
from datasets.arrow_writer import ArrowWriter
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

from bench.contenders import BATCH, WORKERS, Tensors, Ways, forked, shuffled
from bench.contenders.pairs import SIDE, Pairs


def write(pairs: Pairs, out: Path) -> None:
    features = Features({"image": Array3D((SIDE, SIDE, 3), "uint8"), "label": Array2D((SIDE, SIDE), "uint8")})
    first = out.with_suffix(".arrow")
    with ArrowWriter(features=features, path=str(first), writer_batch_size=BATCH) as writer:
        for row in range(len(pairs)):
            writer.write({"image": pairs.images[row], "label": pairs.labels[row]})
        writer.finalize()
    Dataset.from_file(str(first)).save_to_disk(out)
    first.unlink()


def ways(out: Path) -> Ways:
    data = load_from_disk(str(out))
    tensors = data.with_format("torch")
    return {
        "torch format, 0 workers": loaded(tensors, 0),
        f"torch format, {WORKERS} workers": loaded(tensors, WORKERS),
        "Arrow format": partial(joined, data.with_format("arrow")),
    }


def loaded(data: Any, workers: int) -> Callable[[], Iterable[Tensors]]:
    sampler = BatchSampler(RandomSampler(data), BATCH, drop_last=False)
    loader: DataLoader[Any] = DataLoader(data, batch_size=None, sampler=sampler, **forked(workers))
    return partial(parts, loader)


def parts(loader: DataLoader[Any]) -> Iterable[Tensors]:
    return ((batch["image"], batch["label"]) for batch in loader)


def joined(data: Any) -> Iterable[Tensors]:
    """The mapped bytes of the rows, copied once."""
    for rows in shuffled(len(data)):
        table = data[rows]
        images, labels = (np.concatenate([pixels(row) for row in table[name].chunks]) for name in ("image", "label"))
        yield torch.from_numpy(images).view(-1, SIDE, SIDE, 3), torch.from_numpy(labels).view(-1, SIDE, SIDE)


def pixels(lists: Any) -> Any:
    """What is at the bottom of nested lists."""
    while hasattr(lists, "storage") or hasattr(lists, "flatten"):
        lists = lists.storage if hasattr(lists, "storage") else lists.flatten()
    return lists.to_numpy()
