"""Train YOLO11n-seg of Ultralytics twice: over files with outlines of objects, and over a pack with `SegmentTrainer`.

    tools/run trainers.ultralytics_segment [--folder EMPTY]

The pack has numbers of objects, no outlines. The bridge follows the border of each object through the centres of its
pixels. Outlines that were made from masks in this way come back exactly. For outlines that a person drew, the note of
the result says how many pixels of the masks differ, after the library has painted both. At the stored size the library
paints the numbers of the pack again but for 3 of 10,562 pixels; 288 differ because it paints a drawn outline, which it
resamples first, otherwise than a label. In enlarged pictures our outlines are half a stored pixel inside theirs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
import ultralytics
import yaml
from numpy.typing import NDArray
from ultralytics.data import build_dataloader, build_yolo_dataset
from ultralytics.models.yolo.segment import SegmentationTrainer

from packer import build_pack
from readers.bridges.ultralytics import SegmentTrainer
from trainers.comparison import Comparison, Epoch, compared, report

NAMES = ["disc", "block"]
SPLITS = {"train": 12, "val": 4}
SIDE = 128
SETTINGS: dict[str, Any] = {
    "model": "yolo11n-seg.yaml", "imgsz": SIDE, "batch": 4, "epochs": 2, "optimizer": "SGD", "nbs": 4, "lr0": 0.01,
    "workers": 0, "device": "cpu", "seed": 7, "plots": False, "verbose": False, "exist_ok": True, "amp": False,
    "warmup_epochs": 0,
}  # fmt: skip
Outline = NDArray[np.floating[Any]]


def draw(random_numbers: np.random.Generator) -> Iterator[tuple[int, Outline]]:
    """Yield the class and outline of an object in each quarter of a picture: an ellipse, or a turned rectangle."""
    for quarter in range(4):
        middle = np.array([quarter % 2, quarter // 2]) * SIDE / 2 + random_numbers.uniform(28, 36, 2)
        axes, turned = random_numbers.uniform(8, 22, 2), random_numbers.uniform(0, np.pi)
        kind = int(random_numbers.integers(2))
        around = np.linspace(0, 2 * np.pi, 24 if kind == 0 else 4, endpoint=False)
        points = np.stack([np.cos(around), np.sin(around)], 1) * axes
        yield kind, points @ np.array([[np.cos(turned), np.sin(turned)], [-np.sin(turned), np.cos(turned)]]) + middle


def write_raw(folder: Path, from_masks: bool) -> Path:
    """Write pictures and outlines as the library wants them. From masks, an outline goes through centres of pixels."""
    numbers = np.random.default_rng(5)
    for split, count in SPLITS.items():
        for place in ("images", "labels"):
            (folder / place / split).mkdir(parents=True)
        for row in range(count):
            picture, lines = numbers.integers(0, 60, (SIDE, SIDE, 3), np.uint8), []
            for kind, drawn in draw(numbers):
                mask = np.zeros((SIDE, SIDE), np.uint8)
                cv2.fillPoly(mask, [drawn.astype(np.int32)], 1)
                picture[mask > 0] += np.array([(0, 60, 190), (190, 60, 0)], np.uint8)[kind]
                if from_masks:
                    (border,), _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
                    drawn = border.reshape(-1, 2) + 0.5
                lines.append(f"{kind} " + " ".join(f"{number:.9f}" for number in (drawn / SIDE).ravel()))
            cv2.imwrite(str(folder / "images" / split / f"{row:02}.png"), picture)
            (folder / "labels" / split / f"{row:02}.txt").write_text("\n".join(lines))
    facts = {"path": str(folder), "train": "images/train", "val": "images/val", "names": dict(enumerate(NAMES))}
    (folder / "data.yaml").write_text(yaml.safe_dump(facts))
    return folder / "data.yaml"


def write_both(folder: Path, from_masks: bool = True) -> dict[str, Callable[..., Any]]:
    """Write raw files and a pack of the same rows. Return what makes a trainer of each."""
    raw = write_raw(folder / "raw", from_masks)
    ids = [{"name": "instance", "kind": "ids"}]
    build_pack(str(raw.parent), str(folder / "pack"), size="native", labels="index", paint="area", fields=ids)

    def trainer(kind: type[Any], name: str, data: Path, **more: Any) -> Any:
        places = {"data": str(data), "project": str(folder / "runs"), "name": name}
        return kind(overrides={**SETTINGS, **places, **more})

    return {
        "own": lambda **more: trainer(SegmentationTrainer, "own", raw, **more),
        "pack": lambda **more: trainer(SegmentTrainer, "pack", folder / "pack", **more),
    }


def seed() -> None:
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)


def trained(make: Callable[[], Any]) -> tuple[Any, list[float], float]:
    """Train. Return the trainer, the loss of each epoch, and the sum of what the library finds in its validation."""
    trainer = make()
    losses: list[float] = []
    sums: list[float] = []
    trainer.add_callback("on_train_start", lambda _: seed())  # the library drew some to measure how fast files are read
    trainer.add_callback("on_train_epoch_end", lambda trainer: losses.append(float(sum(trainer.tloss.values()))))
    trainer.add_callback("on_fit_epoch_end", lambda trainer: sums.append(float(sum(trainer.metrics.values()))))
    trainer.train()
    return trainer, losses, sums[1]  # the third is of the best weights, without losses


def batches(loader: Any) -> list[Any]:
    """Return the batches of an epoch, augmented with the same random numbers."""
    seed()
    loader.generator.manual_seed(1)
    loader.reset()
    return list(loader)


def masks_apart(make: dict[str, Callable[..., Any]], imgsz: int) -> str:
    """Compare the masks that the library paints of the same objects, from its files and from a pack."""
    own, pack = (make[side](imgsz=imgsz, mask_ratio=1) for side in ("own", "pack"))
    rows = build_yolo_dataset(own.args, own.data["val"], 4, own.data, mode="val"), pack.rows("val", 4, False, 32)
    pairs = [(ours["masks"] > 0, theirs["masks"] > 0) for theirs, ours in zip(*rows, strict=True)]
    apart = sum(int((ours != theirs).sum()) for ours, theirs in pairs)
    return f"imgsz={imgsz}: {apart} of {sum(int(theirs.sum()) for _, theirs in pairs)} pixels of objects"


def compare(folder: Path) -> Comparison:
    runs = {side: trained(make) for side, make in write_both(folder / "masks").items()}
    pairs = [
        pair
        for loader in ("train_loader", "test_loader")
        for pair in zip(*(batches(getattr(runs[side][0], loader)) for side in ("own", "pack")), strict=True)
    ]
    scales = {"img": 255, "bboxes": 1}
    values = [(own[key] / scales[key], pack[key] / scales[key]) for own, pack in pairs for key in scales]
    labels = [(own[key], pack[key]) for own, pack in pairs for key in ("masks", "cls", "batch_idx", "sem_masks")]
    drawn = write_both(folder / "drawn", from_masks=False)
    apart = ", ".join(masks_apart(drawn, imgsz) for imgsz in (SIDE, 2 * SIDE))
    return compared(
        "ultralytics",
        ultralytics.__version__,
        samples=sum(len(own["img"]) for own, _ in pairs),
        images=values,
        labels=labels,
        runs={side: run[1:] for side, run in runs.items()},
        metric="the losses and precisions of the validation, added",
        note=f"outlines made from masks are equal; of drawn ones differ, at {apart}",
    )


def loaders(folder: Path) -> dict[str, Epoch]:
    """Return what starts an epoch of training batches, with the default augmentation, by name."""
    make = write_both(folder)

    def own(workers: int, cache: object) -> Iterable[object]:
        trainer = make["own"](cache=cache)
        rows = build_yolo_dataset(trainer.args, trainer.data["train"], trainer.batch_size, trainer.data)
        return build_dataloader(rows, trainer.batch_size, workers, device="cpu")  # type: ignore[no-any-return]

    def pack() -> Iterable[object]:
        trainer = make["pack"]()
        rows = trainer.rows("train", trainer.batch_size, False, 32)
        return build_dataloader(rows, trainer.batch_size, 0, device="cpu")  # type: ignore[no-any-return]

    made = {"own": own(0, False), "own, 2 workers": own(2, False), "own, cached": own(0, "ram"), "pack": pack()}
    return {name: partial(iter, loader) for name, loader in made.items()}


def main() -> None:
    report(compare, __doc__)
