"""Who trains: raw files through a DataLoader, and a pack through its loader. From there on both are alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch

from readers import DeviceBatches, Order, to_device
from train_demo.augment import Augment
from train_demo.packed import Packed
from train_demo.raw import raw_loader
from train_demo.timing import Source


class Epochs(Protocol):
    """What is told which epoch comes: a `Loader`, or the `Order` of a DataLoader."""

    def set_epoch(self, epoch: int) -> None: ...


@dataclass(frozen=True)
class Setting:
    """What is the same for both."""

    packed: Packed
    device: torch.device
    batch: int
    seed: int

    @property
    def dtype(self) -> torch.dtype:
        """Of images on the device."""
        return torch.bfloat16 if self.device.type == "cuda" else torch.float32


@dataclass(frozen=True)
class Contender:
    """Batches on the device, and the source that they are waited for."""

    batches: DeviceBatches
    source: Source
    order: Epochs
    augment: Augment

    def epoch(self, number: int) -> Iterator[Any]:
        """Finished batches of an epoch, as they come."""
        self.order.set_epoch(number)
        self.augment.begin(number)
        return iter(self.batches)


def raw_files(setting: Setting, workers: int) -> Contender:
    """Decoded in every epoch."""
    order = Order(len(setting.packed.pieces), shuffle=True, seed=setting.seed)
    loader = raw_loader(setting.packed, setting.batch, workers, order, setting.device.type == "cuda")
    return _contender(setting, loader, order)


def pack(setting: Setting) -> Contender:
    """Decoded once; nothing is there to be tuned."""
    loader = setting.packed.dataset.loader(setting.batch, shuffle=True, seed=setting.seed, drop_last=True)
    return _contender(setting, loader, loader)


def pack_as_told(setting: Setting) -> Contender:
    """The same in one call, as the README has it; there is no place in it for a clock."""
    loader = setting.packed.dataset.loader(setting.batch, shuffle=True, seed=setting.seed, drop_last=True)
    augment = Augment(setting.device, setting.seed)
    batches = loader.to(
        setting.device,
        dtype=setting.dtype,
        normalize=True,
        channels_last=True,
        label_dtype=torch.long,
        augment=augment,
    )
    return Contender(batches, Source(()), loader, augment)


def _contender(setting: Setting, batches: Iterable[Any], order: Epochs) -> Contender:
    dataset, source = setting.packed.dataset, Source(batches)
    augment = Augment(setting.device, setting.seed)
    finished = partial(to_device, normalize=(dataset.mean, dataset.std), channels_last=True, label_dtype=torch.long)
    return Contender(finished(source, setting.device, dtype=setting.dtype, augment=augment), source, order, augment)


def same_batches(contenders: Iterable[Contender]) -> int:
    """How many batches an epoch has, once all contenders have delivered the same bits; SystemExit where they differ."""
    passes = [contender.epoch(0) for contender in contenders]
    count = 0
    for number, batches in enumerate(zip(*passes, strict=True)):
        for part, name in enumerate(("images", "labels")):
            first, *others = (batch[part] for batch in batches)
            if not all(first.equal(other) for other in others):
                raise SystemExit(f"batch {number} of epoch 0: the {name} differ, so no training would be the same")
        count = number + 1
    if not count:
        raise SystemExit("there are fewer pairs than one batch needs: choose a smaller --batch")
    return count
