"""DALI without a GPU: the numpy reader over one file per array, and its iterator for PyTorch.

Its docs: files are memory-mapped by default, and equal headers are read only once with `cache_header_information`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from nvidia.dali import Pipeline, fn
from nvidia.dali.plugin.base_iterator import LastBatchPolicy
from nvidia.dali.plugin.pytorch import DALIGenericIterator

from bench.libraries import BATCH, WORKERS, Loaders, Tensors
from bench.pairs import save_rows

write = save_rows


def loaders(out: Path) -> Loaders:
    names = ["image", "label"]
    pipeline = Pipeline(batch_size=BATCH, num_threads=WORKERS, device_id=None, prefetch_queue_depth=2)
    with pipeline:
        pipeline.set_outputs(*(reader(out / name) for name in names))
    options = {"reader_name": names[0], "auto_reset": True, "last_batch_policy": LastBatchPolicy.PARTIAL}
    return {f"{WORKERS} threads": partial(parts, DALIGenericIterator([pipeline], names, **options))}


def reader(folder: Path) -> Any:
    """Return a reader. Both readers shuffle alike: `shuffle_after_epoch` depends only on the epoch."""
    options: dict[str, Any] = {"shuffle_after_epoch": True, "cache_header_information": True}
    return fn.readers.numpy(file_root=str(folder), name=folder.name, **options)


def parts(iterator: Any) -> Iterable[Tensors]:
    return ((batch["image"], batch["label"]) for (batch,) in iterator)
