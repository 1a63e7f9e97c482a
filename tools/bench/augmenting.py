"""What augmenting costs on the CPU: the recipes of docs/recipes, each with windows of 256x256, samples per second.

pip install -c constraints.txt '.[recipes]' && packer build --labels index --ignore void data_samples/raw PACK
PYTHONPATH=tools python -m bench.augmenting PACK
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils.data import DataLoader

from readers import SegDataset, open_dataset

RECIPES = Path(__file__).resolve().parents[2] / "docs" / "recipes"
BATCH, ROUNDS, SAMPLES = 16, 3, 72


def recipe(name: str) -> Any:
    """A recipe as a module, whose windows are as large as people train with."""
    module = ModuleType(name)
    text = (RECIPES / f"{name}.py").read_text()
    exec(compile(text.replace("(48, 48)", "(256, 256)"), name, "exec"), module.__dict__)  # noqa: S102
    return module


def passes(data: SegDataset, **options: Any) -> Iterator[int]:
    """The sizes of batches without end, finished as `.to()` does."""
    crop = options.pop("crop", None)
    while True:
        for images, _ in data.loader(BATCH, shuffle=True, crop=crop, flip=crop is not None).to("cpu", **options):
            yield len(images)


def by_dali(data: SegDataset) -> Iterator[int]:
    """The same out of DALI's pipeline."""
    dali = recipe("dali")
    source = dali.Source(data.loader(BATCH, shuffle=True, output="numpy"))
    pipeline = dali.augmented(source, "cpu", data.mean, data.std, batch_size=BATCH, device_id=None)
    while True:
        for images, _ in dali.one_epoch(pipeline):
            yield len(images)


def by_workers(data: SegDataset, transform: Any) -> Iterator[int]:
    """The same out of a DataLoader of two workers, whose transform augments."""
    samples = open_dataset(data.root, data.split, "index", transform)
    rows = [row for row in range(len(data)) for _ in range(10_000)]
    for images, _ in DataLoader(samples, BATCH, sampler=rows, num_workers=2):
        yield len(images)


def rate(batches: Iterator[int]) -> float:
    """Samples per second, of so many."""
    started, samples = time.perf_counter(), 0
    while samples < SAMPLES:
        samples += next(batches)
    return samples / (time.perf_counter() - started)


def main(pack: str) -> None:
    """Each in turns, so that what else the machine does hits all alike."""
    data = open_dataset(pack, "train", "index")
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
    for _ in range(ROUNDS):
        for name, batches in running.items():
            rates[name].append(rate(batches))
    print(f"{data.size(0)[0]}x{data.size(0)[1]} pictures, torch {torch.__version__}, load {os.getloadavg()[0]:.1f}")
    for name, found in rates.items():
        print(f"{name:32}{statistics.median(found):8.0f}{min(found):8.0f}{max(found):8.0f}   median, least, most")


if __name__ == "__main__":
    main(sys.argv[1])
