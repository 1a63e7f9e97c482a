"""MosaicML Streaming: MDS shards on the local disk.

Its docs: arrays of a known shape are the most compact encoding. A local folder without a remote one is read in place.
To write in parallel, a writer in each process makes a folder of its own, and `merge_index` joins them to one data set.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import ModuleType

from torch.utils.data import DataLoader

from bench.libraries import BATCH, WORKERS, Loaders, Tensors, forked, image_and_label
from bench.pairs import ArrayPairs, parted

try:
    import torchvision  # noqa: F401
except RuntimeError:  # a torchvision for CUDA with a PyTorch without; only data sets that are not used here need it
    sys.modules["streaming.vision"] = ModuleType("streaming.vision")
from streaming import MDSWriter, StreamingDataset
from streaming.base.util import clean_stale_shared_memory, merge_index


def write(rows: ArrayPairs, out: Path, workers: int = 1) -> None:
    parts = list(enumerate(parted(len(rows), workers)))
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        pool.starmap(partial(write_part, rows, out), parts, chunksize=1)
    merge_index(str(out), keep_local=True)


def write_part(rows: ArrayPairs, out: Path, part: int, numbers: list[int]) -> None:
    columns = {"image": f"ndarray:uint8:{rows.side},{rows.side},3", "label": f"ndarray:uint8:{rows.side},{rows.side}"}
    with MDSWriter(out=str(out / f"{part:02}"), columns=columns) as writer:
        for row in numbers:
            image, label = rows[row]
            writer.write({"image": image, "label": label})


def loaders(out: Path) -> Loaders:
    clean_stale_shared_memory()
    return {"0 workers": loaded(out, 0), f"{WORKERS} workers": loaded(out, WORKERS)}


def loaded(out: Path, workers: int) -> Callable[[], Iterable[Tensors]]:
    data = StreamingDataset(local=str(out), shuffle=True, batch_size=BATCH)
    return partial(image_and_label, DataLoader(data, BATCH, **forked(workers)))
