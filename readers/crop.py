"""Cropping and flipping: `RandomCrop` and `CenterCrop`, and the same windows cut while rows are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from readers.contract.errors import RequestError
from readers.permutation import Numbers, keys_of, mixed

Size = tuple[int, int]


@dataclass(frozen=True)
class CenterCrop:
    """`transform=CenterCrop((H, W))`: the middle of each picture; of an odd difference the last pixel is cut or padded.

    A smaller picture is padded: the image with `pad`, the label with what is ignored (255 or 65535 of numbers, no class
    of planes).
    """

    size: Size
    pad: float = 0

    def __post_init__(self) -> None:
        if len(self.size) != 2 or min(self.size) < 1:
            raise RequestError(f"{type(self).__name__}({self.size!r}): expected a height and a width, from 1 on")

    def __call__(self, image: torch.Tensor, label: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        top, left = (self._start(image.shape[axis - 2] - self.size[axis]) for axis in (0, 1))
        ignored = _ignored(label)
        return _window(image, top, left, self.size, self.pad), _window(label, top, left, self.size, ignored)

    def _start(self, spare: int) -> int:
        """Where on a side the window begins that has this much room; both are negative where the picture is smaller."""
        return spare // 2 if spare >= 0 else -(-spare // 2)


class RandomCrop(CenterCrop):
    """`transform=RandomCrop((H, W))`: a window anywhere in each picture, by torch's own random numbers.

    `torch.manual_seed`, or a DataLoader's `generator`, decides them. A smaller picture lies anywhere in the window, and
    is padded as by CenterCrop.
    """

    def _start(self, spare: int) -> int:
        return int(torch.randint(min(0, spare), max(0, spare) + 1, ()))


def _window(pixels: torch.Tensor, top: int, left: int, size: Size, padding: float) -> torch.Tensor:
    """A window in memory of its own: a view would keep the whole picture, and send it from worker to trainer."""
    height, width = size
    out = pixels.new_full((*pixels.shape[:-2], height, width), padding)
    part = pixels[..., max(0, top) : top + height, max(0, left) : left + width]
    down, right = max(0, -top), max(0, -left)
    out[..., down : down + part.shape[-2], right : right + part.shape[-1]] = part
    return out


def _ignored(label: torch.Tensor) -> int:
    """What a label has where the picture ends."""
    if label.ndim != 2:
        return 0
    if label.dtype not in (torch.uint8, torch.uint16):
        raise RequestError(f"a label of {label.dtype} does not tell what is ignored: crop first, convert after")
    return torch.iinfo(label.dtype).max


Put = Callable[[NDArray[Any], NDArray[Any]], object]
"""Writes pixels into given memory: as they are, or as another form of label."""


@dataclass(frozen=True)
class Windows:
    """For each row of a batch: where its window begins, which may be outside of the picture, and whether to flip it."""

    size: Size | None
    pad: float
    tops: list[int]
    lefts: list[int]
    flips: list[bool]

    def put(self, number: int, pixels: NDArray[Any], out: NDArray[Any], put: Put, padding: float) -> None:
        """Write the window of row `number` into `out`; only its lines are read."""
        height, width = out.shape[-2:]
        top, left = self.tops[number], self.lefts[number]
        part = pixels[..., max(0, top) : top + height, max(0, left) : left + width]
        down, right = max(0, -top), max(0, -left)
        inside = out[..., down : down + part.shape[-2], right : right + part.shape[-1]]
        if inside.shape != out.shape:
            out[...] = padding
        put(inside, part)
        if self.flips[number]:
            mirror(out)


@dataclass(frozen=True)
class Cut:
    """What is cut out of each picture, if anything, and whether half of them are flipped left to right."""

    crop: CenterCrop | None
    flip: bool

    @classmethod
    def of(cls, crop: Size | CenterCrop | None, flip: bool) -> Cut | None:
        """As the user says it; `(H, W)` is a window anywhere."""
        known = crop if crop is None or isinstance(crop, CenterCrop) else RandomCrop(crop)
        if type(known) not in (type(None), CenterCrop, RandomCrop):
            raise RequestError(f"crop={crop!r}: expected (H, W), RandomCrop((H, W)) or CenterCrop((H, W))")
        return cls(known, flip) if known or flip else None

    def windows(self, seed: int, epoch: int, rows: Numbers, sizes: NDArray[Any]) -> Windows:
        """The windows of these rows, whose heights and widths are `sizes`."""
        down, across, turn, *_ = keys_of(seed, epoch, "cut")
        flips = (mixed(rows, turn) >> np.uint64(63) == 1) & self.flip
        if self.crop is None:
            nowhere = [0] * len(rows)
            return Windows(None, 0, nowhere, nowhere, flips.tolist())
        spare = sizes.astype(np.int64) - self.crop.size
        if isinstance(self.crop, RandomCrop):
            dice = np.stack([mixed(rows, down), mixed(rows, across)], 1)
            starts = np.minimum(spare, 0) + (dice % (np.abs(spare) + 1).astype(np.uint64)).astype(np.int64)
        else:
            starts = np.where(spare >= 0, spare // 2, -(-spare // 2))
        tops, lefts = starts.T.tolist()
        return Windows(self.crop.size, self.crop.pad, tops, lefts, flips.tolist())


def mirror(pixels: NDArray[Any]) -> None:
    """Turn the last axis round, in place."""
    words = 8 // pixels.itemsize
    if pixels.itemsize == 1 and pixels.shape[-1] % words == 0 and pixels.flags.c_contiguous:
        eights = pixels.view(np.uint64)
        eights[...] = eights[..., ::-1].byteswap()
    else:
        pixels[...] = pixels[..., ::-1].copy()
