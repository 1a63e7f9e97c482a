"""Libraries that store pictures as JPEG: a file for each, imported when it is needed, as its package may be missing.

The file of a library has two functions. `write(rows, out)` stores the rows. `loaders(out)` returns a function for each
setting, which makes a pass over all rows in shuffled batches of `BATCH` random windows of `CROP` x `CROP`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scenes.street import Pixels

from bench.libraries import Tensors

CROP, QUALITY = 512, 95
MODULES = ("segpack", "webdataset", "litdata", "ffcv")
"""Libraries that start processes come before FFCV, which leaves threads behind: a fork does not copy threads."""


def window(image: Pixels, label: Pixels) -> tuple[Any, Any]:
    """Return the same random window of both."""
    top, left = (np.random.randint(side - CROP + 1) for side in label.shape)
    part = slice(top, top + CROP), slice(left, left + CROP)
    return image[part], label[part]


def collated(samples: list[tuple[Pixels, Pixels]]) -> Tensors:
    """Return a batch of windows of these pairs."""
    import torch

    images, labels = zip(*(window(*sample) for sample in samples), strict=True)
    return torch.from_numpy(np.stack(images)), torch.from_numpy(np.stack(labels))
