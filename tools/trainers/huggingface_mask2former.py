"""Train a small Mask2Former twice with Trainer: over files of instances, and over a pack with `ObjectRows`.

tools/run trainers.huggingface_mask2former [--folder EMPTY]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from PIL import Image
from scenes.discs import NAMES, pack_discs, write_discs
from torch.utils.data import DataLoader, Dataset
from transformers import (
    Mask2FormerConfig,
    Mask2FormerForUniversalSegmentation,
    Mask2FormerImageProcessor,
    SwinConfig,
    Trainer,
    TrainingArguments,
    set_seed,
)

from readers.bridges.huggingface import ObjectRows, collate_objects
from trainers.comparison import Comparison, Epoch, compared, report

SPLITS = {"train": 12, "val": 4}
SIDE = 96
PROCESSOR = Mask2FormerImageProcessor(size={"height": 64, "width": 64})


class FileRows(Dataset[Any]):
    """Files through the image processor, as in the library's example: red has the class, green the instance."""

    def __init__(self, folder: Path) -> None:
        self.images = sorted(folder.glob("images/*"))

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> dict[str, Any]:
        path = self.images[index]
        classes, instances = np.array(Image.open(path.parents[1] / "annotations" / path.name))[..., :2].transpose(
            2, 0, 1
        )
        class_of = {int(number): int(classes[instances == number][0]) - 1 for number in np.unique(instances) if number}
        row = PROCESSOR(
            [Image.open(path)], [instances], instance_id_to_semantic_id=class_of, ignore_index=0, return_tensors="pt"
        )
        return {name: part[0] for name, part in row.items()}


def write_both(folder: Path) -> dict[str, Callable[[str], Dataset[Any]]]:
    """Draw discs and blocks as raw files, and pack them. Return what opens a split of each."""
    write_discs(folder / "raw", SPLITS, SIDE)
    pack_discs(folder / "raw", folder / "pack")
    return {
        "own": lambda split: FileRows(folder / "raw" / split),
        "pack": lambda split: ObjectRows(folder / "pack", split, PROCESSOR),
    }


def trained(train: Any, val: Any, out: Path) -> tuple[list[float], float]:
    """Train. Return the loss of each epoch, and Trainer's loss of the validation split."""
    set_seed(7)
    backbone = SwinConfig(
        image_size=64, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2], window_size=4,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )  # fmt: skip
    config = Mask2FormerConfig(
        backbone_config=backbone, feature_size=32, mask_feature_size=32, hidden_dim=32, encoder_feedforward_dim=32,
        dim_feedforward=32, encoder_layers=1, decoder_layers=2, num_attention_heads=2, num_queries=8,
        train_num_points=256, id2label=dict(enumerate(NAMES)), label2id={name: i for i, name in enumerate(NAMES)},
    )  # fmt: skip
    arguments = TrainingArguments(
        str(out), num_train_epochs=3, per_device_train_batch_size=3, learning_rate=0.002, logging_strategy="epoch",
        save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True, seed=7,
    )  # fmt: skip
    trainer = Trainer(Mask2FormerForUniversalSegmentation(config), arguments, collate_objects, train, val)
    trainer.train()
    losses = [float(entry["loss"]) for entry in trainer.state.log_history if "loss" in entry]
    return losses, float(trainer.evaluate()["eval_loss"])


def flat(pair: tuple[dict[str, Any], dict[str, Any]], *names: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the numbers of two batches, each in a row: of tensors, or of lists of tensors."""
    own, pack = (torch.cat([part.flatten().float() for name in names for part in batch[name]]) for batch in pair)
    return own, pack


def compare(folder: Path) -> Comparison:
    opened = {side: (rows("train"), rows("val")) for side, rows in write_both(folder).items()}
    runs = {side: trained(*rows, folder / side) for side, rows in opened.items()}
    loader = partial(DataLoader, batch_size=4, collate_fn=collate_objects)
    pairs = [
        pair
        for own, pack in zip(opened["own"], opened["pack"], strict=True)
        for pair in zip(loader(own), loader(pack), strict=True)
    ]
    return compared(
        "transformers",
        transformers.__version__,
        samples=sum(len(own["pixel_values"]) for own, _ in pairs),
        images=[flat(pair, "pixel_values", "pixel_mask") for pair in pairs],
        labels=[flat(pair, "mask_labels", "class_labels") for pair in pairs],
        runs=runs,
        metric="eval_loss",
    )


def loaders(folder: Path) -> dict[str, Epoch]:
    """Return what starts an epoch of training batches, by name. The library has no augmentation of its own."""
    rows = {side: opened("train") for side, opened in write_both(folder).items()}
    loader = partial(DataLoader, batch_size=4, shuffle=True, collate_fn=collate_objects)
    made = {
        "own": loader(rows["own"]),
        "own, 2 workers": loader(rows["own"], num_workers=2, persistent_workers=True),
        "pack": loader(rows["pack"]),
    }
    return {name: partial(iter, batches) for name, batches in made.items()}


def main() -> None:
    report(compare, __doc__)
