"""`SlotDataLoader`: PyTorch's DataLoader, whose workers write batches into shared memory and send only a number."""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset, get_worker_info

from readers.contract.errors import RequestError
from readers.contract.fields import Field
from readers.dataset import SegDataset
from readers.row_reader import as_series

HELD = 2
"""Slots of each worker in addition to its prefetched batches: the user can keep this many without slowing it down."""
ALIGNMENT = 64


class SlotDataLoader(DataLoader[Any]):
    """`SlotDataLoader(dataset, batch_size=16, num_workers=4, persistent_workers=True)`: the options of DataLoader.

    For programs that must use PyTorch's own loader; `SegDataset.loader` is faster. Each worker writes batches into
    shared slots. A slot is written again when nothing refers to its batch any more. If all slots are in use, a batch is
    sent the usual way.
    """

    def __init__(self, dataset: SegDataset, batch_size: int = 1, **options: Any) -> None:
        if dataset.transform is not None or any(field.native for field in dataset.fields):
            raise RequestError(
                "SlotDataLoader needs rows of one size and no transform, so that every batch fits into a slot: "
                "use loader() with crop=, or a DataLoader"
            )
        if "collate_fn" in options:
            raise RequestError("SlotDataLoader has a collate_fn of its own: use a DataLoader with yours")
        sampler = options.get("batch_sampler")
        if sampler is None:
            options["batch_size"] = batch_size
        self._most_rows: int = getattr(sampler, "batch_size", 0) if sampler is not None else batch_size
        self._segdataset = dataset
        super().__init__(_Indices(dataset), collate_fn=_ReadBatch(dataset, None), **options)

    def __iter__(self) -> Any:
        running = self.persistent_workers and self._iterator is not None
        if self.num_workers and not running:
            slots = self.num_workers * ((self.prefetch_factor or 2) + HELD)
            shared = SharedSlots(self._segdataset.fields, self._most_rows, slots, self.num_workers)
            self.collate_fn = _ReadBatch(self._segdataset, shared)
        return super().__iter__()


class _Indices(Dataset[Any]):
    """The data set that the DataLoader sees: its samples are their indices, and `_ReadBatch` reads them."""

    def __init__(self, dataset: SegDataset) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitems__(self, indices: Sequence[int]) -> Sequence[int]:
        return indices


class _ReadBatch:
    """The collate function: reads the rows of a batch in a worker, into a shared slot if one is free."""

    def __init__(self, dataset: SegDataset, slots: SharedSlots | None) -> None:
        self._dataset = dataset
        self._slots = slots

    def __call__(self, indices: Sequence[int]) -> Any:
        worker = get_worker_info()
        slot = self._slots.take(worker.id, len(indices)) if self._slots and worker else None
        if slot is None:
            return tuple(map(torch.from_numpy, self._dataset.gather(indices, np.empty)))
        assert self._slots is not None
        parts = iter(self._slots.parts(slot, len(indices)))
        self._dataset.gather(indices, lambda _shape, _dtype: next(parts))
        return _BatchInSlot(self._slots.number, slot, len(indices))


class _BatchInSlot:
    """The position of a batch in shared memory. A worker sends it, and unpickling it in the trainer gives the batch."""

    def __init__(self, number: int, slot: int, rows: int) -> None:
        self._position = number, slot, rows

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[int, ...]]:
        return _unpacked, self._position


def _unpacked(number: int, slot: int, rows: int) -> tuple[torch.Tensor, ...]:
    return _SHARED[number].hand_out(slot, rows)


class SharedSlots:
    """Shared memory for batches of at most `rows` rows.

    Each worker has slots of its own, so no lock is needed: the worker marks a slot as taken, and the trainer marks it
    as free when nothing refers to the batch in it any more.
    """

    def __init__(self, fields: Sequence[Field], rows: int, slots: int, workers: int) -> None:
        self.number = next(_NUMBERS)
        self._fields = tuple(fields)
        self._rows = rows
        self._per_worker = slots // workers
        size = sum(self._padded_bytes(field, rows) for field in fields)
        self._memory = _shared((slots, size))
        self._taken = _shared((slots,))
        _SHARED[self.number] = self

    def take(self, worker: int, rows: int) -> int | None:
        """Take a free slot of this worker; None if all are taken, or the batch is too large for a slot."""
        first = worker * self._per_worker
        free = np.flatnonzero(self._taken.numpy()[first : first + self._per_worker] == 0)
        if not len(free) or rows > self._rows:
            return None
        slot = first + int(free[0])
        self._taken[slot] = 1
        return slot

    def parts(self, slot: int, rows: int, owner: NDArray[np.uint8] | None = None) -> Iterator[NDArray[Any]]:
        """Yield the memory of each field in a slot that holds `rows` rows."""
        memory = self._memory[slot].numpy() if owner is None else owner
        start = 0
        for field in self._fields:
            shape = (rows, *_row_shape(field))
            size = math.prod(shape) * np.dtype(field.dtype).itemsize
            yield memory[start : start + size].view(field.dtype).reshape(shape)
            start += self._padded_bytes(field, self._rows)

    def hand_out(self, slot: int, rows: int) -> tuple[torch.Tensor, ...]:
        """Return the batch in a slot. The slot is free again when nothing refers to the batch."""
        # numpy gives views of an array over a foreign buffer this array as `base`: views and tensors all keep it alive.
        owner = np.frombuffer(self._memory[slot].numpy().data, np.uint8)
        weakref.finalize(owner, self._taken.numpy().__setitem__, slot, 0).atexit = False
        parts = zip(self._fields, self.parts(slot, rows, owner), strict=True)
        return tuple(torch.from_numpy(as_series(field, part)) for field, part in parts)

    @staticmethod
    def _padded_bytes(field: Field, rows: int) -> int:
        size = rows * math.prod(_row_shape(field)) * np.dtype(field.dtype).itemsize
        return -(-size // ALIGNMENT) * ALIGNMENT


def _row_shape(field: Field) -> tuple[int, ...]:
    """Return the shape of a row. All rows have one size; a truth value has none."""
    return tuple(side for side in field.shape if side is not None)


def _shared(shape: tuple[int, ...]) -> torch.Tensor:
    """Return zeros in memory that all processes share; PyTorch passes it to workers of any start method."""
    tensor: torch.Tensor = torch.zeros(shape, dtype=torch.uint8).share_memory_()  # type: ignore[no-untyped-call]
    return tensor


_NUMBERS = itertools.count()
_SHARED: weakref.WeakValueDictionary[int, SharedSlots] = weakref.WeakValueDictionary()
"""The shared slots of this process, by number."""
