"""TensorDict: one memory-mapped tensor per column.

Its docs on data loading: a DataLoader reads a whole batch with one index operation (`__getitems__`), kept by a
`collate_fn` that does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tensordict import TensorDict
from torch.utils.data import DataLoader

from bench.libraries import BATCH, WORKERS, Loaders, Tensors, forked, image_and_label
from bench.pairs import Pairs


def write(pairs: Pairs, out: Path) -> None:
    columns = {"image": pairs.images, "label": pairs.labels}
    first = {name: torch.from_numpy(column[:1].copy()).expand(column.shape) for name, column in columns.items()}
    stored = TensorDict(first, batch_size=[len(pairs)]).memmap_like(out)
    for name, column in columns.items():
        for row in range(len(pairs)):
            stored[name][row] = torch.from_numpy(column[row].copy())


def loaders(out: Path) -> Loaders:
    data = TensorDict.load_memmap(out)
    return {"0 workers": loaded(data, 0), f"{WORKERS} workers": loaded(data, WORKERS)}


def loaded(data: Any, workers: int) -> Callable[[], Iterable[Tensors]]:
    loader: DataLoader[Any] = DataLoader(data, BATCH, shuffle=True, collate_fn=unchanged, **forked(workers))
    return partial(image_and_label, loader)


def unchanged(batch: Any) -> Any:
    return batch
