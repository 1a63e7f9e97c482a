"""Train TorchGeo's SemanticSegmentationTask on maps: with RasterDataset over GeoTIFF files, and with a pack in tiles.

tools/run trainers.torchgeo_map [--folder FOLDER]
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
import torchgeo
from lightning import LightningModule, Trainer, seed_everything
from rasterio.transform import from_origin
from torch.utils.data import DataLoader
from torchgeo.datasets import RasterDataset, stack_samples
from torchgeo.samplers import GridGeoSampler, RandomGeoSampler

from packer import build_pack
from readers.bridges.torchgeo_map import PackMap
from trainers.comparison import Comparison, Epoch, both_alone_and_with_workers, compared, report
from trainers.torchgeo_tiles import Task

CLASSES = ("water", "field", "town")
IGNORED = 255
SPLITS = {"train": range(3), "val": range(3, 4)}
PATCH = 64
EPOCHS = 3


class Images(RasterDataset):
    """The pictures, as a user of TorchGeo opens them."""

    filename_glob = "*.tif"


class Masks(Images):
    """The labels."""

    is_image = False


def write_maps(raw: Path) -> None:
    """Write maps of four bands of 16 bits, some kilometres apart, and their labels."""
    for split, numbers in SPLITS.items():
        for number in numbers:
            rng, sides = np.random.default_rng(number), (150 + 10 * number, 170)
            label = (
                rng.integers(0, len(CLASSES), (12, 12), np.uint8).repeat(16, 0).repeat(16, 1)[: sides[0], : sides[1]]
            )
            image = rng.normal(1000, 100, (4, *sides)) + label * np.array([300, -200, 100, 500])[:, None, None]
            label[:5] = IGNORED
            place = {"crs": "EPSG:32633", "transform": from_origin(500_000 + 10_000 * number, 5_300_000, 10, 10)}
            for folder, pixels, facts in (
                ("images", image.astype(np.uint16), {}),
                ("labels", label[None], {"nodata": IGNORED}),
            ):
                path = raw / split / folder / f"scene_{number}.tif"
                path.parent.mkdir(parents=True, exist_ok=True)
                shape = dict(zip(("count", "height", "width"), pixels.shape, strict=True))
                with rasterio.open(path, "w", driver="GTiff", dtype=pixels.dtype, **shape, **place, **facts) as file:
                    file.write(pixels)


def prepare(folder: Path) -> tuple[Callable[[str], Any], Callable[[str], Any]]:
    """Write the maps, and pack them in tiles. Return what opens a split of each."""
    raw, pack = folder / "raw", folder / "pack"
    write_maps(raw)
    ignored = [str(IGNORED)]
    build_pack(
        raw, pack, bands="all", labels="index", classes=CLASSES, ignore=ignored, size=(64, 64), fit="tile", workers=1
    )
    return (
        lambda split: Images(raw / split / "images") & Masks(raw / split / "labels"),
        lambda split: PackMap(pack, split),
    )


def batches(data: Any, *, training: bool, workers: int = 0) -> Any:
    """Return TorchGeo's usual loader, of windows anywhere or side by side."""
    sampler = RandomGeoSampler(data, PATCH, 16) if training else GridGeoSampler(data, PATCH, PATCH)
    return DataLoader(data, 4, sampler=sampler, collate_fn=stack_samples, num_workers=workers)


class MapTask(Task):
    """TorchGeo's task, over numbers of 16 bits and without a data module."""

    def on_before_batch_transfer(self, batch: Any, _: int) -> Any:
        return {"image": batch["image"] / 500 - 2, "mask": batch["mask"]}


def learn(open_split: Callable[[str], Any]) -> tuple[list[float], float]:
    """Return the loss of each epoch, and the Jaccard index of TorchGeo."""
    seed_everything(0, verbose=False)
    task: LightningModule = MapTask(
        "fcn", num_classes=len(CLASSES), num_filters=16, in_channels=4, ignore_index=IGNORED, lr=0.005
    )
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    trainer = Trainer(max_epochs=EPOCHS, accelerator="cpu", num_sanity_val_steps=0, **quiet)
    trainer.fit(task, batches(open_split("train"), training=True), batches(open_split("val"), training=False))
    losses = [sum(steps) / len(steps) for steps in task.means]
    return losses, float(trainer.callback_metrics["val_MulticlassJaccardIndex"])


def compare(folder: Path) -> Comparison:
    """Compare windows of both samplers, and train from both."""
    own, pack = prepare(folder)
    windows = []
    for split, training in (("train", True), ("val", False)):
        seed_everything(1, verbose=False)
        queries = [*batches(own(split), training=training).sampler]
        seed_everything(1, verbose=False)
        if queries != [*batches(pack(split), training=training).sampler]:
            raise ValueError(f"{split}: the samplers of both do not draw the same windows")
        windows += [(own(split)[query], pack(split)[query]) for query in queries]
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    trained = {"own": learn(own), "pack": learn(pack)}
    return compared(
        "TorchGeo",
        torchgeo.__version__,
        samples=len(windows),
        images=[(mine["image"], packed["image"]) for mine, packed in windows],
        labels=[(mine["mask"], packed["mask"]) for mine, packed in windows],
        runs=trained,
        metric="val_MulticlassJaccardIndex",
        ignored=IGNORED,
        note="Both samplers draw the same windows, across tiles and beyond the border, where the own mask is ignored "
        "only because the label files name 255 as no data.",
    )


def loaders(folder: Path) -> dict[str, Epoch]:
    """Return an epoch of 16 windows of each loader."""
    opened = dict(zip(("own", "pack"), prepare(folder), strict=True))

    def epoch(side: str, workers: int) -> Epoch:
        data = opened[side]("train")  # of its own: a file that is open in this process cannot be read in workers
        return lambda: batches(data, training=True, workers=workers)

    return both_alone_and_with_workers(epoch)


def main() -> None:
    report(compare, __doc__)


if __name__ == "__main__":
    main()
