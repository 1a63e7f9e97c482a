"""The two pipelines: raw files through a DataLoader, and a pack through its loader. All later steps are the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from readers import DeviceBatches, Order, to_device
from train_demo.augment import Augment
from train_demo.packed import Packed
from train_demo.raw_pairs import raw_loader


class Epochs(Protocol):
    """An object with the number of the epoch: a `Loader`, or the `Order` of a DataLoader."""

    def set_epoch(self, epoch: int) -> None: ...


@dataclass(frozen=True)
class Setup:
    """The options that both pipelines share."""

    packed: Packed
    device: torch.device
    batch: int
    seed: int

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of images on the device."""
        return torch.bfloat16 if self.device.type == "cuda" else torch.float32


@dataclass(frozen=True)
class Pipeline:
    """Finished batches on the device, and the objects that take the number of the epoch."""

    batches: DeviceBatches
    order: Epochs
    augment: Augment

    def epoch(self, number: int) -> DeviceBatches:
        """Return the batches of an epoch, which starts when they are iterated."""
        self.order.set_epoch(number)
        self.augment.begin(number)
        return self.batches


def raw_files(setup: Setup, workers: int) -> Pipeline:
    """Return the pipeline that decodes raw files in every epoch."""
    dataset, augment = setup.packed.dataset, Augment(setup.device, setup.seed)
    order = Order(len(setup.packed.pieces), shuffle=True, seed=setup.seed)
    loader = raw_loader(setup.packed, setup.batch, workers, order, setup.device.type == "cuda")
    mean_std = dataset.mean, dataset.std
    return Pipeline(to_device(loader, normalize=mean_std, **_finish(setup, augment)), order, augment)


def pack(setup: Setup) -> Pipeline:
    """Return the pipeline of the pack, which has nothing to tune."""
    augment = Augment(setup.device, setup.seed)
    loader = setup.packed.dataset.loader(setup.batch, shuffle=True, seed=setup.seed, drop_last=True)
    return Pipeline(loader.to(normalize=True, **_finish(setup, augment)), loader, augment)


def _finish(setup: Setup, augment: Augment) -> dict[str, Any]:
    """Return the options that finish the batches of both pipelines."""
    return {
        "device": setup.device,
        "dtype": setup.dtype,
        "channels_last": True,
        "label_dtype": torch.long,
        "augment": augment,
    }


def same_batches(pipelines: Iterable[Pipeline]) -> int:
    """Compare all batches bit for bit, and return the batches of an epoch. Raise SystemExit if they differ."""
    passes = [iter(pipeline.epoch(0)) for pipeline in pipelines]
    count = 0
    for number, batches in enumerate(zip(*passes, strict=True)):
        for part, name in enumerate(("images", "labels")):
            first, *others = (batch[part] for batch in batches)
            if not all(first.equal(other) for other in others):
                raise SystemExit(f"batch {number} of epoch 0: the {name} differ, so the trainings would differ")
        count = number + 1
    if not count:
        raise SystemExit("there are fewer pairs than one batch needs; choose a smaller --batch")
    return count
