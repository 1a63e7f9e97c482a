"""Train TorchGeo's SemanticSegmentationTask on tiles: with its data set LoveDA over PNG files, and with a pack.

tools/run trainers.torchgeo_tiles [--folder FOLDER]
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch
import torchgeo
from kornia.augmentation import AugmentationSequential, Normalize, RandomCrop, RandomHorizontalFlip
from lightning import LightningModule, Trainer, seed_everything
from scenes.numbered import IGNORED, NAMES, pack_numbered, write_numbered
from torchgeo.datamodules import NonGeoDataModule
from torchgeo.datasets import LoveDA
from torchgeo.trainers import SemanticSegmentationTask

from readers.bridges.torchgeo import PackTiles
from trainers.comparison import Comparison, Epoch, both_alone_and_with_workers, compared, report

EPOCHS = 3


class Task(SemanticSegmentationTask):
    """TorchGeo's task, which also keeps the loss of each epoch."""

    def on_train_epoch_start(self) -> None:
        self.means: list[list[float]] = [*getattr(self, "means", []), []]

    def training_step(self, *arguments: Any) -> Any:
        loss = super().training_step(*arguments)
        self.means[-1].append(float(loss.detach()))
        return loss


def prepare(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write the folders of LoveDA, and pack the same files. Return the options of both data modules."""
    raw, pack = folder / "raw", folder / "pack"
    write_numbered(raw)
    for split in ("train", "val"):
        for kind in ("image", "mask"):
            link = folder / "loveda" / split.capitalize() / "Urban" / f"{kind}s_png"
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(raw / split / f"{'image' if kind == 'image' else 'label'}s")
    pack_numbered(raw, pack)
    own = {"dataset_class": LoveDA, "root": str(folder / "loveda"), "scene": ["urban"]}
    return own, {"dataset_class": PackTiles, "root": str(pack)}


def learn(options: dict[str, Any]) -> tuple[list[float], float]:
    """Return the loss of each epoch, and the Jaccard index of TorchGeo."""
    seed_everything(0, verbose=False)
    task: LightningModule = Task(
        "fcn", num_classes=len(NAMES), num_filters=8, in_channels=3, ignore_index=IGNORED, lr=0.02
    )
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    trainer = Trainer(max_epochs=EPOCHS, accelerator="cpu", num_sanity_val_steps=0, **quiet)
    trainer.fit(task, datamodule=NonGeoDataModule(batch_size=2, **options))
    losses = [sum(batches) / len(batches) for batches in task.means]
    return losses, float(trainer.callback_metrics["val_MulticlassJaccardIndex"])


def compare(folder: Path) -> Comparison:
    """Compare all tiles, and train from both."""
    sides = dict(zip(("own", "pack"), prepare(folder), strict=True))
    own, pack = (
        [
            *options["dataset_class"](
                split="train", **{name: options[name] for name in options if name != "dataset_class"}
            )
        ]
        for options in sides.values()
    )
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    trained = {side: learn(options) for side, options in sides.items()}
    pairs = [*zip(own, pack, strict=True)]
    return compared(
        "TorchGeo",
        torchgeo.__version__,
        samples=len(pairs),
        images=[(mine["image"], packed["image"]) for mine, packed in pairs],
        labels=[(mine["mask"], packed["mask"]) for mine, packed in pairs],
        runs=trained,
        metric="val_MulticlassJaccardIndex",
        ignored=IGNORED,
        note="own is torchgeo.datasets.LoveDA; both in NonGeoDataModule",
    )


def loaders(folder: Path) -> dict[str, Epoch]:
    """Return an epoch of each data module, with flips and crops by Kornia on the batch."""
    sides = dict(zip(("own", "pack"), prepare(folder), strict=True))
    draw = AugmentationSequential(
        Normalize(0, 255),
        RandomCrop((48, 48)),
        RandomHorizontalFlip(),
        data_keys=None,
        keepdim=True,
    )

    def epoch(side: str, workers: int) -> Epoch:
        module = NonGeoDataModule(batch_size=4, num_workers=workers, **sides[side])
        module.setup("fit")
        return lambda: (draw(batch) for batch in module.train_dataloader())

    return both_alone_and_with_workers(epoch)


def main() -> None:
    torch.set_num_threads(1)
    report(compare, __doc__)


if __name__ == "__main__":
    main()
