"""Train a small SegFormer twice with Trainer: over image and label files, and over a pack with `SemanticRows`.

tools/run trainers.huggingface_segformer [--folder EMPTY]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import transformers
from PIL import Image
from program import SAMPLES
from scenes.pictures import read_picture, write_picture
from scenes.street import CLASSES
from torch.utils.data import DataLoader, Dataset
from transformers import (
    SegformerConfig,
    SegformerForSemanticSegmentation,
    SegformerImageProcessor,
    Trainer,
    TrainingArguments,
    set_seed,
)

from packer import build_pack
from readers.bridges.huggingface import SemanticRows
from trainers.comparison import Comparison, report

NAMES = [name for name in CLASSES if name != "void"]
PROCESSOR = SegformerImageProcessor(size={"height": 64, "width": 96})
TINY = {
    "depths": (1, 1, 1, 1), "hidden_sizes": (8, 16, 24, 32), "num_attention_heads": (1, 1, 2, 2),
    "decoder_hidden_size": 32,
}  # fmt: skip


class FileRows(Dataset[Any]):
    """Pairs of files through the image processor, as in the library's guide to semantic segmentation."""

    def __init__(self, folder: Path) -> None:
        self.images = sorted(folder.glob("images/*"))

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> dict[str, Any]:
        path = self.images[index]
        label = Image.open(path.parents[1] / "labels" / f"{path.stem}.png")
        row = PROCESSOR(Image.open(path).convert("RGB"), label, return_tensors="pt")
        return {name: part.squeeze(0) for name, part in row.items()}


def write_both(folder: Path) -> dict[str, Callable[[str], Dataset[Any]]]:
    """Write raw files with class numbers, and a pack of them. Return what opens a split of each."""
    for path in sorted(SAMPLES.glob("*/images/*")):
        split = path.parts[-3]
        colours = read_picture(SAMPLES / split / "labels" / f"{path.stem}.png")
        label = np.full(colours.shape[:2], 255, np.uint8)
        for number, name in enumerate(NAMES):
            label[(colours == CLASSES[name]).all(-1)] = number
        write_picture(folder / "raw" / split / "labels" / f"{path.stem}.png", label)
        (folder / "raw" / split / "images").mkdir(exist_ok=True)
        (folder / "raw" / split / "images" / path.name).write_bytes(path.read_bytes())
    build_pack(str(SAMPLES), str(folder / "pack"), size="native", labels="index", ignore=["void"])
    return {
        "own": lambda split: FileRows(folder / "raw" / split),
        "pack": lambda split: SemanticRows(folder / "pack", split, PROCESSOR),
    }


def trained(train: Any, val: Any, out: Path) -> tuple[list[float], float]:
    """Train. Return the loss of each epoch, and Trainer's loss of the validation split."""
    set_seed(7)
    names = dict(enumerate(NAMES))
    config = SegformerConfig(id2label=names, label2id={name: number for number, name in names.items()}, **TINY)
    arguments = TrainingArguments(
        str(out), num_train_epochs=3, per_device_train_batch_size=3, learning_rate=0.003, logging_strategy="epoch",
        save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True, seed=7,
    )  # fmt: skip
    trainer = Trainer(SegformerForSemanticSegmentation(config), arguments, train_dataset=train, eval_dataset=val)
    trainer.train()
    losses = [float(entry["loss"]) for entry in trainer.state.log_history if "loss" in entry]
    return losses, float(trainer.evaluate()["eval_loss"])


def compare(folder: Path) -> Comparison:
    opened = {side: (rows("train"), rows("val")) for side, rows in write_both(folder).items()}
    runs = {side: trained(*rows, folder / side) for side, rows in opened.items()}
    pairs = [
        pair
        for own, pack in zip(opened["own"], opened["pack"], strict=True)
        for pair in zip(DataLoader(own, 4), DataLoader(pack, 4), strict=True)
    ]
    return Comparison(
        library="transformers",
        version=transformers.__version__,
        samples=sum(len(own["labels"]) for own, _ in pairs),
        values=sum(own["pixel_values"].numel() for own, _ in pairs),
        most_apart=max(float((own["pixel_values"] - pack["pixel_values"]).abs().max()) for own, pack in pairs),
        labels=sum(own["labels"].numel() for own, _ in pairs),
        labels_apart=sum(int((own["labels"] != pack["labels"]).sum()) for own, pack in pairs),
        ignored=sum(int((own["labels"] == 255).sum()) for own, _ in pairs),
        losses={side: run[0] for side, run in runs.items()},
        metric="eval_loss",
        scores={side: run[1] for side, run in runs.items()},
    )


def loaders(folder: Path) -> dict[str, Callable[[], Iterable[object]]]:
    """Return what starts an epoch of training batches, by name. The library has no augmentation of its own."""
    rows = {side: opened("train") for side, opened in write_both(folder).items()}
    loader = partial(DataLoader, batch_size=16, shuffle=True)
    made = {
        "own": loader(rows["own"]),
        "own, 2 workers": loader(rows["own"], num_workers=2, persistent_workers=True),
        "pack": loader(rows["pack"]),
        "pack, 2 workers": loader(rows["pack"], num_workers=2, persistent_workers=True),
    }
    return {name: partial(iter, batches) for name, batches in made.items()}


def enlarge() -> None:
    """Take the size of the library, for `trainers.speed`."""
    PROCESSOR.size = {"height": 512, "width": 512}


def main() -> None:
    report(compare, __doc__)
