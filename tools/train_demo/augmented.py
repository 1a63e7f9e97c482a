"""Train a small U-Net with our augmentation and with torchvision's, from one pack: validation loss and mIoU of both.

    pip install torchvision
    tools/run train_demo.augmented PACK [--window 128x128] [--steps 400] [--seeds 6]

Both recipes scale by 0.5 to 2, take a window, flip half of them, change brightness, contrast and saturation by up to
0.3, and normalise; pixels outside of a picture are ignored. Ours does it in the loader, torchvision's with ScaleJitter,
RandomCrop, RandomHorizontalFlip, ColorJitter and Normalize. For each seed both networks begin with the same weights and
train on rows in the same order. Exits 1 if the means of both differ by more than twice the deviation of the seeds.
For a PyTorch without CUDA, put tests/cpu_torchvision on PYTHONPATH.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

import torch
from program import parser
from tables import markdown
from torch.nn.functional import cross_entropy

from readers import Colour, Loader, RandomCrop, SegDataset, open_dataset
from train_demo.model import MULTIPLE, UNet

BATCH, WIDTH, RATE = 6, 8, 4e-3
SCALE, CHANGE = (0.5, 2.0), 0.3
Batches = Iterator[tuple[torch.Tensor, torch.Tensor]]
Recipe = Callable[[SegDataset, tuple[int, int], int], Batches]


@dataclass(frozen=True)
class Score:
    """The loss and the mean IoU of a trained network on the validation rows."""

    loss: float
    miou: float


def ours(rows: SegDataset, window: tuple[int, int], seed: int) -> Batches:
    """Yield batches that the loader augments."""
    crop, colour = RandomCrop(window, scale=SCALE), Colour(CHANGE, CHANGE, CHANGE)
    options: dict[str, Any] = {"crop": crop, "flip": True, "colour": colour, "normalize": True}
    return epochs(rows.loader(BATCH, shuffle=True, seed=seed, drop_last=True, **options))


def torchvision(rows: SegDataset, window: tuple[int, int], seed: int) -> Batches:
    """Yield batches that torchvision augments, picture by picture, with PyTorch's random numbers."""
    from torchvision.transforms import v2
    from torchvision.tv_tensors import Image, Mask

    chain = v2.Compose(
        [
            v2.ScaleJitter(rows.size(0)[::-1], SCALE),  # it takes a width and a height
            v2.RandomCrop(window, pad_if_needed=True, fill={Image: 0, Mask: rows.classes.ignore_index}),
            v2.RandomHorizontalFlip(),
            v2.ColorJitter(CHANGE, CHANGE, CHANGE),
            v2.ToDtype({Image: torch.float32, "others": None}, scale=True),
            v2.Normalize(list(rows.mean), list(rows.std)),
        ]
    )
    for images, labels in epochs(rows.loader(BATCH, shuffle=True, seed=seed, drop_last=True)):
        parts = [chain(Image(image), Mask(label)) for image, label in zip(images, labels, strict=True)]
        yield torch.stack([image for image, _ in parts]), torch.stack([label for _, label in parts])


def epochs(loader: Loader) -> Batches:
    """Yield the batches of one epoch after the other."""
    for epoch in count():
        loader.set_epoch(epoch)
        yield from loader


def train(
    batches: Iterable[tuple[torch.Tensor, torch.Tensor]], rows: SegDataset, steps: int
) -> tuple[UNet, list[float]]:
    """Return a network that was trained on this number of batches, and its losses."""
    network = UNet(len(rows.classes), WIDTH)
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE)
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    losses = []
    for images, labels in islice(batches, steps):
        loss = cross_entropy(network(images), labels.long(), ignore_index=rows.classes.ignore_index)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        slower.step()
        losses.append(loss.item())
    return network, losses


@torch.inference_mode()
def evaluate(network: UNet, rows: SegDataset, mean_std: tuple[Any, Any]) -> Score:
    """Return the scores over all known pixels of whole pictures."""
    classes, loss = len(rows.classes), 0.0
    pairs = torch.zeros(classes, classes, dtype=torch.long)
    network.eval()
    for images, labels in rows.loader(BATCH, normalize=mean_std):
        scores, known = network(images), labels != rows.classes.ignore_index
        loss += cross_entropy(scores, labels.long(), ignore_index=rows.classes.ignore_index, reduction="sum").item()
        numbers = labels[known].long() * classes + scores.argmax(1)[known]
        pairs += torch.bincount(numbers, minlength=classes**2).view(classes, classes)
    either = pairs.sum(0) + pairs.sum(1) - pairs.diag()
    return Score(loss / int(pairs.sum()), float((pairs.diag() / either)[either > 0].mean()))


def scores_of(recipe: Recipe, pack: Path, window: tuple[int, int], steps: int, seed: int) -> Score:
    """Train with a recipe from a seed, and return the scores."""
    rows = open_dataset(pack, "train", "index")
    torch.manual_seed(seed)
    network, losses = train(recipe(rows, window, seed), rows, steps)
    score = evaluate(network, open_dataset(pack, "val", "index"), (rows.mean, rows.std))
    print(f"{recipe.__name__}, seed {seed}: loss {losses[0]:.3f} to {losses[-1]:.3f}; {score}", file=sys.stderr)
    return score


def main() -> None:
    options = parser(__doc__)
    options.add_argument("pack", type=Path)
    options.add_argument("--window", default="128x128", metavar="HxW", help=f"sides that {MULTIPLE} divides")
    options.add_argument("--steps", type=int, default=400)
    options.add_argument("--seeds", type=int, default=6, help="two or more")
    chosen = options.parse_args()
    height, width = map(int, chosen.window.split("x"))
    table: list[tuple[str, ...]] = [("recipe", "validation loss", "mIoU")]
    found: dict[str, list[Score]] = {"ours": [], "torchvision": []}
    for seed in range(chosen.seeds):
        for recipe in (ours, torchvision):
            found[recipe.__name__].append(scores_of(recipe, chosen.pack, (height, width), chosen.steps, seed))
    for name, scores in found.items():
        table.append((name, summary([score.loss for score in scores]), summary([score.miou for score in scores])))
    gaps = [
        gap(*([getattr(score, name) for score in scores] for scores in found.values())) for name in ("loss", "miou")
    ]
    table.append(("difference / deviation", *(f"{number:+.2f}" for number in gaps)))
    print(f"{chosen.pack.name}: {chosen.seeds} seeds, {chosen.steps} steps of {BATCH} windows of {height}x{width}")
    print("\n".join(markdown(table)))
    sys.exit(max(map(abs, gaps)) > 2)


def summary(numbers: list[float]) -> str:
    return (
        f"{statistics.fmean(numbers):.4f} ± {statistics.stdev(numbers):.4f} ({min(numbers):.4f} to {max(numbers):.4f})"
    )


def gap(mine: list[float], theirs: list[float]) -> float:
    """Return the difference of the means, in standard deviations of the seeds of a recipe."""
    deviation = math.sqrt((statistics.variance(mine) + statistics.variance(theirs)) / 2)
    return (statistics.fmean(mine) - statistics.fmean(theirs)) / deviation
