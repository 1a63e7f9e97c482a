"""`source_of`: the facts about a loader that a diagnosis needs."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from readers.dataset import SegDataset
from readers.device import DeviceBatches
from readers.diagnosis.record import BatchSource
from readers.loader import Loader


def source_of(batches: Any) -> BatchSource:
    """Return what is known about a Loader, a DataLoader or any other iterable."""
    inner: Any = batches.source if isinstance(batches, DeviceBatches) else batches
    own = isinstance(inner, Loader)
    workers = inner.threads if own else getattr(inner, "num_workers", None)
    return BatchSource(
        name=type(inner).__name__,
        packed=own or _of_pack(getattr(inner, "dataset", None)),
        own_loader=own,
        workers=workers if isinstance(workers, int) else None,
        batch=_whole(getattr(inner, "batch_size", None)),
        batches=_length(batches),
        on_device=isinstance(batches, DeviceBatches),
        steps=inner.steps if own else (),
    )


def _of_pack(dataset: Any) -> bool:
    """Return whether a data set is a pack, also inside a Subset or another wrapper with an attribute `dataset`."""
    for _ in range(8):
        if isinstance(dataset, SegDataset):
            return True
        dataset = getattr(dataset, "dataset", None)
    return False


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _length(batches: Any) -> int | None:
    with suppress(Exception):  # iterables without a length raise many kinds of errors
        return len(batches)
    return None
