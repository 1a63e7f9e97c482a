"""mIoU, Dice and boundary IoU of whole pictures: sliding windows, several scales, mirrored too, on any number of ranks.

python docs/recipes/metrics.py PACK                          # or, on 2 processes:
torchrun --nproc-per-node 2 docs/recipes/metrics.py PACK
"""

import os
import sys
from collections.abc import Iterator
from itertools import chain
from typing import Any

import torch
import torch.distributed as dist
from torch.nn import functional

from readers import SegDataset, SlidingWindows, open_dataset, stitch_all

RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


class Metrics:
    """Counts of pixels by true class (row) and predicted class (column), of all pixels and of pixels near an edge."""

    def __init__(self, classes: int, width: int = 2) -> None:
        self.classes, self.width = classes, width  # an edge is as many pixels wide, on the inside of a class
        self.areas = torch.zeros(classes, classes, dtype=torch.long)
        self.edges = torch.zeros(classes + 1, classes + 1, dtype=torch.long)  # the last class: not near an edge

    def add(self, predicted: torch.Tensor, labels: torch.Tensor) -> None:
        """Count a picture (H, W). Ignored pixels have a number above all classes, and are in no count."""
        known = labels < self.classes
        edges = self.near_edge(labels), self.near_edge(predicted)
        for counts, parts in ((self.areas, (labels, predicted)), (self.edges, edges)):
            rows, columns = (part[known].long() for part in parts)
            counts += torch.bincount(rows * len(counts) + columns, minlength=counts.numel()).view_as(counts)

    def near_edge(self, numbers: torch.Tensor) -> torch.Tensor:
        """Return the class of pixels up to `width` pixels from another class or the border, and the last class."""
        padded = functional.pad(numbers[None].float(), [self.width] * 4, value=-1)
        most, least = (sign * functional.max_pool2d(sign * padded, 2 * self.width + 1, 1)[0] for sign in (1, -1))
        return torch.where(most == least, self.classes, numbers)

    def scores(self) -> dict[str, float]:
        """Return the mean of each score over the classes that occur. Whole numbers add up exactly over all ranks."""
        areas, edges = self.areas.clone(), self.edges.clone()
        for counts in (areas, edges) if dist.is_initialized() else ():
            dist.all_reduce(counts)
        same, both = areas.diag(), areas.sum(0) + areas.sum(1)
        near, nears = edges.diag()[:-1], (edges.sum(0) + edges.sum(1))[:-1]
        ratios = {"mIoU": (same, both - same), "Dice": (2 * same, both), "boundary IoU": (near, nears - near)}
        return {name: (part / whole)[whole > 0].mean().item() for name, (part, whole) in ratios.items()}


def chances(model: torch.nn.Module, images: SegDataset, windows: SlidingWindows) -> Iterator[tuple[str, Any]]:
    """Yield the key and the chance of each class (C, H, W) of each picture of this rank."""
    loader = images.loader(4, windows=windows, rank=RANK, world_size=WORLD).to("cpu", normalize=True)
    said = (zip(keys, windows.undo(model(batch).softmax(1)), strict=True) for keys, batch in loader)
    return stitch_all(chain.from_iterable(said), weight="gaussian")


@torch.inference_mode()
def evaluate(model: torch.nn.Module, pack: str) -> dict[str, float]:
    """Return the scores of a model, from the sum of its chances at all scales, mirrored and not."""
    images = open_dataset(pack, split="val", fields=("image",))
    labels = open_dataset(pack, split="val", fields=("label",), label="index")
    variants = [SlidingWindows((48, 64), 16, scale, flip) for scale in (0.75, 1, 1.5) for flip in (False, True)]
    metrics, streams = Metrics(len(labels.classes)), [chances(model.eval(), images, each) for each in variants]
    for row, *pictures in zip(range(RANK, len(labels), WORLD), *streams, strict=True):
        label, mean = labels[row][0], torch.zeros(())
        for _, picture in pictures:
            mean = mean + functional.interpolate(torch.from_numpy(picture)[None], label.shape, mode="bilinear")[0]
        metrics.add(mean.argmax(0), label)
    return metrics.scores()


if __name__ == "__main__":
    if WORLD > 1:
        dist.init_process_group("gloo")
    torch.manual_seed(0)
    scores = evaluate(torch.nn.Conv2d(3, 8, 3, padding=1), sys.argv[1])  # your model; here with 8 classes
    if RANK == 0:
        print(" ".join(f"{name} {score:.4f}" for name, score in scores.items()))
    if WORLD > 1:
        dist.barrier()  # no rank leaves while another still receives
        dist.destroy_process_group()
