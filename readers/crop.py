"""Cropping and flipping: the transforms `RandomCrop` and `CenterCrop`, and the same while whole batches are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from readers.contract.errors import RequestError
from readers.epoch import Run
from readers.permutation import Numbers, Words, keys_of, mixed
from readers.windows import BatchWindows, Size, centered, overlap, spare_pixels


@dataclass(frozen=True)
class CenterCrop:
    """`transform=CenterCrop((H, W))`: the middle of each picture; of an odd difference the last pixel is cut or padded.

    A smaller picture is padded: the image with `pad`, an index label with the ignored number (255 or 65535), a one-hot
    label with zeros.
    """

    size: Size
    pad: float = 0

    def __post_init__(self) -> None:
        if len(self.size) != 2 or min(self.size) < 1:
            raise RequestError(f"{type(self).__name__}({self.size!r}): expected a height and a width, from 1 on")

    def __call__(self, *parts: torch.Tensor, fills: Sequence[float | None] | None = None) -> tuple[torch.Tensor, ...]:
        """Return the same window of each part, of an image and a label for example, and single numbers as they are.

        `fills`: the number to pad each part with, None for `pad`. A data set knows them by its fields.
        """
        picture = next(part for part in parts if part.ndim > 1)
        top, left = self._start(spare_pixels(picture.shape[-2:], self.size))
        numbers = [self.pad if fill is None else fill for fill in fills or _fills(parts)]
        return tuple(
            crop(part, top, left, self.size, fill) if part.ndim > 1 else part
            for part, fill in zip(parts, numbers, strict=True)
        )

    def _start(self, spare: NDArray[np.int64]) -> list[int]:
        """Return the top line and left column of the window; negative where the picture is smaller."""
        start: list[int] = centered(spare).tolist()
        return start


class RandomCrop(CenterCrop):
    """`transform=RandomCrop((H, W))`: a random window of each picture, drawn with PyTorch's random numbers.

    `torch.manual_seed`, or a DataLoader's `generator`, decides them. A smaller picture lies anywhere in the window, and
    is padded as by CenterCrop.
    """

    def _start(self, spare: NDArray[np.int64]) -> list[int]:
        return [int(torch.randint(min(0, pixels), max(0, pixels) + 1, ())) for pixels in spare.tolist()]


def crop(pixels: torch.Tensor, top: int, left: int, size: Size, padding: float) -> torch.Tensor:
    """Return a window in memory of its own: a view would keep the whole picture, and send it from worker to trainer."""
    out = pixels.new_full((*pixels.shape[:-2], *size), padding)
    part, inside = overlap(pixels.shape, size, top, left)
    out[inside] = pixels[part]
    return out


def _fills(parts: Sequence[torch.Tensor]) -> list[int | None]:
    """Return the number to pad each part with: None for the first one that has planes, which counts as the image."""
    image = next((part for part in parts if part.ndim > 2), None)
    return [None if part is image else _ignored(part) for part in parts]


def _ignored(label: torch.Tensor) -> int:
    """Return the number of a label's pixels outside of the picture."""
    if label.ndim != 2:
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
    def of(cls, crop: Size | CenterCrop | None, flip: bool) -> CropAndFlip | None:
        """Return the options as one object; `(H, W)` means a random window. None if there is nothing to do."""
        known = crop if crop is None or isinstance(crop, CenterCrop) else RandomCrop(crop)
        if type(known) not in (type(None), CenterCrop, RandomCrop):
            raise RequestError(f"crop={crop!r}: expected (H, W), RandomCrop((H, W)) or CenterCrop((H, W))")
        return cls(known, flip) if known or flip else None

    def windows(self, rows: Numbers, runs: Sequence[Run], sizes: NDArray[Any]) -> BatchWindows:
        """Return the windows of the rows of a batch, whose heights and widths are `sizes`."""
        down, across, turn = _dice(rows, runs)
        flips = (turn >> np.uint64(63) == 1) & self.flip
        if self.crop is None:
            nowhere = [0] * len(rows)
            return BatchWindows(None, 0, nowhere, nowhere, flips.tolist())
        spare = spare_pixels(sizes, self.crop.size)
        if isinstance(self.crop, RandomCrop):
            dice = np.stack([down, across], 1)
            starts = np.minimum(spare, 0) + (dice % (np.abs(spare) + 1).astype(np.uint64)).astype(np.int64)
        else:
            starts = centered(spare)
        tops, lefts = starts.T.tolist()
        return BatchWindows(self.crop.size, self.crop.pad, tops, lefts, flips.tolist())


def _dice(rows: Numbers, runs: Sequence[Run]) -> Words:
    """Return three random numbers for each row: the top line of its window, the left column, and whether to flip."""
    dice, first = [], 0
    for run in runs:
        part = rows[first : first + run.length]
        dice.append([mixed(part, key) for key in keys_of(run.seed, run.epoch, "cut")[:3]])
        first += run.length
    return np.concatenate(dice, 1)
