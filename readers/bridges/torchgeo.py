"""TorchGeo: the rows of a pack as a NonGeoDataset, for its data modules and trainers.

    from torchgeo.datamodules import NonGeoDataModule
    from torchgeo.trainers import SemanticSegmentationTask
    from readers.bridges.torchgeo import PackTiles

    data = NonGeoDataModule(PackTiles, batch_size=8, num_workers=2, root="out")  # the splits "train", "val" and "test"
    train = PackTiles("out", "train")
    task = SemanticSegmentationTask(
        num_classes=len(train.classes), ignore_index=train.classes.ignore_index, in_channels=train.channels
    )

Samples are {"image": float32, "mask": long}, and other fields by their names. Numbers stay as stored: NonGeoDataModule
divides them by 255. `torchgeo_map` reads the same pack by coordinates.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from torchgeo.datasets import NonGeoDataset

from readers.contract.classes import ClassTable
from readers.contract.errors import RequestError
from readers.contract.fields import LABEL
from readers.contract.kinds import PICTURE, VALUES
from readers.whole_labels import channels_of, open_whole

Sample = dict[str, Any]
Transforms = Callable[[Sample], Sample] | None
MASK = "mask"


class PackSamples:
    """Opens a pack, and makes samples of its rows."""

    def open_pack(self, root: str | os.PathLike[str], split: str | None, options: dict[str, Any]) -> None:
        self.data = open_whole(root, split, **options)
        if len(self.data.fields[0].sides) == 3:
            raise RequestError(f"{root}: has volumes, and TorchGeo reads pictures; pack slices, without --volumes")

    @property
    def classes(self) -> ClassTable:
        """The classes in order; `classes.names`, `classes.ignore_index`."""
        return self.data.classes

    @property
    def channels(self) -> int:
        """The bands of the first picture of a row."""
        return channels_of(self.data)

    def sample_of(self, tensors: Any) -> Sample:
        sample = {}
        for field, tensor in zip(self.data.fields, tensors, strict=True):
            name = MASK if field.name == LABEL else field.name
            sample[name] = tensor.float() if field.kind in (PICTURE, VALUES) else tensor.long()
        return sample


class PackTiles(PackSamples, NonGeoDataset):
    """The rows of a split. `options` go to `open_dataset`, such as `fold=0` or `fields=("image",)`."""

    def __init__(
        self, root: str | os.PathLike[str], split: str | None = None, transforms: Transforms = None, **options: Any
    ) -> None:
        self.open_pack(root, split, options)
        self.transforms = transforms

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Sample:
        sample = self.sample_of(self.data[index])
        return sample if self.transforms is None else self.transforms(sample)
