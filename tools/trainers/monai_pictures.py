"""Train a 2D U-Net of MONAI on pictures: with its LoadImaged over PNG files, and with a pack.

tools/run trainers.monai_pictures [--folder FOLDER]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import monai
import numpy as np
import torch
from monai.data import CacheDataset, DataLoader, Dataset, ThreadDataLoader
from monai.metrics import DiceMetric
from monai.networks import one_hot
from monai.networks.nets import UNet
from monai.transforms import Compose, LoadImaged, RandFlipd, RandSpatialCropd, ScaleIntensityd
from scenes.numbered import IGNORED, NAMES, pack_numbered, write_numbered

from readers.bridges.monai import PackList
from trainers.comparison import Comparison, Epoch, compared, report

KEYS = ("image", "label")
EPOCHS = 3
WINDOW = (48, 48)
LOADED = LoadImaged(KEYS, ensure_channel_first=True)


def files(raw: Path, split: str) -> list[dict[str, str]]:
    """Return the list that MONAI reads, in the order of the pack."""
    labels = sorted((raw / split / "labels").iterdir())
    return [{"image": str(raw / split / "images" / label.name), "label": str(label)} for label in labels]


def prepare(folder: Path) -> tuple[Path, Path]:
    """Write the pictures, and pack them."""
    raw, pack = folder / "raw", folder / "pack"
    write_numbered(raw)
    pack_numbered(raw, pack)
    return raw, pack


def steps(*, training: bool, reading: Sequence[Any] = ()) -> Compose:
    """Return the transforms; those that read files come first, a pack needs none."""
    drawn = [RandSpatialCropd(KEYS, WINDOW, random_size=False), RandFlipd(KEYS, 0.5, 0)]
    return Compose([*reading, ScaleIntensityd("image"), *(drawn if training else [])])


def learn(train: Any, val: Any) -> tuple[list[float], float]:
    """Return the loss of each epoch, and the mean Dice of the pixels that are not ignored."""
    monai.utils.set_determinism(0)
    train.transform.set_random_state(0)
    net = UNet(spatial_dims=2, in_channels=3, out_channels=len(NAMES), channels=(8, 16), strides=(2,))
    loss_of, optimizer = torch.nn.CrossEntropyLoss(ignore_index=IGNORED), torch.optim.Adam(net.parameters(), 0.02)
    losses = []
    for _ in range(EPOCHS):
        batches = []
        for batch in DataLoader(train, batch_size=2, shuffle=True):
            optimizer.zero_grad()
            loss = loss_of(net(batch["image"]), batch["label"][:, 0].long())
            loss.backward()
            optimizer.step()
            batches.append(float(loss.detach()))
        losses.append(float(np.mean(batches)))
    dice = DiceMetric()
    with torch.no_grad():
        for batch in DataLoader(val, batch_size=1):
            counts = batch["label"] != IGNORED
            found = one_hot(net.eval()(batch["image"]).argmax(1, keepdim=True), len(NAMES))
            dice(found * counts, one_hot(batch["label"] * counts, len(NAMES)) * counts)
    return losses, float(dice.aggregate())


def compare(folder: Path) -> Comparison:
    """Compare all pictures as they are loaded, and train from both."""
    raw, pack = prepare(folder)
    rows = {split: (files(raw, split), PackList(pack, split)) for split in ("train", "val")}
    pairs = [(LOADED(own), packed) for own, packed in zip(*rows["train"], strict=True)]
    trained = {
        side: learn(
            Dataset(rows["train"][number], steps(training=True, reading=reading)),
            Dataset(rows["val"][number], steps(training=False, reading=reading)),
        )
        for number, (side, reading) in enumerate({"own": [LOADED], "pack": []}.items())
    }
    return compared(
        "MONAI",
        monai.__version__,
        samples=len(pairs),
        images=[(own["image"], packed["image"]) for own, packed in pairs],
        labels=[(own["label"], packed["label"]) for own, packed in pairs],
        runs=trained,
        metric="DiceMetric",
        ignored=IGNORED,
        note="(C,W,H) in both, because LoadImaged reads PNG files with x first",
    )


def loaders(folder: Path) -> dict[str, Epoch]:
    """Return an epoch of each loader: files read again, by workers, kept in memory; the pack, in threads."""
    raw, pack = prepare(folder)
    reading, packed = steps(training=True, reading=[LOADED]), Dataset(PackList(pack, "train"), steps(training=True))
    own = Dataset(files(raw, "train"), reading)
    cached = CacheDataset(files(raw, "train"), reading, progress=False)
    batches = partial(DataLoader, batch_size=4, shuffle=True)
    return {
        "own": lambda: batches(own),
        "own, 2 workers": lambda: batches(own, num_workers=2),
        "own, cached": lambda: ThreadDataLoader(cached, batch_size=4, shuffle=True),
        "pack": lambda: ThreadDataLoader(packed, batch_size=4, shuffle=True),
        "pack, 2 workers": lambda: batches(packed, num_workers=2),
    }


def enlarge(side: int = 512) -> None:
    """Take windows of the usual size, for `trainers.speed`."""
    globals()["WINDOW"] = (side, side)


def main() -> None:
    report(compare, __doc__)


if __name__ == "__main__":
    main()
