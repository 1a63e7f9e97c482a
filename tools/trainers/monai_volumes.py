"""Train a 3D U-Net of MONAI on scans: with its LoadImaged over NIfTI files, and with a pack.

tools/run trainers.monai_volumes [--folder FOLDER]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import monai
import nibabel
import numpy as np
import torch
from monai.data import CacheDataset, DataLoader, Dataset, ThreadDataLoader, decollate_batch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import (
    AsDiscrete,
    Compose,
    LoadImaged,
    Orientationd,
    RandCropByPosNegLabeld,
    RandFlipd,
    ScaleIntensityRanged,
)

from packer import build_pack
from readers.bridges.monai import PackList
from trainers.comparison import Comparison, Epoch, compared, report

nib: Any = nibabel
KEYS = ("image", "label")
CLASSES = ("background", "organ", "tumour")
WINDOW = (16, 16, 16)
SPLITS = {"train": range(6), "val": range(6, 8)}
EPOCHS = 4
LOADED = LoadImaged(KEYS, ensure_channel_first=True)


def write_scans(raw: Path) -> None:
    """Write a scan of 16 bits with balls in balls, of other sides and at another place each, and its label."""
    for split, numbers in SPLITS.items():
        for number in numbers:
            rng = np.random.default_rng(number)
            sides = (30 + number, 26, 20 + number % 3)
            far = np.sqrt(sum((axis - side / 2) ** 2 for axis, side in zip(np.indices(sides), sides, strict=True)))
            label = (far < 9).astype(np.uint8) + (far < 5).astype(np.uint8)
            image = (label * 90.0 + rng.normal(-60, 40, sides)).astype(np.int16)
            affine = np.array([[-0.8, 0.1, 0, 30 + number], [0.1, 0.8, 0, -20], [0, 0, 2.5, 7], [0, 0, 0, 1]])
            folder = raw / split / f"case_{number}"
            folder.mkdir(parents=True)
            for name, voxels in (("ct", image), ("seg", label)):
                nib.Nifti1Image(voxels, affine).to_filename(folder / f"{name}.nii.gz")


def files(raw: Path, split: str) -> list[dict[str, str]]:
    """Return the list that MONAI reads, in the order of the pack."""
    cases = sorted((raw / split).iterdir())
    return [{"image": str(case / "ct.nii.gz"), "label": str(case / "seg.nii.gz")} for case in cases]


def prepare(folder: Path) -> tuple[Path, Path]:
    """Write the scans, and pack them."""
    raw, pack = folder / "raw", folder / "pack"
    write_scans(raw)
    image, label = "{split}/{key}/ct", "{split}/{key}/seg"
    build_pack(raw, pack, image=image, label=label, volumes=True, classes=CLASSES, labels="index", workers=1)
    return raw, pack


def steps(*, training: bool, reading: Sequence[Any] = ()) -> Compose:
    """Return the transforms of a tutorial of MONAI; those that read files come first, a pack needs none."""
    usual = [Orientationd(KEYS, axcodes="RAS"), ScaleIntensityRanged("image", -160, 240, 0.0, 1.0, clip=True)]
    drawn = [RandCropByPosNegLabeld(KEYS, "label", WINDOW, num_samples=2), RandFlipd(KEYS, 0.5, 0)]
    return Compose([*reading, *usual, *(drawn if training else [])])


def learn(train: Any, val: Any) -> tuple[list[float], float]:
    """Return the loss of each epoch, and the mean Dice of sliding windows over the whole scans."""
    monai.utils.set_determinism(0)
    train.transform.set_random_state(0)
    net = UNet(spatial_dims=3, in_channels=1, out_channels=len(CLASSES), channels=(8, 16), strides=(2,))
    loss_of, optimizer = DiceCELoss(to_onehot_y=True, softmax=True), torch.optim.Adam(net.parameters(), 0.01)
    losses = []
    for _ in range(EPOCHS):
        batches = []
        for batch in DataLoader(train, batch_size=2, shuffle=True):
            optimizer.zero_grad()
            loss = loss_of(net(batch["image"]), batch["label"])
            loss.backward()
            optimizer.step()
            batches.append(float(loss.detach()))
        losses.append(float(np.mean(batches)))
    onehot, choose = AsDiscrete(to_onehot=len(CLASSES)), AsDiscrete(argmax=True, to_onehot=len(CLASSES))
    dice = DiceMetric(include_background=False)
    with torch.no_grad():
        for batch in DataLoader(val, batch_size=1):
            scores = sliding_window_inference(batch["image"], WINDOW, 4, net.eval(), overlap=0.5)
            dice(
                [choose(one) for one in decollate_batch(scores)],
                [onehot(one) for one in decollate_batch(batch["label"])],
            )
    return losses, float(dice.aggregate())


def compare(folder: Path) -> Comparison:
    """Compare all scans as they are loaded and turned to RAS, and train from both."""
    raw, pack = prepare(folder)
    rows = {split: (files(raw, split), PackList(pack, split)) for split in SPLITS}
    turned = steps(training=False)
    loaded = [LOADED(names) for names in rows["train"][0]]
    pairs = [
        pair
        for own, packed in zip(loaded, rows["train"][1], strict=True)
        for pair in ((own, packed), (turned(dict(own)), turned(dict(packed))))
    ]
    trained = {
        side: learn(
            Dataset(rows["train"][number], steps(training=True, reading=reading)),
            Dataset(rows["val"][number], steps(training=False, reading=reading)),
        )
        for number, (side, reading) in enumerate({"own": [LOADED], "pack": []}.items())
    }
    pictures = [(own["image"], packed["image"]) for own, packed in pairs]
    turned_codes = nib.aff2axcodes(pairs[1][1]["image"].affine.numpy())
    stored_codes = nib.aff2axcodes(pairs[0][1]["image"].affine.numpy())
    return compared(
        "MONAI",
        monai.__version__,
        samples=len(pairs),
        images=[*pictures, *((own.affine, packed.affine) for own, packed in pictures)],
        labels=[(own["label"], packed["label"]) for own, packed in pairs],
        runs=trained,
        metric="DiceMetric of sliding_window_inference",
        note=f"Sides and affine are those of LoadImaged: {''.join(stored_codes)} in the file, and after "
        f'Orientationd("RAS") {"".join(turned_codes)} in both, voxel for voxel. The affines are compared, too.',
    )


def loaders(folder: Path) -> dict[str, Epoch]:
    """Return an epoch of each loader: files read again, by workers, kept in memory; the pack, in threads."""
    raw, pack = prepare(folder)
    reading, packed = steps(training=True, reading=[LOADED]), Dataset(PackList(pack, "train"), steps(training=True))
    own = Dataset(files(raw, "train"), reading)
    cached = CacheDataset(files(raw, "train"), reading, progress=False)
    batches = partial(DataLoader, batch_size=2, shuffle=True)
    return {
        "own": lambda: batches(own),
        "own, 2 workers": lambda: batches(own, num_workers=2),
        "own, cached": lambda: ThreadDataLoader(cached, batch_size=2, shuffle=True),
        "pack": lambda: ThreadDataLoader(packed, batch_size=2, shuffle=True),
        "pack, 2 workers": lambda: batches(packed, num_workers=2),
    }


def main() -> None:
    report(compare, __doc__)


if __name__ == "__main__":
    main()
