"""Train a small SegFormer twice with Trainer: over image and label files, and over a pack with `SemanticRows`.

tools/run trainers.huggingface_segformer [--folder EMPTY]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import transformers
from PIL import Image
from scenes.numbered import IGNORED, NAMES, pack_streets, write_streets
from torch.utils.data import DataLoader, Dataset
from transformers import (
    SegformerConfig,
    SegformerForSemanticSegmentation,
    SegformerImageProcessor,
    Trainer,
    TrainingArguments,
    set_seed,
)

from readers.bridges.huggingface import SemanticRows
from trainers.comparison import Comparison, Epoch, compared, report

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
    write_streets(folder / "raw")
    pack_streets(folder / "pack")
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
    return compared(
        "transformers",
        transformers.__version__,
        samples=sum(len(own["labels"]) for own, _ in pairs),
        images=[(own["pixel_values"], pack["pixel_values"]) for own, pack in pairs],
        labels=[(own["labels"], pack["labels"]) for own, pack in pairs],
        runs=runs,
        metric="eval_loss",
        ignored=IGNORED,
    )


def loaders(folder: Path) -> dict[str, Epoch]:
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


def enlarge(side: int = 512) -> None:
    """Take the size of the library, for `trainers.speed`."""
    PROCESSOR.size = {"height": side, "width": side}


def main() -> None:
    report(compare, __doc__)
