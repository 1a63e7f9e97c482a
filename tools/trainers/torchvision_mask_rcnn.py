"""Train a small Mask R-CNN of torchvision twice: over files of instances, and over a pack with `DetectionRows`.

tools/run trainers.torchvision_mask_rcnn [--folder EMPTY]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torchvision
from PIL import Image
from scenes.discs import NAMES, pack_discs, write_discs
from torch.utils.data import DataLoader, Dataset
from torchvision import tv_tensors
from torchvision.models.detection import MaskRCNN
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor, TwoMLPHead
from torchvision.models.detection.mask_rcnn import MaskRCNNHeads, MaskRCNNPredictor
from torchvision.ops import MultiScaleRoIAlign
from torchvision.ops.boxes import masks_to_boxes
from torchvision.transforms import v2
from torchvision.transforms.v2.functional import pil_to_tensor

from readers.bridges.torchvision import PLAIN, DetectionRows, collate
from trainers.comparison import Comparison, Epoch, compared, report

SPLITS = {"train": 8, "val": 4}
SIDE = 96
AUGMENTED = v2.Compose([v2.RandomHorizontalFlip(0.5), PLAIN])
"""The augmentation of the library's tutorial."""
Row = tuple[torch.Tensor, dict[str, Any]]


class FileRows(Dataset[Row]):
    """Files of pictures, instances and classes, read as in the library's tutorial on finetuning."""

    def __init__(self, folder: Path, transforms: Callable[..., Any] = PLAIN) -> None:
        self.images = sorted(folder.glob("images/*"))
        self.transforms = transforms

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Row:
        path = self.images[index]
        image = read(path)
        mask, label = (read(path.parents[1] / kind / path.name)[0] for kind in ("instances", "labels"))
        numbers = torch.unique(mask)[1:]
        masks = (mask == numbers[:, None, None]).to(dtype=torch.uint8)
        boxes = masks_to_boxes(masks)
        target = {
            "boxes": tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=image.shape[-2:]),
            "masks": tv_tensors.Mask(masks),
            "labels": torch.stack([label[mask == number][0] for number in numbers]).long(),
            "image_id": index,
            "area": (boxes[:, 3] - boxes[:, 1]) * (boxes[:, 2] - boxes[:, 0]),
            "iscrowd": torch.zeros((len(numbers),), dtype=torch.int64),
        }
        row: Row = self.transforms(tv_tensors.Image(image), target)
        return row


def read(path: Path) -> torch.Tensor:
    """Return the pixels of a file, as `read_image` does with compiled operators."""
    pixels: torch.Tensor = pil_to_tensor(Image.open(path))
    return pixels


def write_both(folder: Path) -> dict[str, Callable[..., Any]]:
    """Draw discs and blocks as raw files, and pack them. Return what opens a split of each."""
    write_discs(folder / "raw", SPLITS, SIDE)
    pack_discs(folder / "raw", folder / "pack")
    return {
        "own": lambda split, *transforms: FileRows(folder / "raw" / split, *transforms),
        "pack": lambda split, transforms=PLAIN: DetectionRows(folder / "pack", split, transforms),
    }


def small_model() -> MaskRCNN:
    """Make a model with a backbone of its own, as in the library's tutorial, but small, with masks of 8 x 8."""
    layers: list[torch.nn.Module] = []
    for channels, more in ((3, 16), (16, 16), (16, 16)):
        layers += [torch.nn.Conv2d(channels, more, 3, 2, 1), torch.nn.BatchNorm2d(more), torch.nn.ReLU()]
    backbone: Any = torch.nn.Sequential(*layers)
    backbone.out_channels = 16
    return MaskRCNN(
        backbone, min_size=SIDE, max_size=SIDE, box_batch_size_per_image=16,
        rpn_anchor_generator=AnchorGenerator(sizes=((16, 32, 64),), aspect_ratios=((1.0,),)),
        rpn_pre_nms_top_n_train=50, rpn_post_nms_top_n_train=20,
        box_roi_pool=MultiScaleRoIAlign(["0"], 7, 2), mask_roi_pool=MultiScaleRoIAlign(["0"], 4, 2),
        box_head=TwoMLPHead(16 * 7 * 7, 64), box_predictor=FastRCNNPredictor(64, len(NAMES) + 1),
        mask_head=MaskRCNNHeads(16, (16,), 1), mask_predictor=MaskRCNNPredictor(16, 16, len(NAMES) + 1),
    )  # fmt: skip


def trained(train: Any, val: Any) -> tuple[list[float], float]:
    """Train. Return the loss of each epoch, and the loss that the library computes of the validation split."""
    torch.manual_seed(7)
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)

    def loss_of(batch: Any) -> torch.Tensor:
        losses: dict[str, torch.Tensor] = model(*batch)
        return torch.stack([*losses.values()]).sum()

    epochs = []
    for _ in range(2):
        losses = []
        for batch in DataLoader(train, 2, shuffle=True, collate_fn=collate):
            loss = loss_of(batch)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            losses.append(loss.item())
        epochs.append(sum(losses) / len(losses))
    with torch.no_grad():
        return epochs, sum(loss_of(batch).item() for batch in DataLoader(val, 2, collate_fn=collate))


def numbers_of(rows: Iterable[Row], *names: str) -> torch.Tensor:
    """Return numbers of targets in a row, or the pictures of "image"."""
    parts = [image if name == "image" else torch.as_tensor(target[name]) for image, target in rows for name in names]
    return torch.cat([part.flatten().float() for part in parts])


def compare(folder: Path) -> Comparison:
    torch.compiler.set_stance("force_eager")  # without compiled operators, the library would compile one for a minute
    opened = {side: (rows("train"), rows("val")) for side, rows in write_both(folder).items()}
    runs = {side: trained(*rows) for side, rows in opened.items()}
    rows = {side: [batch for part in opened[side] for batch in part] for side in opened}
    values = {side: numbers_of(rows[side], "image", "boxes", "area") for side in rows}
    labels = {side: numbers_of(rows[side], "masks", "labels", "image_id", "iscrowd") for side in rows}
    return compared(
        "torchvision",
        torchvision.__version__,
        samples=len(rows["own"]),
        images=[(values["own"], values["pack"])],
        labels=[(labels["own"], labels["pack"])],
        runs=runs,
        metric="the losses of the validation split, added",
    )


def loaders(folder: Path) -> dict[str, Epoch]:
    """Return what starts an epoch of training batches, with the augmentation of the library's tutorial, by name."""
    rows = {side: opened("train", AUGMENTED) for side, opened in write_both(folder).items()}
    loader = partial(DataLoader, batch_size=2, shuffle=True, collate_fn=collate)
    made = {
        "own": loader(rows["own"]),
        "own, 2 workers": loader(rows["own"], num_workers=2, persistent_workers=True),
        "pack": loader(rows["pack"]),
    }
    return {name: partial(iter, batches) for name, batches in made.items()}


def enlarge(side: int = 640) -> None:
    """Draw pictures of the usual size, for `trainers.speed`."""
    SPLITS["train"] = 200
    globals()["SIDE"] = side


def main() -> None:
    report(compare, __doc__)
