"""Who trains: raw files through a DataLoader, and a pack through its loader. From there on both are alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from readers import DeviceBatches, Order, to_device
from train_demo.augment import Augment
from train_demo.packed import Packed
from train_demo.raw import raw_loader


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
    """Finished batches on the device, and what is told which epoch comes."""

    batches: DeviceBatches
    order: Epochs
    augment: Augment

    def epoch(self, number: int) -> DeviceBatches:
        """The batches of an epoch, which begins when they are iterated."""
        self.order.set_epoch(number)
        self.augment.begin(number)
        return self.batches


def raw_files(setting: Setting, workers: int) -> Contender:
    """Decoded in every epoch."""
    dataset, augment = setting.packed.dataset, Augment(setting.device, setting.seed)
    order = Order(len(setting.packed.pieces), shuffle=True, seed=setting.seed)
    loader = raw_loader(setting.packed, setting.batch, workers, order, setting.device.type == "cuda")
    moments = dataset.mean, dataset.std
    return Contender(to_device(loader, normalize=moments, **_finish(setting, augment)), order, augment)


def pack(setting: Setting) -> Contender:
    """Decoded once; nothing is there to be tuned."""
    augment = Augment(setting.device, setting.seed)
    loader = setting.packed.dataset.loader(setting.batch, shuffle=True, seed=setting.seed, drop_last=True)
    return Contender(loader.to(normalize=True, **_finish(setting, augment)), loader, augment)


def _finish(setting: Setting, augment: Augment) -> dict[str, Any]:
    """What becomes of the batches of both."""
    return {
        "device": setting.device,
        "dtype": setting.dtype,
        "channels_last": True,
        "label_dtype": torch.long,
        "augment": augment,
    }


def same_batches(contenders: Iterable[Contender]) -> int:
    """How many batches an epoch has, once all contenders have delivered the same bits; SystemExit where they differ."""
    passes = [iter(contender.epoch(0)) for contender in contenders]
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
