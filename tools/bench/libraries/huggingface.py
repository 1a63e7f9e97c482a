"""HF datasets: Arrow files, memory-mapped.

Its docs on use with PyTorch: fixed shapes as Array3D and `with_format("torch")`. DataLoaders call `__getitems__`, which
reads a whole batch. With `batch_size=None` and a sampler of batches, the batch is not split and collated again. This
turns every number into a Python object on its way. The Arrow format does not, so it is measured as well, although the
docs do not mention it. To write in parallel, `from_generator` divides lists among `num_proc` processes. It leaves the
Arrow files in its cache folder, so they need not be saved again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Array2D, Array3D, Dataset, Features, concatenate_datasets
from scenes.squares import SIDE
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

from bench.libraries import BATCH, WORKERS, Loaders, Tensors, forked, image_and_label, shuffled
from bench.pairs import ArrayPairs, parted


def write(rows: ArrayPairs, out: Path, workers: int = 1) -> None:
    side = rows.side
    Dataset.from_generator(
        samples,
        features=Features({"image": Array3D((side, side, 3), "uint8"), "label": Array2D((side, side), "uint8")}),
        cache_dir=str(out),
        gen_kwargs={"rows": rows, "parts": parted(len(rows), 4 * workers)},
        num_proc=workers if workers > 1 else None,
        fingerprint="pairs",  # without it, it hashes the rows
        writer_batch_size=BATCH,
    )


def samples(rows: ArrayPairs, parts: list[list[int]]) -> Iterator[dict[str, Any]]:
    for row in (row for part in parts for row in part):
        image, label = rows[row]
        yield {"image": image, "label": label}


def loaders(out: Path) -> Loaders:
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
    return partial(image_and_label, loader)


def joined(data: Any) -> Iterable[Tensors]:
    """Yield the mapped bytes of the rows, copied once."""
    for rows in shuffled(len(data)):
        table = data[rows]
        images, labels = (np.concatenate([pixels(row) for row in table[name].chunks]) for name in ("image", "label"))
        yield torch.from_numpy(images).view(-1, SIDE, SIDE, 3), torch.from_numpy(labels).view(-1, SIDE, SIDE)


def pixels(lists: Any) -> Any:
    """Return the numbers inside nested lists."""
    while hasattr(lists, "storage") or hasattr(lists, "flatten"):
        lists = lists.storage if hasattr(lists, "storage") else lists.flatten()
    return lists.to_numpy()
