"""HF datasets: Arrow files, memory-mapped.

Its docs on use with PyTorch: fixed shapes as Array3D and `with_format("torch")`; DataLoaders call `__getitems__`, which
reads a whole batch. `batch_size=None` with a sampler of batches spares taking that batch apart and collating it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from datasets import Array2D, Array3D, Dataset, Features, load_from_disk
from datasets.arrow_writer import ArrowWriter
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

from contenders import BATCH, WORKERS, Tensors, Ways
from contenders.pairs import SIDE, Pairs


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
    data = load_from_disk(str(out)).with_format("torch")
    return {"0 workers": loaded(data, 0), f"{WORKERS} workers": loaded(data, WORKERS)}


def loaded(data: Any, workers: int) -> Callable[[], Iterable[Tensors]]:
    options: dict[str, Any] = {"num_workers": workers, "persistent_workers": bool(workers)}
    sampler = BatchSampler(RandomSampler(data), BATCH, drop_last=False)
    loader: DataLoader[Any] = DataLoader(data, batch_size=None, sampler=sampler, **options)
    return partial(parts, loader)


def parts(loader: DataLoader[Any]) -> Iterable[Tensors]:
    return ((batch["image"], batch["label"]) for batch in loader)
