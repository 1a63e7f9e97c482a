"""DALI without a GPU: the numpy reader over one file per array, and its iterator for PyTorch.

Its docs: files are mapped by default, and all headers alike need be read only once (`cache_header_information`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from nvidia.dali import fn, pipeline_def
from nvidia.dali.plugin.base_iterator import LastBatchPolicy
from nvidia.dali.plugin.pytorch import DALIGenericIterator

from contenders import BATCH, WORKERS, Tensors, Ways
from contenders.pairs import Pairs


def write(pairs: Pairs, out: Path) -> None:
    for name, column in (("image", pairs.images), ("label", pairs.labels)):
        (out / name).mkdir(parents=True)
        for row in range(len(pairs)):
            np.save(out / name / f"{row:05}.npy", column[row])


@pipeline_def(batch_size=BATCH, num_threads=WORKERS, device_id=None, prefetch_queue_depth=2)
def columns(out: Path) -> tuple[Any, ...]:
    """Both readers shuffle alike, as both are given the same seed."""
    return tuple(
        fn.readers.numpy(
            file_root=str(out / name),
            name=name,
            shuffle_after_epoch=True,
            cache_header_information=True,
        )
        for name in ("image", "label")
    )


def ways(out: Path) -> Ways:
    iterator = DALIGenericIterator(
        [columns(out)], ["image", "label"], reader_name="image", auto_reset=True, last_batch_policy=LastBatchPolicy.PARTIAL
    )
    return {f"{WORKERS} threads": partial(parts, iterator)}


def parts(iterator: Any) -> Iterable[Tensors]:
    return ((batch["image"], batch["label"]) for (batch,) in iterator)
