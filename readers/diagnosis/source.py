"""`source_of`: what an object that gives batches tells of itself."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from readers.dataset import SegDataset
from readers.device import DeviceBatches
from readers.diagnosis.record import Source
from readers.loader import Loader


def source_of(batches: Any) -> Source:
    """What is known of a Loader, a DataLoader or whatever else can be iterated."""
    inner: Any = batches.source if isinstance(batches, DeviceBatches) else batches
    own = isinstance(inner, Loader)
    workers = inner.threads if own else getattr(inner, "num_workers", None)
    return Source(
        name=type(inner).__name__,
        packed=own or _of_pack(getattr(inner, "dataset", None)),
        own_loader=own,
        workers=workers if isinstance(workers, int) else None,
        batch=_whole(getattr(inner, "batch_size", None)),
        batches=_length(batches),
        on_device=isinstance(batches, DeviceBatches),
    )


def _of_pack(dataset: Any) -> bool:
    """Also behind a Subset, or whatever else keeps what it wraps as `dataset`."""
    for _ in range(8):
        if isinstance(dataset, SegDataset):
            return True
        dataset = getattr(dataset, "dataset", None)
    return False


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _length(batches: Any) -> int | None:
    with suppress(Exception):  # many iterables have no length, and say so in many ways
        return len(batches)
    return None
