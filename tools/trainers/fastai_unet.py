"""Train a network with fastai's Learner: with its DataBlock over PNG files, and with a pack.

tools/run trainers.fastai_unet [--folder FOLDER]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import fastai
from fastai.data.all import DataBlock, get_image_files
from fastai.learner import Learner
from fastai.losses import CrossEntropyLossFlat
from fastai.metrics import DiceMulti
from fastai.torch_core import set_seed
from fastai.vision.augment import Flip
from fastai.vision.data import ImageBlock, MaskBlock
from scenes.numbered import IGNORED, NAMES, pack_numbered, write_numbered
from torch import nn

from readers.bridges.fastai import pack_dataloaders
from trainers.comparison import Comparison, Epoch, compared, report

EPOCHS = 3


def split_of(path: Path) -> str:
    """Return the split of a picture: the folder above the folder of pictures."""
    return path.parent.parent.name


def prepare(folder: Path, *steps: Any, **options: Any) -> dict[str, Any]:
    """Write the pictures, pack them, and return DataLoaders of both, which have the same batch transforms."""
    raw, pack = folder / "raw", folder / "pack"
    if not raw.exists():
        write_numbered(raw)
        pack_numbered(raw, pack)
    block = DataBlock(
        blocks=(ImageBlock, MaskBlock([*NAMES])),
        get_items=lambda root: sorted(path for path in get_image_files(root) if path.parent.name == "images"),
        get_y=lambda path: path.parent.parent / "labels" / path.name,
        splitter=lambda paths: [
            [number for number, path in enumerate(paths) if split_of(path) == split] for split in ("train", "val")
        ],
        batch_tfms=[*steps],
    )
    own = block.dataloaders(raw, **options)
    return {"own": own, "pack": pack_dataloaders(pack, batch_tfms=steps, **options)}


def learn(dls: Any) -> tuple[list[float], float]:
    """Return the loss of each epoch, and fastai's Dice of all classes."""
    set_seed(0)
    dls.train.rng = Random(0)  # it shuffles, and was seeded when it was made
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 16, 2, 2), nn.ReLU(), nn.Conv2d(16, len(NAMES), 1)
    )
    loss_of = CrossEntropyLossFlat(axis=1, ignore_index=IGNORED)
    learner = Learner(dls, net, loss_func=loss_of, metrics=DiceMulti(), lr=0.01)
    with learner.no_logging():
        learner.fit(EPOCHS)
    rows = learner.recorder.values
    return [float(row[0]) for row in rows], float(rows[-1][2])


def compare(folder: Path) -> Comparison:
    """Compare the batches of the validation rows, and train from both with mirrored batches."""
    sides = prepare(folder, bs=2, num_workers=0)
    pairs = [*zip(sides["own"].valid, sides["pack"].valid, strict=True)]
    trained = {side: learn(dls) for side, dls in prepare(folder, Flip(), bs=2, num_workers=0).items()}
    return compared(
        "fastai",
        fastai.__version__,
        samples=sum(len(own[0]) for own, _ in pairs),
        images=[(own[0], packed[0]) for own, packed in pairs],
        labels=[(own[1], packed[1]) for own, packed in pairs],
        runs=trained,
        metric="DiceMulti",
        ignored=IGNORED,
        note="losses differ behind the fifth digit: fastai has pictures of files in memory with channels last",
    )


def loaders(folder: Path) -> dict[str, Epoch]:
    """Return an epoch of each, mirrored at random."""
    found: dict[str, Callable[[], Iterable[object]]] = {}
    for workers in (0, 2):
        for side, dls in prepare(folder, Flip(), bs=2, num_workers=workers).items():
            found[f"{side}, {workers} workers" if workers else side] = partial(iter, dls.train)
    return found


def main() -> None:
    report(compare, __doc__)


if __name__ == "__main__":
    main()
