"""MONAI: the rows of a pack in the place of a list of files, so that its data sets and dict transforms take them.

    from monai.data import DataLoader, Dataset  # or CacheDataset, ThreadDataLoader, …
    from readers.bridges.monai import PackList

    rows = PackList("out", split="train")
    train = Dataset(rows, transform)  # transform: what you have, without LoadImaged and EnsureChannelFirstd
    loader = DataLoader(train, batch_size=2, shuffle=True, num_workers=2)
    network = UNet(…, in_channels=rows.channels, out_channels=len(rows.classes))

A row is what `LoadImaged(keys, ensure_channel_first=True)` makes of its files: float32, channels first, then the sides
with x first: (C,W,H), of volumes (C,W,H,D). `reverse_indexing=False` gives (C,H,W) and (C,D,H,W), as readers of MONAI
do. The affine follows the sides. `SaveImaged` names its file after the key.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from monai.data import MetaTensor
from numpy.typing import NDArray

from readers.contract.classes import ClassTable
from readers.contract.errors import RequestError
from readers.contract.fields import IMAGE, LABEL
from readers.contract.place import GEO, Place
from readers.whole_labels import channels_of, open_whole

Rows = Sequence[dict[str, Any]]


class PackList(Rows):
    """The rows of a split as dicts of MetaTensors, by the names of the fields.

    `options` go to `open_dataset`, such as `fold=0`. Pixels that the pack ignores have the number
    `classes.ignore_index`; losses and metrics of MONAI know no such number, so map it to a class, or mask it.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str | None = None,
        fields: Sequence[str] = (IMAGE, LABEL),
        reverse_indexing: bool = True,
        **options: Any,
    ) -> None:
        if options.get("transform") is not None:
            raise RequestError(f"{root}: transform= of PackList; give it to monai.data.Dataset(rows, transform)")
        self.data = open_whole(root, split, fields, **options)
        self.reverse_indexing = reverse_indexing

    @property
    def classes(self) -> ClassTable:
        """The classes in order; `classes.names`, `classes.ignore_index`."""
        return self.data.classes

    @property
    def channels(self) -> int:
        """The channels of the first picture of a row."""
        return channels_of(self.data)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[row] for row in range(len(self))[index]]
        arrays = [tensor.numpy() for tensor in self.data[index]]
        sides = len(self.data.size(index))
        facts = self._facts(index, sides)
        names = [field.name for field in self.data.fields]
        return {name: self._tensor(array, sides, facts) for name, array in zip(names, arrays, strict=True)}

    def _facts(self, index: int, sides: int) -> dict[str, Any]:
        """Return what MONAI keeps about a file."""
        size, place = self.data.size(index), self.data.place(index)
        facts: dict[str, Any] = {"filename_or_obj": self.data.key(index), "original_channel_dim": 0}
        facts["spatial_shape"] = np.array(size[::-1] if self.reverse_indexing else size)
        if place is not None:
            affine = centred_affine(place)
            order = [*range(sides)] if self.reverse_indexing else [*reversed(range(sides))]
            affine[:, :sides] = affine[:, order]
            facts |= {"affine": affine, "original_affine": affine.copy()}
        return facts

    def _tensor(self, array: NDArray[Any], sides: int, facts: dict[str, Any]) -> Any:
        planes = array.reshape(-1, *array.shape[array.ndim - sides :])  # a label has one channel
        if self.reverse_indexing:
            planes = planes.transpose(0, *range(sides, 0, -1))
        meta = {name: np.copy(fact) if isinstance(fact, np.ndarray) else fact for name, fact in facts.items()}
        return MetaTensor.ensure_torch_and_prune_meta(torch.from_numpy(planes.astype(np.float32)), meta)


def centred_affine(place: Place) -> NDArray[np.float64]:
    """Return the affine of MONAI, (4, 4), from the centres of pixels with x first to the world.

    A map has z = 0. A slice is as thick as its row is high, and has no neighbours.
    """
    affine = np.eye(4)
    if place.kind == GEO:
        affine[:2, :2], affine[:2, 3] = place.matrix[:, :2], place.at(0.5, 0.5)
        return affine
    matrix = place.matrix
    affine[:3, : matrix.shape[1] - 1], affine[:3, 3] = matrix[:, :-1], matrix[:, -1]
    if matrix.shape[1] == 3:  # a slice: the third axis is upright on the two others
        upright = np.cross(matrix[:, 0], matrix[:, 1])
        affine[:3, 2] = upright / (np.linalg.norm(upright) or 1.0)
    return affine
