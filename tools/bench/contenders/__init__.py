"""Those who read the same pairs: a file for each, loaded only when it is its turn, as its package may be missing.

The file of a contender has `write(pairs, out)`, which stores the pairs its own way, and `ways(out)`: names of settings,
and what makes a pass with each, over all pairs in shuffled batches of `BATCH`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

BATCH, WORKERS = 16, 2
Tensors = tuple[torch.Tensor, torch.Tensor]
"""Images and labels of a batch: uint8, in either order of axes."""
Passes = Callable[[], Iterable[Tensors]]
Ways = dict[str, Passes]


@dataclass(frozen=True)
class Entry:
    """Who: the name in the table, the file here, the package on the index, and how many times faster we mean to be."""

    title: str
    module: str
    package: str
    goal: float | None = None


# Those that start processes come before those that leave threads behind: a fork takes no thread along.
CONTENDERS = (
    Entry("segpack", "segpack", "segpack"),
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
