"""Train YOLO26n-sem of Ultralytics twice: over image and mask files, and over a pack with `SemanticTrainer`.

tools/run trainers.ultralytics_semantic [--folder EMPTY]
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import ultralytics
import yaml
from scenes.numbered import IGNORED, NAMES, pack_streets, write_streets
from ultralytics.data import build_dataloader, build_yolo_dataset
from ultralytics.models.yolo.semantic import SemanticSegmentationTrainer

from readers.bridges.ultralytics import SemanticTrainer
from trainers.comparison import Comparison, Epoch, compared, report

SETTINGS: dict[str, Any] = {
    "model": "yolo26n-sem.yaml", "imgsz": 96, "batch": 4, "epochs": 2, "optimizer": "SGD", "nbs": 4, "lr0": 0.02,
    "workers": 0, "device": "cpu", "seed": 7, "verbose": False, "exist_ok": True, "warmup_epochs": 0, "amp": False,
}  # fmt: skip


def write_raw(folder: Path) -> Path:
    """Write the sample scenes as the library wants them: images, and masks of class numbers in which 255 is ignored."""
    write_streets(folder, "images/{split}", "masks/{split}")
    facts = {"path": str(folder), "train": "images/train", "val": "images/val", "names": dict(enumerate(NAMES))}
    (folder / "data.yaml").write_text(yaml.safe_dump({**facts, "masks_dir": "masks"}))
    return folder / "data.yaml"


def write_both(folder: Path) -> dict[str, Callable[..., Any]]:
    """Write raw files and a pack of the same rows. Return what makes a trainer of each."""
    raw = write_raw(folder / "raw")
    pack_streets(folder / "pack")

    def trainer(kind: type[Any], name: str, data: Path, **more: Any) -> Any:
        places = {"data": str(data), "project": str(folder / "runs"), "name": name}
        return kind(overrides={**SETTINGS, **places, **more})

    return {
        "own": lambda **more: trainer(SemanticSegmentationTrainer, "own", raw, plots=False, **more),
        "pack": lambda **more: trainer(SemanticTrainer, "pack", folder / "pack", **more),
    }


def seed() -> None:
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)


def trained(make: Callable[[], Any]) -> tuple[Any, list[float], float]:
    """Train. Return the trainer, the loss of each epoch, and the library's mIoU of the validation split."""
    trainer = make()
    losses: list[float] = []
    trainer.add_callback("on_train_start", lambda _: seed())  # the library drew some to measure how fast files are read
    trainer.add_callback("on_train_epoch_end", lambda trainer: losses.append(float(sum(trainer.tloss.values()))))
    trainer.train()
    return trainer, losses, float(trainer.metrics["metrics/mIoU"])


def batches(loader: Any) -> list[Any]:
    """Return the batches of an epoch, augmented with the same random numbers."""
    seed()
    loader.generator.manual_seed(1)
    loader.reset()
    return list(loader)


def compare(folder: Path) -> Comparison:
    runs = {side: trained(make) for side, make in write_both(folder).items()}
    pairs = [
        pair
        for loader in ("train_loader", "test_loader")
        for pair in zip(*(batches(getattr(runs[side][0], loader)) for side in ("own", "pack")), strict=True)
    ]
    return compared(
        "ultralytics",
        ultralytics.__version__,
        samples=sum(len(own["img"]) for own, _ in pairs),
        images=[(own["img"], pack["img"]) for own, pack in pairs],
        labels=[(own["semantic_mask"], pack["semantic_mask"]) for own, pack in pairs],
        runs={side: run[1:] for side, run in runs.items()},
        metric="mIoU",
        ignored=IGNORED,
        note="mosaic, scaling, flips and colours with the same random numbers",
    )


def loaders(folder: Path) -> dict[str, Epoch]:
    """Return what starts an epoch of training batches, with the default augmentation, by name."""
    make = write_both(folder)

    def own(workers: int, cache: object) -> Iterable[object]:
        trainer = make["own"](cache=cache)
        rows = build_yolo_dataset(trainer.args, trainer.data["train"], trainer.batch_size, trainer.data)
        return build_dataloader(rows, trainer.batch_size, workers, device="cpu")  # type: ignore[no-any-return]

    def pack(workers: int) -> Iterable[object]:
        trainer = make["pack"]()
        rows = trainer.rows("train", trainer.batch_size, False, 32)
        return build_dataloader(rows, trainer.batch_size, workers, device="cpu")  # type: ignore[no-any-return]

    made = {
        "own": own(0, False),
        "own, 2 workers": own(2, False),
        "own, cached": own(0, "ram"),
        "pack": pack(0),
        "pack, 2 workers": pack(2),
    }
    return {name: partial(iter, loader) for name, loader in made.items()}


def enlarge(side: int = 640) -> None:
    """Take the size and the batches that people train with, for `trainers.speed`."""
    SETTINGS.update(imgsz=side, batch=8)


def main() -> None:
    report(compare, __doc__)
