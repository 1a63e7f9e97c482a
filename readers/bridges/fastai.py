"""fastai: DataLoaders of a pack for `unet_learner`, whose batch transforms do the rest.

    from fastai.vision.all import *
    from readers.bridges.fastai import pack_dataloaders

    dls = pack_dataloaders("out", bs=8, batch_tfms=[*aug_transforms(), Normalize.from_stats(*imagenet_stats)])
    loss = CrossEntropyLossFlat(axis=1, ignore_index=dls.ignore_index)
    unet_learner(dls, resnet18, loss_func=loss, metrics=DiceMulti()).fit_one_cycle(5)

Pixels are divided by 255, as fastai does it. Transforms of a picture before the batch, such as `Resize`, are done when
the pack is built: `--size 256x256`, because all pictures of a batch have one size. `train=` and `valid=` name the
splits, `options=dict(fold=0)` a fold.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from fastai.data.core import DataLoaders
from fastai.data.transforms import IntToFloatTensor
from fastai.vision.core import TensorImage, TensorMask

from readers.labelled_pictures import open_pictures


class PackItems:
    """The rows of a split as pairs of TensorImage and TensorMask."""

    def __init__(self, root: str | os.PathLike[str], split: str, split_idx: int, options: dict[str, Any]) -> None:
        self.data = open_pictures(root, split, **options)
        self.split_idx = split_idx  # 0 is for training: fastai augments nothing else

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image, label = self.data[index]
        return TensorImage(image), TensorMask(label)


def pack_dataloaders(
    root: str | os.PathLike[str],
    train: str = "train",
    valid: str = "val",
    batch_tfms: Sequence[Any] = (),
    options: dict[str, Any] | None = None,
    **loading: Any,
) -> Any:
    """Return DataLoaders of two splits. `options` go to `open_dataset`, `loading` to DataLoaders, such as `bs=8`."""
    items = [PackItems(root, split, number, options or {}) for number, split in enumerate((train, valid))]
    dls = DataLoaders.from_dsets(*items, after_batch=[IntToFloatTensor(), *batch_tfms], **loading)
    classes = items[0].data.classes
    dls.vocab, dls.c, dls.ignore_index = [*classes.names], len(classes), classes.ignore_index
    return dls
