"""`to_device`: batches that are on their way to the device while it works at the one before, and are finished there."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from readers.contract.errors import RequestError

Augment = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""Takes images as numbers from 0 to 1 and labels as they travel, indices or stored planes, a whole batch of each, and
gives both back."""
Moments = tuple[Sequence[float], Sequence[float]]
"""Mean and standard deviation of each channel, of pixels from 0 to 1."""
Seed = Callable[[], int]


@dataclass(frozen=True)
class Finish:
    """What becomes of a batch on the device: images as numbers, augmented, normalised; labels as planes or numbers."""

    dtype: torch.dtype | None = None
    normalize: Moments | None = None
    channels_last: bool = False
    classes: int | None = None
    """Labels are indices, to be expanded to planes of so many classes."""
    label_dtype: torch.dtype | None = None
    augment: Augment | None = None

    def __post_init__(self) -> None:
        if self.dtype is not None and not self.dtype.is_floating_point:
            raise RequestError(f"dtype={self.dtype}: expected a floating-point type, or None to leave images as stored")
        if self.normalize is not None and not all(deviation > 0 for deviation in self.normalize[1]):
            raise RequestError(f"normalize={self.normalize}: expected (means, deviations), deviations above 0")

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The batch as the user gets it; the same numbers on every device, to rounding."""
        dtype = self.dtype or (torch.float32 if self.normalize or self.augment else images.dtype)
        if dtype != images.dtype or self.normalize or self.augment:
            images = self._numbers(images, dtype)
        if self.augment is not None:
            images, labels = self.augment(images, labels)
        if self.normalize is not None:
            mean, deviation = (_channels(tuple(map(float, one)), images.device) for one in self.normalize)
            images = ((images - mean) / deviation).to(dtype)
        if self.channels_last:
            images = images.contiguous(memory_format=torch.channels_last)
        return images, self._labels(labels)

    def _numbers(self, images: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Pixels from 0 to 1. What is yet to be normalised is rounded to the wanted type after that."""
        exact = torch.float32 if self.normalize is not None else dtype
        if images.dtype.is_floating_point:
            return images.to(exact)
        return (images.to(torch.float32) / 255).to(exact)

    def _labels(self, labels: torch.Tensor) -> torch.Tensor:
        if self.classes is not None:
            numbers = torch.arange(self.classes, dtype=labels.dtype, device=labels.device)
            labels = labels.unsqueeze(1) == numbers.view(1, -1, 1, 1)  # an ignored pixel is of no class
            return labels.to(self.label_dtype or torch.uint8)
        return labels if self.label_dtype is None else labels.to(self.label_dtype)


@lru_cache(maxsize=16)
def _channels(values: tuple[float, ...], device: torch.device) -> torch.Tensor:
    """A number for each channel. Made once: to bring it to a GPU waits for the GPU."""
    return torch.tensor(values, device=device).view(1, -1, 1, 1)


@dataclass(frozen=True)
class _Sent:
    """A batch that is on the device, or will be once `arrived` has happened there."""

    batch: tuple[Any, ...]
    arrived: torch.cuda.Event | None
    state: Mapping[str, Any] | None
    """Where its source was after it."""


class DeviceBatches:
    """Iterate it as its source; `to_device` and `Loader.to` make it.

    With CUDA, copies and everything of `Finish` run on a stream of their own, `ahead` batches before use. What comes
    out may be used on the current stream at once, and is the user's as any tensor.
    """

    def __init__(
        self, batches: Iterable[Any], device: torch.device, finish: Finish, ahead: int, seed: Seed | None
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
        """Seconds in all for which batches were waited for; the rest of the time was spent on bringing them there."""

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    @property
    def source(self) -> Iterable[Any]:
        """Where the batches come from."""
        return self._batches

    def set_epoch(self, epoch: int) -> None:
        """As of the source."""
        self._state = None
        self._batches.set_epoch(epoch)  # type: ignore[attr-defined]

    def state_dict(self) -> dict[str, Any]:
        """Of the source, as if it had delivered no more than the user has received."""
        return dict(self._batches.state_dict() if self._state is None else self._state)  # type: ignore[attr-defined]

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """As of the source."""
        self._state = None
        self._batches.load_state_dict(state)  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        self._state = None
        return self._pass(iter(self._batches))

    def _pass(self, source: Iterator[Any]) -> Iterator[tuple[Any, ...]]:
        stream = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None  # type: ignore[no-untyped-call]
        waiting: deque[_Sent] = deque()
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

    def _sent(self, batch: Sequence[Any], stream: torch.cuda.Stream | None) -> _Sent:
        state = self._batches.state_dict() if hasattr(self._batches, "state_dict") else None
        with torch.cuda.stream(stream) if stream else nullcontext():
            there = self._finished(batch)
            return _Sent(there, stream.record_event() if stream else None, state)

    def _finished(self, batch: Sequence[Any]) -> tuple[Any, ...]:
        if not (isinstance(batch, (tuple, list)) and len(batch) >= 2):
            raise RequestError(f"a batch is a {type(batch).__name__}, where images and labels are expected")
        images, labels, *others = (self._there(part) for part in batch)
        if self._seed is None or self._finish.augment is None:
            return (*self._finish(images, labels), *others)
        devices = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(devices):
            torch.manual_seed(self._seed())
            return (*self._finish(images, labels), *others)

    def _there(self, part: Any) -> Any:
        if not isinstance(part, torch.Tensor):
            return part
        if self._device.type == "cuda" and part.device.type == "cpu" and not part.is_pinned():
            part = part.pin_memory()  # the GPU fetches it by itself; PyTorch keeps it until that is done
        return part.to(self._device, non_blocking=True)

    def _received(self, sent: _Sent) -> tuple[Any, ...]:
        """The batch, usable on the current stream, and not recycled before that stream is done with it."""
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
    normalize: Moments | None = None,
    channels_last: bool = False,
    classes: int | None = None,
    label_dtype: torch.dtype | None = None,
    augment: Augment | None = None,
    ahead: int = 1,
) -> DeviceBatches:
    """Batches (images, labels, …) of any iterable, a DataLoader for one, on the device before they are needed.

    Images become `dtype` from 0 to 1 (None: as they are), then `augment(images, labels)` is called, then they are
    normalised by `(means, deviations)` and laid out `channels_last`. Labels of indices become planes of so many
    `classes`, or `label_dtype` (a loss function may want torch.long).
    """
    finish = Finish(dtype, normalize, channels_last, classes, label_dtype, augment)
    return DeviceBatches(batches, torch.device(device), finish, ahead, None)
