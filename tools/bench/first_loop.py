"""One epoch of the loop that people write at first, next to one epoch of a pack of the same files.

    tools/run bench.first_loop [--pairs 1260] [--side 512] [--workers 0 2] [--rounds 5] [--keep FOLDER]

The loop decodes an image and a colour label with Pillow, compares the label with the colour of each of 12 classes, and
lets PyTorch's DataLoader collate batches of 16. The pack holds the same pairs; its loader delivers the same tensors,
images and one-hot planes, and also index labels. 32 rows of both are compared first.
"""

from __future__ import annotations

import datetime
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image
from program import parser
from scenes.pictures import CLASS_TABLE, write_class_table, write_picture
from scenes.squares import sample_scenes
from scenes.street import Pixels
from tables import line
from torch.utils.data import DataLoader, Dataset

from readers import open_dataset

BATCH = 16
WIDTHS = (-24, 10)
COLOURS = np.array([[20 * number, 255 - 15 * number, (83 * number) % 256] for number in range(12)], np.uint8)


class FirstLoop(Dataset[Any]):
    """A data set that decodes an image and its label, and makes a plane for each class."""

    def __init__(self, raw: Path) -> None:
        self.images = sorted((raw / "images").iterdir())
        self.labels = sorted((raw / "labels").iterdir())

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> tuple[torch.Tensor, torch.Tensor]:
        image = np.array(Image.open(self.images[row]).convert("RGB"))
        label = np.array(Image.open(self.labels[row]).convert("RGB"))
        planes = np.stack([np.all(label == colour, axis=-1) for colour in COLOURS])
        return torch.from_numpy(image).permute(2, 0, 1), torch.from_numpy(planes.astype(np.uint8))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pairs", type=int, default=1260, help="default: %(default)s")
    options.add_argument("--side", type=int, default=512, help="height and width; default: %(default)s")
    options.add_argument(
        "--workers", type=int, nargs="+", default=[0, 2], help="workers of the loop's DataLoader; default: %(default)s"
    )
    options.add_argument("--rounds", type=int, default=5, help="epochs of the pack; default: %(default)s")
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="make the data there and keep it for the next run")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = chosen.keep or Path(folder)
        raw, pack = root / "raw", root / "pack"
        draw(raw, chosen.pairs, chosen.side)
        build = [sys.executable, "-m", "packer", "build", "--labels", "index", "--quiet", str(raw), str(pack)]
        started = time.perf_counter()
        subprocess.run(build, check=True)
        built = time.perf_counter() - started
        now = datetime.datetime.now(datetime.timezone.utc)
        print(f"{now:%Y-%m-%d %H:%M} UTC; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        print(f"{chosen.pairs} pairs of {chosen.side}x{chosen.side}, {len(COLOURS)} classes, batches of {BATCH}")
        report(raw, pack, chosen.workers, chosen.rounds, built)


def report(raw: Path, pack: Path, workers: list[int], rounds: int, built: float) -> None:
    """Time every way to read an epoch and print a line for each."""
    naive, dataset = FirstLoop(raw), open_dataset(pack, label="onehot")
    for row in range(0, len(naive), max(len(naive) // 32, 1)):
        if not all(torch.equal(a, b) for a, b in zip(naive[row], dataset[row], strict=True)):
            sys.exit(f"row {row} of the pack is not what the loop decodes")
    for number in workers:
        seconds = epoch(DataLoader(naive, BATCH, shuffle=True, num_workers=number))
        print(line((f"loop, {number} workers", f"{seconds:.2f} s"), WIDTHS))
    print(line(("packer build, once", f"{built:.2f} s"), WIDTHS))
    for labels in ("onehot", "index"):
        loader = dataset.loader(BATCH, shuffle=True, labels=labels)
        times = [epoch(loader) for _ in range(rounds)]
        median, extremes = f"{statistics.median(times):.2f} s", f"  {min(times):.2f} to {max(times):.2f}"
        print(line((f"loader, {labels}", median), WIDTHS) + extremes)


def epoch(batches: Iterable[Any]) -> float:
    """Return the time until all batches were delivered."""
    started = time.perf_counter()
    for _ in batches:
        pass
    return time.perf_counter() - started


def draw(raw: Path, count: int, side: int) -> None:
    """Write pairs, no two alike: shifted scenes with 12 classes, and a class table."""
    if (raw / CLASS_TABLE).is_file():
        return
    scenes = [(resized(image, side), resized(twelve(label), side)) for image, label in sample_scenes(count)]
    for row in range(count):
        image, label = (np.roll(part, 7 * row, axis=1) for part in scenes[row % len(scenes)])
        write_picture(raw / "images" / f"{row:05}.png", image)
        write_picture(raw / "labels" / f"{row:05}.png", COLOURS[label])
    write_class_table(
        raw / CLASS_TABLE, [(f"class {number}", colour) for number, colour in enumerate(COLOURS.tolist())]
    )


def twelve(label: Pixels) -> Pixels:
    """Cut three more classes out of the three largest ones: 9, 10 and 11 are their left halves."""
    label = label.copy()
    left = np.arange(label.shape[1]) < label.shape[1] // 2
    for number in range(3):
        label[(label == number) & left] = 9 + number
    return label


def resized(pixels: Pixels, side: int) -> Pixels:
    return np.asarray(cv2.resize(pixels, (side, side), interpolation=cv2.INTER_NEAREST), np.uint8)
