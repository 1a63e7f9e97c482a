"""`Loader`: whole batches, gathered by threads ahead of use, into memory that is recycled when it was let go of."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from readers.batch_memory import Lease, Slots
from readers.contract.errors import ReadError, RequestError
from readers.crop import Cut
from readers.device import Augment, DeviceBatches, Finish, Moments
from readers.machine import usable_cores
from readers.order import Epoch, Order
from readers.permutation import Numbers, keys_of
from readers.row_reader import Arrays, Reader

Output = Literal["torch", "numpy"]
Batch = tuple[Any, Any]
"""Images and labels: tensors, or arrays of numpy."""

AHEAD_BYTES = 128 << 20
"""At most so many bytes are asked for ahead of use, where they are not in memory."""
AHEAD_BATCHES = 32
LEAST_ASKED = 16 << 10
"""Smaller rows are not asked for: the kernel reads as much ahead by itself, and asking means opening their shards."""


@dataclass(frozen=True)
class Ahead:
    """How batches are gathered: by how many threads, how many ahead of use, and whether what was read leaves memory."""

    threads: int | Literal["auto"]
    batches: int
    drop_behind: bool

    def __post_init__(self) -> None:
        if self.batches < 1 or (self.threads != "auto" and self.threads < 1):
            raise RequestError(f"threads={self.threads!r}, ahead={self.batches}: expected numbers from 1 on")

    @property
    def workers(self) -> int:
        """How many threads: no more than cores, and than batches they may be at."""
        if self.threads != "auto":
            return self.threads
        return min(usable_cores(), self.batches)


@dataclass(frozen=True)
class Batches:
    """Which rows are a batch, and how one is read. `first` is the pack's row of the split's row 0."""

    reader: Reader
    first: int
    size: int
    drop_last: bool
    cut: Cut | None
    moments: Moments
    """Of the split."""

    def __post_init__(self) -> None:
        if self.size < 1:
            raise RequestError(f"batch_size={self.size}: expected a number from 1 on")

    def count(self, epoch: Epoch) -> int:
        """How many batches there are."""
        return epoch.count // self.size if self.drop_last else -(-epoch.count // self.size)

    def rows(self, epoch: Epoch) -> Iterator[Numbers]:
        """The rows of each."""
        return islice(epoch.chunks(self.size), self.count(epoch))

    def read(self, epoch: Epoch, rows: Numbers, lease: Lease) -> Arrays:
        """A batch in leased memory."""
        places = self.places(rows)
        if self.cut is None:
            return self.reader.read(places, lease)
        windows = self.cut.windows(epoch.seed, epoch.number, rows, self.reader.sizes(places))
        return self.reader.read(places, lease, windows)

    def places(self, rows: Numbers) -> list[int]:
        """The pack's rows."""
        places: list[int] = (rows + self.first).tolist()
        return places

    def bytes(self) -> int:
        """About how many bytes of the disk a batch is: as many as if all rows were like the first."""
        return self.size * self.reader.row_bytes(self.first)


class Loader:
    """Iterate it once for each epoch; `SegDataset.loader` makes it, and explains its options.

    A batch is the user's as long as anything of it is left. `state_dict` tells what the user has received, not what was
    gathered; `len` is the number of batches of a whole epoch, which schedules and trainers count with, also when the
    coming pass brings only the rest of one.
    """

    def __init__(self, batches: Batches, order: Order, ahead: Ahead, output: Output, pin_memory: bool | None) -> None:
        if output not in ("torch", "numpy"):
            raise RequestError(f'output={output!r} is neither "torch" nor "numpy"')
        self.order = order
        self.batch_size = batches.size
        self._batches = batches
        self._ahead = ahead
        self._output = output
        self._pin_memory = pin_memory
        pinned = pin_memory if pin_memory is not None else output == "torch" and torch.cuda.is_available()
        self._lease: Lease = _pinned if pinned else Slots(2 * (ahead.batches + 2)).lease

    def __len__(self) -> int:
        return self._batches.count(self.order.whole())

    @property
    def threads(self) -> int:
        """How many gather batches."""
        return self._ahead.workers

    @property
    def padding(self) -> int:
        """How many rows come twice in the pass, all ranks together, so that all ranks get equally many."""
        return self.order.padding

    def set_epoch(self, epoch: int) -> None:
        """Which epoch comes next; without it, the one after the last that was received to its end."""
        self.order.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where the user is: plain numbers, the same for all ranks that have received equally many batches."""
        return self.order.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken, also with another number of ranks or another batch size."""
        self.order.load_state_dict(state)

    def to(
        self,
        device: str | torch.device = "cuda",
        *,
        dtype: torch.dtype | None = None,
        normalize: Moments | bool = False,
        channels_last: bool = False,
        label_dtype: torch.dtype | None = None,
        augment: Augment | None = None,
        ahead: int = 1,
    ) -> DeviceBatches:
        """The same batches on a device; options as of `to_device`.

        `normalize=True`: by the mean and deviation of the split. One-hot labels travel as indices where they are stored
        so. What `augment` draws at random with PyTorch follows from seed, epoch and rank.
        """
        classes, batches = None, self._batches
        if batches.reader.expands:
            classes, batches = batches.reader.label.numbers, replace(batches, reader=batches.reader.as_stored())
        moments = self._batches.moments if normalize is True else normalize or None
        finish = Finish(dtype, moments, channels_last, classes, label_dtype, augment)
        source = Loader(batches, self.order, self._ahead, "torch", self._pin_memory)
        return DeviceBatches(source, torch.device(device), finish, ahead, self._batch_seed)

    def _batch_seed(self) -> int:
        """A number that no other batch has."""
        order = self.order
        return int(keys_of(order.seed, order.epoch, "augment", order.consumed, order.rank)[0])

    def __iter__(self) -> Iterator[Batch]:
        return self._pass(self.order.begin())

    def _pass(self, epoch: Epoch) -> Iterator[Batch]:
        process = os.getpid()
        waiting: deque[tuple[Numbers, Future[Batch]]] = deque()
        received = 0
        # An executor's threads end with the interpreter, whatever it is that holds this pass.
        pool = ThreadPoolExecutor(self._ahead.workers, "segpack-loader")
        asker = ThreadPoolExecutor(1, "segpack-loader-asks")  # it waits for the disk; not started where it is not asked
        try:
            planned = self._planned(epoch, asker)

            def gather_up_to(many: int) -> None:
                for rows in islice(planned, many - len(waiting)):
                    waiting.append((rows, pool.submit(self._gather, epoch, rows)))

            gather_up_to(1)  # the first is waited for: nothing else may slow it down
            while waiting:
                rows, gathered = waiting.popleft()
                if not received:
                    wait([gathered])
                gather_up_to(self._ahead.batches)
                received += len(rows)
                yield self._received(epoch, received, gathered)
                if os.getpid() != process:
                    raise ReadError("a pass through a loader does not go on in a forked process: begin a new one there")
            self.order.consumed = epoch.rows
        finally:
            for one in (pool, asker):
                one.shutdown(wait=False, cancel_futures=True)

    def _received(self, epoch: Epoch, rows: int, gathered: Future[Batch]) -> Batch:
        """The batch, which from here on only the user holds."""
        batch = gathered.result()
        self.order.consumed = epoch.consumed(rows)
        return batch

    def _planned(self, epoch: Epoch, asker: ThreadPoolExecutor) -> Iterator[Numbers]:
        """The rows of each batch; the rows of later ones are asked for ahead, about half of `AHEAD_BYTES` at a time."""
        batches = self._batches.rows(epoch)
        yield from islice(batches, self._ahead.batches + 1)  # these are read at once: nothing may come before them
        size = self._batches.bytes() if epoch.count else 0
        if size < self._batches.size * LEAST_ASKED:
            yield from batches
            return
        many = max(1, min(AHEAD_BATCHES, AHEAD_BYTES // size) // 2)
        coming: deque[list[Numbers]] = deque()
        while True:
            while len(coming) < 2 and (group := list(islice(batches, many))):
                asker.submit(self._batches.reader.want, self._batches.places(np.concatenate(group)))
                coming.append(group)
            if not coming:
                return
            yield from coming.popleft()

    def _gather(self, epoch: Epoch, rows: Numbers) -> Batch:
        images, labels = self._batches.read(epoch, rows, self._lease)
        if self._ahead.drop_behind:
            self._batches.reader.let_go(self._batches.places(rows))
        if self._output == "numpy":
            return images, labels
        return _tensor(images), _tensor(labels)


def _tensor(array: NDArray[Any]) -> torch.Tensor:
    """The array as a tensor; one that is pinned is the very tensor that PyTorch pinned."""
    return array.base if isinstance(array.base, torch.Tensor) else torch.from_numpy(array)


def _pinned(shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Memory that a GPU copies from by itself. PyTorch recycles it, and waits for copies that are under way."""
    kind = np.dtype(dtype).newbyteorder("=")
    return torch.empty(shape, dtype=getattr(torch, kind.name), pin_memory=True).numpy()
