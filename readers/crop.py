"""Cropping and flipping: the transforms `RandomCrop` and `CenterCrop`, and the same while whole batches are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from readers.contract.errors import RequestError
from readers.contract.fields import Sides
from readers.epoch import Run
from readers.permutation import Numbers, Words, keys_of, mixed
from readers.windows import BatchWindows, centered, overlap, spare_pixels, whole_numbers


@dataclass(frozen=True)
class CenterCrop:
    """`transform=CenterCrop((H, W))`: the middle of each picture; of an odd difference the last pixel is cut or padded.

    Of volumes it is `CenterCrop((D, H, W))`. A smaller picture is padded: the image with `pad`, an index label with the
    ignored number (255 or 65535), a one-hot label with zeros.
    """

    size: Sides
    pad: float = 0

    def __post_init__(self) -> None:
        sides = whole_numbers(self.size)
        if len(sides) not in (2, 3) or min(sides) < 1:
            expected = "expected a height and a width, of volumes a depth before them, from 1 on"
            raise RequestError(f"{type(self).__name__}({self.size!r}): {expected}")

    def __call__(self, *parts: torch.Tensor, fills: Sequence[float | None] | None = None) -> tuple[torch.Tensor, ...]:
        """Return the same window of each part, of an image and a label for example, and single numbers unchanged.

        `fills`: the number to pad each part with, None for `pad`. A data set knows them by its fields.
        """
        sides = len(self.size)
        picture = next(part for part in parts if part.ndim > 1)
        starts = self._start(spare_pixels(picture.shape[-sides:], self.size))
        numbers = [self.pad if fill is None else fill for fill in fills or _fills(parts, sides)]
        return tuple(
            crop(part, starts, self.size, fill) if part.ndim > 1 else part
            for part, fill in zip(parts, numbers, strict=True)
        )

    def _start(self, spare: NDArray[np.int64]) -> list[int]:
        """Return where the window begins on each side; negative where the picture is smaller."""
        start: list[int] = centered(spare).tolist()
        return start


class RandomCrop(CenterCrop):
    """`transform=RandomCrop((H, W))`: a random window of each picture, drawn with PyTorch's random numbers.

    `torch.manual_seed`, or a DataLoader's `generator`, decides them. A smaller picture lies anywhere in the window, and
    is padded as by CenterCrop.
    """

    def _start(self, spare: NDArray[np.int64]) -> list[int]:
        return [int(torch.randint(min(0, pixels), max(0, pixels) + 1, ())) for pixels in spare.tolist()]


def window_of(transform: CenterCrop, sides: NDArray[np.int64]) -> BatchWindows:
    """Return the window that a transform takes of a row of these sides, as windows of a batch of one row."""
    start = transform._start(spare_pixels(sides, transform.size))
    return BatchWindows(transform.size, transform.pad, [start], [False])


def crop(pixels: torch.Tensor, starts: Sequence[int], size: Sides, padding: float) -> torch.Tensor:
    """Return a window in memory of its own: a view would keep the whole picture, and send it from worker to trainer."""
    out = pixels.new_full((*pixels.shape[: -len(size)], *size), padding)
    part, inside = overlap(pixels.shape, size, starts)
    out[inside] = pixels[part]
    return out


def _fills(parts: Sequence[torch.Tensor], sides: int) -> list[int | None]:
    """Return the number to pad each part with: None for the first one that has planes, which counts as the image."""
    image = next((part for part in parts if part.ndim > sides), None)
    return [None if part is image else _ignored(part, sides) for part in parts]


def _ignored(label: torch.Tensor, sides: int) -> int:
    """Return the number of a label's pixels outside of the picture."""
    if label.ndim != sides:
        return 0
    if label.dtype not in (torch.uint8, torch.uint16):
        raise RequestError(f"a label of {label.dtype} has no number for ignored pixels: crop first, convert after")
    return torch.iinfo(label.dtype).max


@dataclass(frozen=True)
class CropAndFlip:
    """The options `crop` and `flip` of a loader: which window of each picture, and whether to flip half of them."""

    crop: CenterCrop | None
    flip: bool

    @classmethod
    def of(cls, crop: Sides | CenterCrop | None, flip: bool, sides: int = 2) -> CropAndFlip | None:
        """Return the options as one object; `(H, W)` means a random window. None if there is nothing to do.

        `sides`: how many a row has, 3 of volumes.
        """
        window = crop if crop is None or isinstance(crop, CenterCrop) else RandomCrop(crop)
        if type(window) not in (type(None), CenterCrop, RandomCrop) or (window and len(window.size) != sides):
            size, rows = ("(D, H, W)", "volumes") if sides == 3 else ("(H, W)", "pictures")
            expected = f"expected {size}, RandomCrop({size}) or CenterCrop({size})"
            raise RequestError(f"crop={crop!r}: the rows are {rows}; {expected}")
        return cls(window, flip) if window or flip else None

    def windows(self, rows: Numbers, runs: Sequence[Run], sizes: NDArray[Any]) -> BatchWindows:
        """Return the windows of the rows of a batch, whose sides are `sizes`."""
        down, across, turn, deep = _dice(rows, runs)
        flips = (turn >> np.uint64(63) == 1) & self.flip
        if self.crop is None:
            return BatchWindows(None, 0, np.zeros_like(sizes).tolist(), flips.tolist())
        spare = spare_pixels(sizes, self.crop.size)
        if isinstance(self.crop, RandomCrop):
            dice = np.stack([deep, down, across][-spare.shape[1] :], 1)
            starts = np.minimum(spare, 0) + (dice % (np.abs(spare) + 1).astype(np.uint64)).astype(np.int64)
        else:
            starts = centered(spare)
        return BatchWindows(self.crop.size, self.crop.pad, starts.tolist(), flips.tolist())


def _dice(rows: Numbers, runs: Sequence[Run]) -> Words:
    """Return four random numbers for each row: the top line of its window, the left column, whether to flip, and the
    first slice of a volume."""
    dice, first = [], 0
    for run in runs:
        part = rows[first : first + run.length]
        dice.append([mixed(part, key) for key in keys_of(run.seed, run.epoch, "cut")[:4]])
        first += run.length
    return np.concatenate(dice, 1)
