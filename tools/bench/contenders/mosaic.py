"""MosaicML Streaming: MDS shards on the local disk.

Its docs: arrays of a known shape are the most compact encoding; a local folder without a remote one is read in place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from torch.utils.data import DataLoader

from bench.contenders import BATCH, WORKERS, Tensors, Ways, forked
from bench.contenders.pairs import SIDE, Pairs

try:
    import torchvision  # noqa: F401
except RuntimeError:  # one built for CUDA beside a PyTorch that is not: only data sets that nobody asks for need it
    sys.modules["streaming.vision"] = ModuleType("streaming.vision")
from streaming import MDSWriter, StreamingDataset
from streaming.base.util import clean_stale_shared_memory

COLUMNS = {"image": f"ndarray:uint8:{SIDE},{SIDE},3", "label": f"ndarray:uint8:{SIDE},{SIDE}"}


def write(pairs: Pairs, out: Path) -> None:
    with MDSWriter(out=str(out), columns=COLUMNS) as writer:
        for row in range(len(pairs)):
            writer.write({"image": pairs.images[row], "label": pairs.labels[row]})


def ways(out: Path) -> Ways:
    clean_stale_shared_memory()
    return {"0 workers": loaded(out, 0), f"{WORKERS} workers": loaded(out, WORKERS)}


def loaded(out: Path, workers: int) -> Callable[[], Iterable[Tensors]]:
    data = StreamingDataset(local=str(out), shuffle=True, batch_size=BATCH)
    return partial(parts, DataLoader(data, BATCH, **forked(workers)))


def parts(loader: DataLoader[Any]) -> Iterable[Tensors]:
    return ((batch["image"], batch["label"]) for batch in loader)
