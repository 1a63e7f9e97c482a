"""`Loader`: whole batches, read by threads ahead of use, into memory that is used again when a batch is gone."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from itertools import count, islice, zip_longest
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from readers.batch_memory import BatchMemory, Lease
from readers.batch_reader import BatchOrder, BatchPass, BatchReader
from readers.batches import ReadAhead
from readers.contract.errors import ReadError, RequestError
from readers.contract.fields import IMAGE, Field
from readers.device import DeviceBatches
from readers.drawn import EVERY, BatchDraw, DrawnWindows
from readers.epoch import BatchRows
from readers.fetch_ahead import Fetching
from readers.finish import Augment, Finish
from readers.finish_each import FinishEach
from readers.on_device import RawBatch
from readers.open_passes import ends_at_exit
from readers.pack_batches import PackBatches
from readers.permutation import keys_of
from readers.statistics import MeanStd, mean_std_of, picture_of
from readers.training_receipt import fields_facts, plain
from readers.window_batches import KEYS

Output = Literal["torch", "numpy"]
Batch = tuple[Any, ...]
"""Images and labels, or other fields: tensors, or arrays of numpy."""

Facts = Callable[[], Mapping[str, Any]]
"""Returns the receipt of the rows of a loader, with the options that it was made with."""

PREFETCH_BYTES = 128 << 20
"""The most bytes that the kernel is asked to read ahead of use, where they are not in memory."""
PREFETCH_BATCHES = 32
PREFETCH_ROW_BYTES = 16 << 10
"""Smaller rows are not asked for: the kernel reads as much ahead by itself, and asking means opening their shards."""


class Loader:
    """Batches of one epoch after the other: iterate it once for each. `SegDataset.loader` makes it.

    A batch's memory is not written again as long as any array or tensor of it is left. `state_dict` counts what the
    user has received, not what was read ahead. `len` is the number of batches of a whole epoch, which schedules and
    trainers count with, also when the coming pass has only the rest of one.
    """

    def __init__(
        self,
        batches: BatchReader,
        order: BatchOrder,
        ahead: ReadAhead,
        output: Output,
        pin_memory: bool | None,
        memory: BatchMemory,
        facts: Facts,
    ) -> None:
        if output not in ("torch", "numpy"):
            raise RequestError(f'output={output!r} is neither "torch" nor "numpy"')
        if output == "numpy" and batches.tone is not None and batches.tone.bits_of:
            raise RequestError('dtype=torch.bfloat16 and output="numpy": NumPy has no such numbers')
        self.order = order
        self.batch_size = batches.size
        self._batches = batches
        self._ahead = ahead
        self._threads = ahead.workers  # the cores are counted here, and not again for each epoch
        self._output = output
        self._hands_raw = False  # True if the device makes the windows
        self._pin_memory = pin_memory
        pinned = pin_memory if pin_memory is not None else output == "torch" and torch.cuda.is_available()
        self._facts = facts
        self._memory = memory  # of the data set: the next loader finds the blocks of this one
        memory.keep = max(memory.keep, 2 * (ahead.batches + 2))
        self._lease: Lease = _pinned if pinned else memory.lease
        self._reads = count()
        self.drawn = DrawnWindows.of(batches.label)
        """The count of what was delivered since this loader was made; it prints as a table."""

    def __len__(self) -> int:
        return self.order.whole().batch_count(self.batch_size)

    def __repr__(self) -> str:
        order = self.order
        mix = f", {order.mix}" if hasattr(order, "mix") else ""
        rank = f", rank {order.rank} of {order.world_size}" if order.world_size > 1 else ""
        fields = ", ".join(map(_text, self._batches.fields))
        return (
            f"Loader({len(self)} batches of {self.batch_size}{mix}, {fields}, shuffle={order.shuffle!r}, "
            f"epoch {order.epoch}{rank})"
        )

    @property
    def threads(self) -> int:
        """The number of threads that read batches."""
        return self._threads

    @property
    def steps(self) -> tuple[str, ...]:
        """The options that cost the CPU more than a copy, such as `colour=`."""
        return self._batches.steps

    @property
    def padding(self) -> int:
        """The number of rows that come twice in the pass, over all ranks, so that all ranks get equally many."""
        return self.order.padding

    def set_epoch(self, epoch: int) -> None:
        """Set the next epoch; the default is the one after the last that was received to its end."""
        self.order.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return what the user has received: plain numbers, the same for all ranks with equally many batches."""
        return self.order.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken, also with another number of ranks or another batch size."""
        self.order.load_state_dict(state)

    def receipt(self) -> dict[str, Any]:
        """Return the pack, the rows, the options and the order as JSON, to keep next to a checkpoint.

        `order` is the state of today: its seed and epoch, and what was received.
        """
        order = {**self.order.state_dict(), "rank": self.order.rank, "world_size": self.order.world_size}
        delivered = {"batch_size": self.batch_size, "fields": fields_facts(self._batches.fields)}
        return {**self._facts(), **delivered, "order": plain(order)}

    def to(
        self,
        device: str | torch.device = "cuda",
        *,
        dtype: torch.dtype | None = None,
        normalize: MeanStd | bool | Literal["each"] = False,
        channels_last: bool = False,
        label_dtype: torch.dtype | None = None,
        augment: Augment | None = None,
        ahead: int = 1,
    ) -> DeviceBatches:
        """Return the same batches on a device; the options are the same as of `to_device`.

        `normalize=True`: by the mean and deviation of the training split, whichever split this is: a model must see
        the same numbers in training and after it; of several packs weighted by their shares. `normalize="each"`: each
        pack by its own. `normalize=(means, deviations)`: by these. One-hot labels travel as
        indices if they are stored as indices. Random numbers that `augment` draws with PyTorch follow from seed, epoch
        and rank.
        """
        batches, classes = self._batches.with_stored_labels()
        picture = picture_of(batches.fields)
        fields = batches.parts
        if augment is not None and KEYS in fields:
            raise RequestError("augment= changes pictures at random, and windows= are for evaluation: leave it out")
        tone = batches.tone
        if tone is not None and tone.mean_std is not None and normalize:
            raise RequestError("normalize= of loader() and of .to(): state it once")
        image = (IMAGE, None) if picture is None else (picture.name, picture.range)
        if tone is not None and tone.numbers is not None:
            image = (tone.field.name, None)  # the range is used up
        no_data = picture.fill_number if picture is not None and picture.no_data else None
        if tone is not None and tone.field is picture:
            no_data = tone.fill
        times = 1 if picture is None else picture.times

        def finish_by(mean_std: MeanStd | None) -> Finish:
            return Finish(dtype, mean_std, channels_last, classes, label_dtype, augment, fields, *image, no_data, times)

        finish: Finish | FinishEach
        if isinstance(normalize, str):
            batches, finish = _by_pack(batches, normalize, finish_by)
        else:
            finish = finish_by(mean_std_of(normalize, batches.mean_std))
        source = Loader(batches, self.order, self._ahead, "torch", self._pin_memory, self._memory, self._facts)
        source._hands_raw = True
        source.drawn = self.drawn
        return DeviceBatches(source, torch.device(device), finish, ahead, self._batch_seed)

    def _batch_seed(self) -> int:
        """Return a number that no other batch has."""
        order = self.order
        return int(keys_of(order.seed, order.epoch, "augment", order.consumed, order.rank)[0])

    def __iter__(self) -> Iterator[Batch]:
        return ends_at_exit(self._pass(self.order.begin()))

    def _pass(self, epoch: BatchPass) -> Generator[Batch, None, None]:
        process = os.getpid()
        waiting: deque[tuple[BatchRows, Future[tuple[Batch, BatchDraw]]]] = deque()
        begun = False
        fetching = self._batches.fetch_ahead(
            lambda: epoch.batches(self.batch_size), self.threads, self.order.world_size
        )
        # An executor's threads end with the interpreter, also when something still refers to this pass.
        pool = ThreadPoolExecutor(self.threads, "segpack-loader")
        prefetcher = ThreadPoolExecutor(
            1, "segpack-loader-prefetch"
        )  # waits for the disk; starts when it is first used
        try:
            batches = self._prefetched(epoch, prefetcher)

            def read_up_to(many: int) -> None:
                for rows in islice(batches, many - len(waiting)):
                    waiting.append((rows, pool.submit(self._read, rows)))

            # Nothing may slow the first batch of raw rows down. Rows that are unpacked leave the other cores idle.
            read_up_to(self.threads if self._batches.unpacks else 1)
            while waiting:
                rows, batch = waiting.popleft()
                if not begun:
                    wait([batch])
                    begun = True
                read_up_to(self._ahead.batches)
                yield self._received(rows, batch, fetching)
                if os.getpid() != process:
                    raise ReadError("a pass through a loader cannot go on in a forked process: begin a new pass there")
            self.order.finish()
        finally:
            if fetching is not None:
                fetching.close()
            for executor in (pool, prefetcher):
                executor.shutdown(wait=False, cancel_futures=True)

    def _received(self, rows: BatchRows, future: Future[tuple[Batch, BatchDraw]], fetching: Fetching | None) -> Batch:
        """Return the batch, to which from here on only the user refers."""
        batch, draw = future.result()
        self.drawn.add(draw)
        if fetching is not None:
            fetching.received()
        self.order.receive(rows.consumed)
        return batch

    def _prefetched(self, epoch: BatchPass, prefetcher: ThreadPoolExecutor) -> Iterator[BatchRows]:
        """Yield the rows of each batch; prefetch the rows of later ones, about half of `PREFETCH_BYTES` at a time."""
        batches = epoch.batches(self.batch_size)
        yield from islice(batches, self._ahead.batches + 1)  # read at once: no prefetch may come before them
        size = self._batches.bytes()
        if size < self._batches.size * PREFETCH_ROW_BYTES:
            yield from batches
            return
        many = max(1, min(PREFETCH_BATCHES, PREFETCH_BYTES // size) // 2)
        groups: deque[list[BatchRows]] = deque()
        while True:
            while len(groups) < 2 and (group := list(islice(batches, many))):
                prefetcher.submit(self._batches.prefetch, group)
                groups.append(group)
            if not groups:
                return
            yield from groups.popleft()

    def _read(self, rows: BatchRows) -> tuple[Batch, BatchDraw]:
        batch, draw = self._batches.drawn(rows, self._lease, counts=next(self._reads) % EVERY == 0)
        if self._ahead.drop_behind:
            self._batches.drop(rows)
        return self._output_of(batch), draw

    def _output_of(self, batch: tuple[Any, ...]) -> Batch:
        """Return a batch as the user asked for it."""
        if isinstance(batch, RawBatch):
            if self._hands_raw:
                return batch
            made = batch.made()
            return made if self._output == "torch" else tuple(tensor.numpy() for tensor in made)
        if self._output == "numpy":
            return batch
        tone = self._batches.tone
        bits = tone.bits_of if tone is not None else None
        tensors = zip_longest(self._batches.parts, map(_as_part, batch))  # the rows of each pack have no name
        return tuple(tensor.view(torch.bfloat16) if bits and name == bits else tensor for name, tensor in tensors)


def _by_pack(
    batches: BatchReader, normalize: str, finish_by: Callable[[MeanStd | None], Finish]
) -> tuple[BatchReader, FinishEach]:
    """Return the batches of several packs, and the steps that normalise the images of each by its own numbers."""
    if normalize != "each":
        raise RequestError(f'normalize={normalize!r}: expected True, "each" or (means, deviations)')
    if not isinstance(batches, PackBatches):
        raise RequestError(
            'normalize="each": only batches of mix_packs have several packs, and not with partners=; use True'
        )
    finish = FinishEach(tuple(finish_by(mean_std_of(True, mean_std)) for mean_std in batches.each_mean_std))
    return replace(batches, counts=True), finish


def _text(field: Field) -> str:
    """Return name, dtype and shape of a field, such as `image uint8 (3, 512, 1024)`."""
    shape = ", ".join("?" if side is None else str(side) for side in (*field.delivered_planes, *field.sides))
    return f"{field.name} {np.dtype(field.dtype).name} ({shape})"


def _as_part(part: Any) -> Any:
    """Return an array as a tensor; keys stay."""
    return as_tensor(part) if isinstance(part, np.ndarray) else part


def as_tensor(array: NDArray[Any]) -> torch.Tensor:
    """Return the array as a tensor; a pinned array is a view of the tensor that PyTorch pinned."""
    whole = array.base if isinstance(array.base, np.ndarray) else array  # a time series is a view with an axis more
    return whole.base.view(array.shape) if isinstance(whole.base, torch.Tensor) else torch.from_numpy(array)


def _pinned(shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Return memory that a GPU copies from by itself. PyTorch recycles it, and waits for copies that are under way."""
    kind = np.dtype(dtype).newbyteorder("=")
    return torch.empty(shape, dtype=getattr(torch, kind.name), pin_memory=True).numpy()
