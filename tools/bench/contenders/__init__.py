"""Those who read the same pairs: a file for each, loaded only when it is its turn, as its package may be missing.

The file of a contender has `write(pairs, out)`, which stores the pairs its own way, and `ways(out)`: names of settings,
and what makes a pass with each, over all pairs in shuffled batches of `BATCH`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

BATCH, WORKERS = 16, 2
Tensors = tuple[torch.Tensor, torch.Tensor]
"""Images and labels of a batch: uint8, in either order of axes."""
Passes = Callable[[], Iterable[Tensors]]
Ways = dict[str, Passes]


def forked(workers: int) -> dict[str, Any]:
    """Options of a DataLoader whose workers stay. They are forked, whatever a contender that came before prefers."""
    options: dict[str, Any] = {"num_workers": workers}
    return options | {"persistent_workers": True, "multiprocessing_context": "fork"} if workers else options


def shuffled(rows: int) -> Iterator[list[int]]:
    """The rows of each batch, for those who bring no order of their own."""
    order = torch.randperm(rows).tolist()
    return (order[first : first + BATCH] for first in range(0, rows, BATCH))


@dataclass(frozen=True)
class Entry:
    """Who: the name in the table, the file here, the package on the index, and how many times faster we mean to be."""

    title: str
    module: str
    package: str
    goal: float | None = None


# Those that start processes come before those that leave threads behind: a fork takes no thread along.
CONTENDERS = (
    Entry("loader", "segpack", "segpack"),
    Entry("loader", "formats", "segpack"),
    Entry("raw PNG, OpenCV", "opencv", "opencv-python", 80),
    Entry("raw PNG, Pillow", "pillow", "pillow"),
    Entry("TensorDict", "tensordict", "tensordict", 8),
    Entry("HF datasets", "huggingface", "datasets", 2.8),
    Entry("WebDataset", "webdataset", "webdataset", 15),
    Entry("MosaicML Streaming", "mosaic", "mosaicml-streaming", 10),
    Entry("LitData", "litdata", "litdata", 4.5),
    Entry("Squirrel", "squirrel", "squirrel-core"),
    Entry("FFCV", "ffcv", "ffcv", 1.7),
    Entry("DALI, CPU", "dali", "nvidia-dali-cuda130", 2.8),
    Entry("Lance", "lance", "pylance"),
    Entry("Grain, ArrayRecord", "grain", "grain"),
)
