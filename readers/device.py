"""`to_device`: copies batches to the device, and finishes them there, while the model works on the batch before."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import torch

from readers.contract.errors import RequestError
from readers.contract.fields import IMAGE, LABEL
from readers.finish import Augment, Finish
from readers.finish_each import COUNTS, FinishEach
from readers.on_device import RawBatch
from readers.statistics import MeanStd
from readers.training_receipt import plain

Seed = Callable[[], int]


@dataclass(frozen=True)
class _SentBatch:
    """A batch that is on the device, or will be once the event `arrived` has happened there."""

    batch: tuple[Any, ...]
    arrived: torch.cuda.Event | None
    state: Mapping[str, Any] | None
    """The state of the source after this batch."""


class DeviceBatches:
    """Batches of a source, finished on a device. `to_device` and `Loader.to` return it; iterate it as the source.

    With CUDA, copies and all steps of `Finish` run on a stream of their own, `ahead` batches before use. The tensors
    can be used on the current stream at once, and kept like any other.
    """

    def __init__(
        self, batches: Iterable[Any], device: torch.device, finish: Finish | FinishEach, ahead: int, seed: Seed | None
    ) -> None:
        if ahead < 1:
            raise RequestError(f"ahead={ahead}: expected a number from 1 on")
        self._batches = batches
        self._device = device
        self._finish = finish
        self._ahead = ahead
        self._seed = seed
        self._state: Mapping[str, Any] | None = None
        self.waited = 0.0
        """Seconds spent waiting for the source. The rest of the time for a batch is copying and finishing."""

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    @property
    def source(self) -> Iterable[Any]:
        """The source of the batches."""
        return self._batches

    def receipt(self) -> dict[str, Any]:
        """Return the receipt of the source, with the order as the user has received it, and the steps on the device."""
        receipt: dict[str, Any] = self._batches.receipt()  # type: ignore[attr-defined]
        order = {**receipt["order"], **plain(self.state_dict())}
        return {**receipt, "order": order, "device": {"name": self._device.type, "steps": plain(self._finish)}}

    def set_epoch(self, epoch: int) -> None:
        """Call `set_epoch` of the source."""
        self._state = None
        self._batches.set_epoch(epoch)  # type: ignore[attr-defined]

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the source, as if it had delivered no more than the user has received."""
        return dict(self._batches.state_dict() if self._state is None else self._state)  # type: ignore[attr-defined]

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Call `load_state_dict` of the source."""
        self._state = None
        self._batches.load_state_dict(state)  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        self._state = None
        return self._pass(iter(self._batches))

    def _pass(self, source: Iterator[Any]) -> Iterator[tuple[Any, ...]]:
        stream = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None  # type: ignore[no-untyped-call]
        waiting: deque[_SentBatch] = deque()
        try:
            for batch in self._timed(source):
                waiting.append(self._sent(batch, stream))
                if len(waiting) > self._ahead:
                    yield self._received(waiting.popleft())
            while waiting:
                yield self._received(waiting.popleft())
            self._state = None  # the source knows that its pass is over
        finally:
            if isinstance(source, Generator):
                source.close()

    def _timed(self, source: Iterator[Any]) -> Iterator[Any]:
        while True:
            asked = time.perf_counter()
            try:
                batch = next(source)
            except StopIteration:
                return
            finally:
                self.waited += time.perf_counter() - asked
            yield batch

    def _sent(self, batch: Sequence[Any], stream: torch.cuda.Stream | None) -> _SentBatch:
        state = self._batches.state_dict() if hasattr(self._batches, "state_dict") else None
        with torch.cuda.stream(stream) if stream else nullcontext():
            finished = self._finished(batch)
            return _SentBatch(finished, stream.record_event() if stream else None, state)

    def _finished(self, batch: Sequence[Any]) -> tuple[Any, ...]:
        fields = self._finish.fields
        if isinstance(batch, RawBatch):
            batch = batch.moved(self._on_device).made()
        if not (isinstance(batch, (tuple, list)) and len(batch) >= len(fields)):
            expected = "images and labels" if fields == (IMAGE, LABEL) else " and ".join(map(repr, fields))
            raise RequestError(f"a batch is a {type(batch).__name__}; expected a tuple or list of {expected}")
        parts = [part if name == COUNTS else self._on_device(part) for part, name in zip_longest(batch, fields)]
        parts, others = parts[: len(fields)], parts[len(fields) :]
        if self._seed is None or self._finish.augment is None:
            return (*self._finish(*parts), *others)
        devices = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(devices):
            torch.manual_seed(self._seed())
            return (*self._finish(*parts), *others)

    def _on_device(self, part: Any) -> Any:
        if not isinstance(part, torch.Tensor):
            return part
        if self._device.type == "cuda" and part.device.type == "cpu" and not part.is_pinned():
            part = part.pin_memory()  # the GPU copies it by itself; PyTorch keeps it until then
        return part.to(self._device, non_blocking=True)

    def _received(self, sent: _SentBatch) -> tuple[Any, ...]:
        """Return the batch, usable on the current stream, whose memory is kept until that stream is done with it."""
        self._state = sent.state
        if sent.arrived is not None:
            current = torch.cuda.current_stream(self._device)
            current.wait_event(sent.arrived)
            for part in sent.batch:
                if isinstance(part, torch.Tensor):
                    part.record_stream(current)
        return sent.batch


def to_device(
    batches: Iterable[Any],
    device: str | torch.device = "cuda",
    *,
    dtype: torch.dtype | None = None,
    normalize: MeanStd | None = None,
    channels_last: bool = False,
    classes: int | None = None,
    label_dtype: torch.dtype | None = None,
    augment: Augment | None = None,
    ahead: int = 1,
    fields: Sequence[str] = (IMAGE, LABEL),
    nodata: float | None = None,
    times: int = 1,
) -> DeviceBatches:
    """Copy batches (images, labels, …) of any iterable, such as a DataLoader, to the device before they are needed.

    Images become `dtype` from 0 to 1 (None: unchanged), then `augment(images, labels)` is called, then they are
    normalised by `(means, deviations)` and laid out `channels_last`. Index labels become `classes` planes if that is
    given, and `label_dtype` (a loss function may need torch.long). `fields`: what the first parts of a batch are, if
    not images and labels; by default the data set's names. Pixels with the number `nodata` are 0 if images are
    normalised. `times`: the dates of images that are time series, (N, T, C, H, W).
    """
    names = tuple(fields)
    finish = Finish(dtype, normalize, channels_last, classes, label_dtype, augment, names, no_data=nodata, times=times)
    return DeviceBatches(batches, torch.device(device), finish, ahead, None)
