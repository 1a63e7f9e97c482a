"""torchvision's detectors: pictures and targets of objects, from a pack with a field of ids.

from readers.bridges.torchvision import DetectionRows, collate

train = DetectionRows("out", "train")  # transforms=: of torchvision.transforms.v2; fold= and more of open_dataset
model = maskrcnn_resnet50_fpn(weights=None, num_classes=train.num_classes)
for images, targets in DataLoader(train, 2, shuffle=True, num_workers=4, collate_fn=collate):
    losses = model(images, targets)  # boxes, labels, masks, image_id, area, iscrowd
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils.data import Dataset
from torchvision.transforms import v2
from torchvision.tv_tensors import BoundingBoxes, Image, Mask

from readers.labelled_pictures import ids_field, open_pictures
from readers.objects import Objects, things_of

Target = dict[str, Any]
PLAIN = v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.ToPureTensor()])
"""The transforms that a detector needs at least: numbers from 0 to 1."""


class DetectionRows(Dataset[tuple[torch.Tensor, Target]]):
    """Pictures and targets, as in the library's tutorial: boxes by `masks_to_boxes`, class 0 is the background.

    `things`: the classes of objects, by default all but a background. `ids`: the field of their numbers, by default
    the only one. Objects that are one pixel wide or high have no box there, and are left out. `image_id` is the row.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        split: str | None,
        /,
        transforms: Callable[[Image, Target], tuple[Any, Target]] = PLAIN,
        things: Sequence[str] | None = None,
        ids: str | None = None,
        **options: Any,
    ) -> None:
        manifest = open_pictures(root, split, **options).manifest
        fields = ("image", "label", ids_field(os.fspath(root), manifest, ids))
        self.rows = open_pictures(root, split, fields, **options)
        self.transforms = transforms
        self.things = things_of(manifest.classes, things)
        self.categories = ("__background__", *(manifest.classes.names[thing] for thing in self.things))
        """The name of each label, as `weights.meta["categories"]` of the library has them."""
        self.num_classes = len(self.categories)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, Target]:
        image, label, ids = self.rows[index]
        objects = Objects.of(ids.numpy(), label.numpy(), self.things)
        boxes = torch.from_numpy(objects.boxes()).float()
        boxes[:, 2:] -= 1  # the library ends a box at the middle of its last pixel
        sides = boxes[:, 2:] - boxes[:, :2]
        kept = (sides > 0).all(1)
        target = {
            "boxes": BoundingBoxes(boxes[kept], format="XYXY", canvas_size=label.shape),
            "labels": torch.from_numpy(objects.classes)[kept] + 1,
            "masks": Mask(torch.from_numpy(objects.masks())[kept].to(torch.uint8)),
            "image_id": index,
            "area": sides[kept].prod(1),
            "iscrowd": torch.zeros(int(kept.sum()), dtype=torch.int64),
        }
        return self.transforms(Image(image), target)


def collate(rows: Sequence[tuple[torch.Tensor, Target]]) -> tuple[tuple[torch.Tensor, ...], tuple[Target, ...]]:
    """Return the pictures and the targets of a batch, each of its own size."""
    images, targets = zip(*rows, strict=True)
    return images, targets
