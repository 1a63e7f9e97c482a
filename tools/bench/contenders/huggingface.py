"""HF datasets: Arrow files, memory-mapped.

Its docs on use with PyTorch: fixed shapes as Array3D and `with_format("torch")`; DataLoaders call `__getitems__`, which
reads a whole batch; `batch_size=None` with a sampler of batches spares taking that apart and collating it again. That
turns every number into a Python object on its way; the Arrow format does not, so this is here, too, though no page of
the docs goes so far. To write in parallel, `from_generator` shares lists among `num_proc` processes; what it leaves in
its cache folder are the Arrow files, so they need not be saved once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Array2D, Array3D, Dataset, Features, concatenate_datasets
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

from bench.contenders import BATCH, WORKERS, Tensors, Ways, forked, shuffled
from bench.contenders.pairs import SIDE, Rows, parted


def write(rows: Rows, out: Path, workers: int = 1) -> None:
    side = rows.side
    Dataset.from_generator(
        samples,
        features=Features({"image": Array3D((side, side, 3), "uint8"), "label": Array2D((side, side), "uint8")}),
        cache_dir=str(out),
        gen_kwargs={"rows": rows, "parts": parted(len(rows), 4 * workers)},
        num_proc=workers if workers > 1 else None,
        fingerprint="pairs",  # else it hashes the rows
        writer_batch_size=BATCH,
    )


def samples(rows: Rows, parts: list[list[int]]) -> Iterator[dict[str, Any]]:
    for row in (row for part in parts for row in part):
        image, label = rows[row]
        yield {"image": image, "label": label}


def ways(out: Path) -> Ways:
    data = concatenate_datasets([Dataset.from_file(str(path)) for path in sorted(out.rglob("*.arrow"))])
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
