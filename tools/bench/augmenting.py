"""The cost of augmenting on the CPU: the recipes of docs/recipes with windows of 256x256, in samples per second.

pip install -c docs/recipes/constraints.txt '.[recipes]'
packer build --labels index --ignore void data_samples/raw PACK
tools/run bench.augmenting PACK
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from program import REPO, parser
from torch.utils.data import DataLoader

from readers import SegDataset, open_dataset

RECIPES = REPO / "docs" / "recipes"
BATCH, ROUNDS, SAMPLES = 16, 3, 72


def recipe(name: str) -> Any:
    """Return a recipe as a module, with windows of the size that people train with."""
    module = ModuleType(name)
    text = (RECIPES / f"{name}.py").read_text()
    exec(compile(text.replace("(48, 48)", "(256, 256)"), name, "exec"), module.__dict__)  # noqa: S102
    return module


def passes(data: SegDataset, **options: Any) -> Iterator[int]:
    """Yield the sizes of endless batches that `.to()` has finished."""
    crop = options.pop("crop", None)
    while True:
        for images, _ in data.loader(BATCH, shuffle=True, crop=crop, flip=crop is not None).to("cpu", **options):
            yield len(images)


def by_dali(data: SegDataset) -> Iterator[int]:
    """Yield the same from the pipeline of DALI."""
    dali = recipe("dali")
    source = dali.Source(data.loader(BATCH, shuffle=True, output="numpy"))
    pipeline = dali.augmented(source, "cpu", data.mean, data.std, batch_size=BATCH, device_id=None)
    while True:
        for images, _ in dali.one_epoch(pipeline):
            yield len(images)


def by_workers(data: SegDataset, transform: Any) -> Iterator[int]:
    """Yield the same from a DataLoader of two workers whose transform augments."""
    samples = open_dataset(data.root, data.split, "index", transform)
    rows = [row for row in range(len(data)) for _ in range(10_000)]
    for images, _ in DataLoader(samples, BATCH, sampler=rows, num_workers=2):
        yield len(images)


def rate(batches: Iterator[int]) -> float:
    """Return the samples per second over SAMPLES samples."""
    started, samples = time.perf_counter(), 0
    while samples < SAMPLES:
        samples += next(batches)
    return samples / (time.perf_counter() - started)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("pack", type=Path)
    data = open_dataset(options.parse_args().pack, "train", "index")
    whole = {"normalize": True}
    makers: dict[str, Callable[[], Iterator[int]]] = {
        "normalised only": lambda: passes(data, **whole),
        "loader, crop=, flip=": lambda: passes(data, crop=(256, 256), **whole),
        "torchvision v2, .to(augment=)": lambda: passes(data, augment=recipe("tv_tensors").batch, **whole),
        "Kornia, .to(augment=)": lambda: passes(data, augment=recipe("kornia_augment").augment, **whole),
        "DALI": lambda: by_dali(data),
        "torchvision v2, 2 workers": lambda: by_workers(data, recipe("tv_tensors").sample),
        "Albumentations, 2 workers": lambda: by_workers(data, recipe("albumentations_transform").augment),
    }
    running = {name: make() for name, make in makers.items()}
    for batches in running.values():
        next(batches)
    rates: dict[str, list[float]] = {name: [] for name in running}
    for _ in range(ROUNDS):  # in turns, so a busy moment of the machine hits all of them
        for name, batches in running.items():
            rates[name].append(rate(batches))
    print(f"{data.size(0)[0]}x{data.size(0)[1]} pictures, torch {torch.__version__}, load {os.getloadavg()[0]:.1f}")
    for name, found in rates.items():
        print(f"{name:32}{statistics.median(found):8.0f}{min(found):8.0f}{max(found):8.0f}   median, least, most")
