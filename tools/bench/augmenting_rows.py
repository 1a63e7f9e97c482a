"""The rows that bench.augmenting augments: pictures of 1024x2048 with labels, and volumes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from drills.volumes import nifti
from numpy.typing import NDArray
from scenes.repeated import repeat_shard

from bench.run_build import run_build
from readers import SegDataset, open_dataset

HEIGHT, WIDTH, CLASSES = 1024, 2048, 8
VOLUMES, SIDES = 6, (288, 288, 200)
RADIUS = 25
TIMES = 64
"""The times that each row is in the pack: so the end of an epoch is rare."""


@dataclass(frozen=True)
class Pictures:
    """A pack of pictures (3, 1024, 2048), and the same rows as arrays with channels last, for who wants these."""

    data: SegDataset
    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]


def pictures(root: Path, count: int) -> Pictures:
    """Make the pictures, unless an earlier run did. The brighter a pixel, the higher is its class."""
    arrays, out = root / f"arrays_{count}", root / f"pictures_{count}"
    files = [arrays / "images.npy", arrays / "labels.npy"]
    if not out.is_dir():
        arrays.mkdir(parents=True, exist_ok=True)
        images = np.lib.format.open_memmap(files[0], "w+", np.uint8, (count, HEIGHT, WIDTH, 3))
        labels = np.lib.format.open_memmap(files[1], "w+", np.uint8, (count, HEIGHT, WIDTH))
        for row in range(count):
            images[row], labels[row] = _picture(row)
        names = ["--from", arrays, "--image", "images", "--label", "labels"]
        _build(out, [*names, "--classes", CLASSES])
    return Pictures(open_dataset(out, label="index"), *(np.load(file, mmap_mode="r") for file in files))


def _picture(seed: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return smooth fields with noise, and the class of each pixel."""
    dice = np.random.default_rng(seed)
    coarse = dice.random((6, 11, 3)).astype(np.float32)
    fields: NDArray[Any] = cv2.resize(coarse, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
    label = (fields[..., 0] * CLASSES).clip(0, CLASSES - 1).astype(np.uint8)
    bright = 20.0 + 24 * label[..., None] + 20 * fields + dice.normal(0, 5, fields.shape).astype(np.float32)
    return bright.clip(0, 255).astype(np.uint8), label


def volumes(root: Path) -> SegDataset:
    """Make a pack of raw volumes of 16 bits, in which a class is rare, unless an earlier run did."""
    raw, out = root / "volumes_raw", root / "volumes"
    if not out.is_dir():
        for number in range(VOLUMES):
            image, label = _volume(number)
            for folder, volume in (("images", image), ("labels", label)):
                (raw / folder).mkdir(parents=True, exist_ok=True)
                (raw / folder / f"{number}.nii").write_bytes(nifti(volume))
        names = ["--from", raw, "--volumes", "--image", "images/{key}", "--label", "labels/{key}"]
        _build(out, [*names, "--classes", "2"])
    return open_dataset(out, label="index")


def _volume(number: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return a ball of another brightness somewhere in noise, and the class of each voxel."""
    dice = np.random.default_rng(number)
    middle = [int(dice.integers(30, side - 30)) for side in SIDES]
    x, y, z = np.ogrid[: SIDES[0], : SIDES[1], : SIDES[2]]
    inside = (x - middle[0]) ** 2 + (y - middle[1]) ** 2 + (z - middle[2]) ** 2 < RADIUS**2
    numbers = dice.normal(0, 30, SIDES).astype(np.int16) + 300 * inside.astype(np.int16)
    return np.asfortranarray(numbers), np.asfortranarray(inside.astype(np.uint8))


def _build(out: Path, options: list[object]) -> None:
    """Pack all rows in one shard, and make the pack say that it has many of them."""
    run_build(["build", *options, "--labels", "index", "--shard-size", "4GiB", out])
    repeat_shard(out, TIMES)
