"""Train Unet of segmentation_models_pytorch twice: over files with a DataLoader, and over a pack with its own loader.

    tools/run trainers.segmentation_models_pytorch [--folder EMPTY]

No bridge is needed: the library has models, losses and metrics, and takes tensors of any loader.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import segmentation_models_pytorch as smp
import torch
from scenes.numbered import IGNORED, pack_streets, write_streets
from scenes.pictures import read_picture
from torch.utils.data import DataLoader, Dataset

from readers import CenterCrop, Order, RandomCrop, SegDataset, open_dataset
from trainers.comparison import Comparison, Epoch, compared, report

SIZE = (64, 96)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""The numbers of `smp.encoders.get_preprocessing_params("resnet18")`, which downloads them."""
Batches = Iterable[tuple[torch.Tensor, torch.Tensor]]


class FileRows(Dataset[Any]):
    """Pairs of files, read as in the library's examples: a window, normalised as the encoder wants it."""

    def __init__(self, folder: Path, random: bool = False) -> None:
        self.images = sorted(folder.glob("images/*"))
        self.random = random

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        path = self.images[index]
        image = read_picture(path)
        label = cv2.imread(str(path.parents[1] / "labels" / f"{path.stem}.png"), cv2.IMREAD_GRAYSCALE)
        assert label is not None
        spare = [side - part for side, part in zip(label.shape, SIZE, strict=True)]
        top, left = (int(torch.randint(0, most + 1, ())) if self.random else most // 2 for most in spare)
        window = slice(top, top + SIZE[0]), slice(left, left + SIZE[1])
        pixels = torch.from_numpy(image[window].copy()).permute(2, 0, 1).float() / 255
        mean, std = (torch.tensor(numbers, dtype=torch.float32).view(3, 1, 1) for numbers in (MEAN, STD))
        return (pixels - mean) / std, torch.from_numpy(label[window].copy()).long()


def write_both(folder: Path) -> tuple[Path, Path]:
    """Write raw files with class numbers, and a pack of them. Return both folders."""
    write_streets(folder / "raw")
    pack_streets(folder / "pack")
    return folder / "raw", folder / "pack"


def of_pack(rows: SegDataset, crop: CenterCrop, shuffle: bool) -> Batches:
    """Return a loader of a pack: windows, numbers from 0 to 1, normalised, labels as CrossEntropyLoss takes them."""
    batches = rows.loader(6, shuffle=shuffle, seed=7, crop=crop)
    return batches.to("cpu", dtype=torch.float32, normalize=(MEAN, STD), label_dtype=torch.long)


def trained(train: Any, val: Batches, classes: int) -> tuple[list[float], float]:
    """Train. Return the loss of each epoch, and the library's IoU of the validation split."""
    torch.manual_seed(7)
    model = smp.Unet("resnet18", encoder_weights=None, classes=classes)
    dice = smp.losses.DiceLoss("multiclass", ignore_index=IGNORED)
    focal = smp.losses.FocalLoss("multiclass", ignore_index=IGNORED)
    optimizer = torch.optim.AdamW(model.parameters(), 0.001)
    epochs = []
    for epoch in range(2):
        losses = []
        getattr(train, "sampler", train).set_epoch(epoch)
        for images, labels in train:
            scores = model(images)
            loss = dice(scores, labels) + focal(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        epochs.append(sum(losses) / len(losses))
    model.eval()
    with torch.no_grad():
        counts = [
            smp.metrics.get_stats(
                model(images).argmax(1), labels, mode="multiclass", num_classes=classes, ignore_index=IGNORED
            )
            for images, labels in val
        ]
    return epochs, float(smp.metrics.iou_score(*map(torch.cat, zip(*counts, strict=True)), reduction="micro"))


def compare(folder: Path) -> Comparison:
    raw, pack = write_both(folder)
    rows = {split: open_dataset(pack, split=split, label="index") for split in ("train", "val")}
    order = Order(rows["train"], shuffle=True, seed=7)  # the order of our loader, for theirs
    opened: dict[str, tuple[Any, Any]] = {
        "own": (DataLoader(FileRows(raw / "train"), 6, sampler=order), DataLoader(FileRows(raw / "val"), 6)),
        "pack": (of_pack(rows["train"], CenterCrop(SIZE), True), of_pack(rows["val"], CenterCrop(SIZE), False)),
    }
    pairs = [
        pair for own, ours in zip(opened["own"], opened["pack"], strict=True) for pair in zip(own, ours, strict=True)
    ]
    runs = {side: trained(*batches, len(rows["train"].classes)) for side, batches in opened.items()}
    return compared(
        "segmentation_models_pytorch",
        smp.__version__,
        samples=sum(len(own[1]) for own, _ in pairs),
        images=[(own[0], ours[0]) for own, ours in pairs],
        labels=[(own[1], ours[1]) for own, ours in pairs],
        runs=runs,
        metric="IoU (micro)",
        ignored=IGNORED,
    )


def loaders(folder: Path) -> dict[str, Epoch]:
    """Return what starts an epoch of training batches of random windows, by name."""
    raw, pack = write_both(folder)
    files = partial(DataLoader, FileRows(raw / "train", random=True), 6, shuffle=True)
    made = {
        "own": files(),
        "own, 2 workers": files(num_workers=2, persistent_workers=True),
        "pack": of_pack(open_dataset(pack, split="train", label="index"), RandomCrop(SIZE), True),
    }
    return {name: partial(iter, batches) for name, batches in made.items()}


def enlarge(side: int = 512) -> None:
    """Take windows of the usual size, for `trainers.speed`."""
    globals()["SIZE"] = (side, side)


def main() -> None:
    report(compare, __doc__)
