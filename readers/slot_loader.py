"""`SlotDataLoader`: the stock DataLoader, whose workers write into shared slots, so that only a number travels."""

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

HELD = 2
"""Slots of each worker beyond those on their way: so many of its batches may be held without slowing it down."""
ALIGNMENT = 64


class SlotDataLoader(DataLoader[Any]):
    """`SlotDataLoader(dataset, batch_size=16, num_workers=4, persistent_workers=True)`: options as of DataLoader.

    For programs that must use PyTorch's own loader; `SegDataset.loader` is faster. A slot is written again when the
    batch in it has been let go of. Who holds many batches gets the next ones the usual way.
    """

    def __init__(self, dataset: SegDataset, batch_size: int = 1, **options: Any) -> None:
        if dataset.transform is not None or dataset.image_field.native:
            raise RequestError(
                "SlotDataLoader needs rows of one size and no transform, so that every batch fits into a slot: "
                "use loader() with crop=, or a DataLoader"
            )
        if "collate_fn" in options:
            raise RequestError("SlotDataLoader has a collate_fn of its own: use a DataLoader with yours")
        sampler = options.get("batch_sampler")
        if sampler is None:
            options["batch_size"] = batch_size
        self._most: int = getattr(sampler, "batch_size", 0) if sampler is not None else batch_size
        self._source = dataset
        super().__init__(_Indices(dataset), collate_fn=_Gather(dataset, None), **options)

    def __iter__(self) -> Any:
        running = self.persistent_workers and self._iterator is not None
        if self.num_workers and not running:
            slots = self.num_workers * ((self.prefetch_factor or 2) + HELD)
            fields = self._source.image_field, self._source.label_field
            self.collate_fn = _Gather(self._source, SharedSlots(fields, self._most, slots, self.num_workers))
        return super().__iter__()


class _Indices(Dataset[Any]):
    """Stands for the data set where a DataLoader asks for samples: what is collated are the indices."""

    def __init__(self, dataset: SegDataset) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitems__(self, indices: Sequence[int]) -> Sequence[int]:
        return indices


class _Gather:
    """Reads the rows of a batch, in a worker: into a slot, where one is free."""

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
        return _Parcel(self._slots.number, slot, len(indices))


class _Parcel:
    """What travels: where a batch is. It arrives as the batch."""

    def __init__(self, *where: int) -> None:
        self._where = where

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[int, ...]]:
        return _unpacked, self._where


def _unpacked(number: int, slot: int, rows: int) -> tuple[torch.Tensor, ...]:
    return _SLOTS[number].hand_out(slot, rows)


class SharedSlots:
    """Shared memory for batches of at most `rows` rows. Each worker has slots of its own, so nobody need wait or lock:
    it marks one as taken; the trainer marks it as free when nothing is left of the batch that was in it.
    """

    def __init__(self, fields: Sequence[Field], rows: int, slots: int, workers: int) -> None:
        self.number = next(_NUMBERS)
        self._fields = tuple(fields)
        self._rows = rows
        self._each = slots // workers
        size = sum(self._room(field, rows) for field in fields)
        self._memory = _shared((slots, size))
        self._taken = _shared((slots,))
        _SLOTS[self.number] = self

    def take(self, worker: int, rows: int) -> int | None:
        """A free slot of this worker, now taken; none where all are held, or too small."""
        first = worker * self._each
        free = np.flatnonzero(self._taken.numpy()[first : first + self._each] == 0)
        if not len(free) or rows > self._rows:
            return None
        slot = first + int(free[0])
        self._taken[slot] = 1
        return slot

    def parts(self, slot: int, rows: int, owner: NDArray[np.uint8] | None = None) -> Iterator[NDArray[Any]]:
        """The memory of the images and labels of a slot with so many rows."""
        memory = self._memory[slot].numpy() if owner is None else owner
        start = 0
        for field in self._fields:
            assert field.size is not None
            shape = (rows, *field.row_shape(*field.size))
            size = math.prod(shape) * np.dtype(field.dtype).itemsize
            yield memory[start : start + size].view(field.dtype).reshape(shape)
            start += self._room(field, self._rows)

    def hand_out(self, slot: int, rows: int) -> tuple[torch.Tensor, ...]:
        """The batch in a slot, whose end frees the slot."""
        # An array over a buffer that is no array: all views of it, and tensors over these, keep this very object alive.
        owner = np.frombuffer(self._memory[slot].numpy().data, np.uint8)
        weakref.finalize(owner, self._taken.numpy().__setitem__, slot, 0).atexit = False
        return tuple(map(torch.from_numpy, self.parts(slot, rows, owner)))

    @staticmethod
    def _room(field: Field, rows: int) -> int:
        assert field.size is not None
        return -(-rows * field.row_bytes_at(*field.size) // ALIGNMENT) * ALIGNMENT


def _shared(shape: tuple[int, ...]) -> torch.Tensor:
    """Zeros that all processes see; PyTorch takes them along to workers, however these are started."""
    tensor: torch.Tensor = torch.zeros(shape, dtype=torch.uint8).share_memory_()  # type: ignore[no-untyped-call]
    return tensor


_NUMBERS = itertools.count()
_SLOTS: weakref.WeakValueDictionary[int, SharedSlots] = weakref.WeakValueDictionary()
"""The slots of this process, by their numbers."""
