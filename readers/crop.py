"""Cropping and flipping: the transforms `RandomCrop` and `CenterCrop`, and the same while whole batches are read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, Literal, NamedTuple, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray

from readers.contract.errors import RequestError
from readers.contract.fields import Sides
from readers.contract.tile_grid import Area, index_of
from readers.draws import dice, draws
from readers.epoch import Run
from readers.permutation import Numbers, Words
from readers.windows import FLIPS, BatchWindows, HowToCopy, centered, overlap, spare_pixels, whole_numbers

MOST_SCALE = 64
"""A picture is not enlarged more."""
Flip = bool | Literal["all"]
"""True: half of the windows are flipped left to right. "all": half of them along each axis."""
_NO, _ONE = np.uint64(0), np.uint64(1)
_TURNED = np.array([0, FLIPS[-2], FLIPS[-1] | FLIPS[-2], FLIPS[-1]], np.uint64)
"""The flip that makes 0 to 3 quarter turns of a window; for 1 and 3, lines and columns have changed places before."""
ROUNDING = 1e-9
"""Shares such as ten times 0.1 may sum up to so much more than 1."""


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
        before = tuple(picture.shape[-sides:])
        windows = window_of(self, np.array(before, np.int64))
        if windows.scaled is not None:
            return _scaled_parts(parts, windows, fills or _fills(parts, sides))
        numbers = [self.pad if fill is None else fill for fill in fills or _fills(parts, sides)]
        return tuple(
            crop(part, windows.starts[0], self.size, fill) if part.ndim > 1 else part
            for part, fill in zip(parts, numbers, strict=True)
        )


@dataclass(frozen=True)
class RandomCrop(CenterCrop):
    """`transform=RandomCrop((H, W))`: a random window of each picture, drawn with PyTorch's random numbers.

    `torch.manual_seed`, or a DataLoader's `generator`, decides them. A smaller picture lies anywhere in the window, and
    is padded as by CenterCrop. With `scale=(0.5, 2.0)` both sides of a picture are scaled by a random number between
    these before: pictures by two neighbours on each side, all other fields by the nearest pixel.

    A loader also draws windows by the classes in them: see `holds`, `most` and `foreground`.
    """

    scale: tuple[float, float] = (1, 1)
    holds: Mapping[str | int, float] | None = None
    """Only for a loader, as all that follows: classes, by name or number, and the share of windows that hold each."""
    holds_rows: Literal["share", "uniform"] = "share"
    """A row with that class is drawn by its pixels of the class, or each such row equally often."""
    most: float = 1
    """The largest share of a window's pixels that one class may have; after 10 windows the last one is taken."""
    foreground: float = 0
    """The share of windows over a class of their row that is not class 0, as nnU-Net draws them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _are_numbers(self.scale, 2) or not 0 < self.scale[0] <= self.scale[1] <= MOST_SCALE:
            raise RequestError(f"scale={self.scale!r}: expected two numbers above 0, such as (0.5, 2.0)")
        if self.scales and len(self.size) != 2:
            raise RequestError(f"scale={self.scale!r}: scales pictures, and {self.size} is a window of volumes")

        shares = tuple(self.holds.values()) if isinstance(self.holds, Mapping) else None if self.holds else ()
        if not _are_numbers(shares) or min(shares, default=0) < 0 or sum(shares) > 1 + ROUNDING:
            expected = 'expected shares from 0 on that sum up to 1 at most, such as {"rider": 0.25}'
            raise RequestError(f"holds={self.holds!r}: {expected}")
        if self.holds_rows not in ("share", "uniform"):
            raise RequestError(f'holds_rows={self.holds_rows!r}: expected "share" or "uniform"')
        if not _are_numbers((self.most, self.foreground)) or not (0 < self.most <= 1 and 0 <= self.foreground <= 1):
            raise RequestError(f"most={self.most!r}, foreground={self.foreground!r}: expected shares up to 1")

    @property
    def follows_classes(self) -> bool:
        """True if windows are drawn by the classes in them."""
        return bool(self.holds) or self.most < 1 or self.foreground > 0

    @property
    def scales(self) -> bool:
        """True if pictures are scaled."""
        return tuple(self.scale) != (1, 1)


def _are_numbers(values: Any, count: int | None = None) -> TypeGuard[Sequence[float]]:
    """Return whether a user gave numbers, as many as `count`."""
    is_list = isinstance(values, (tuple, list)) and count in (None, len(values))
    return is_list and all(isinstance(number, Real) for number in values)


def window_of(transform: CenterCrop, sides: NDArray[np.int64]) -> BatchWindows:
    """Return the window that a transform takes of a row of these sides, as windows of a batch of one row."""
    return CropAndFlip(transform, False).of_one(*drawn_row(), sides)


def between(scale: tuple[float, float], drawn: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scales for numbers from 0 to 1."""
    return scale[0] + (scale[1] - scale[0]) * drawn


def scaled_sides(sides: NDArray[np.int64], scales: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the sides of scaled pictures, from 1 on."""
    return np.maximum(np.rint(sides * scales), 1).astype(np.int64)


def _scaled_parts(
    parts: Sequence[torch.Tensor], windows: BatchWindows, fills: Sequence[float | None]
) -> tuple[torch.Tensor, ...]:
    """Return the window of each part of a picture that is scaled: of the first with planes by neighbours."""
    assert windows.size is not None, "a crop has a size"
    image = next((part for part in parts if part.ndim > 2), None)
    done = []
    for part, fill in zip(parts, fills, strict=True):
        if part.ndim < 2:
            done.append(part)
            continue
        pixels, missing = part.numpy(), fill if fill is not None and math.isnan(fill) else None
        out = np.empty((*pixels.shape[:-2], *windows.size), pixels.dtype)
        how = HowToCopy(fill=fill, is_linear=part is image, missing=missing)
        windows.copy(0, (pixels.shape[-2], pixels.shape[-1]), partial(_part_of, pixels), out, how)
        done.append(torch.from_numpy(out))
    return tuple(done)


def crop(pixels: torch.Tensor, starts: Sequence[int], size: Sides, padding: float) -> torch.Tensor:
    """Return a window in memory of its own: a view would keep the whole picture, and send it from worker to trainer."""
    out = pixels.new_full((*pixels.shape[: -len(size)], *size), padding)
    part, inside = overlap(pixels.shape, size, starts)
    out[inside] = pixels[part]
    return out


def _part_of(pixels: NDArray[Any], area: Area) -> NDArray[Any]:
    part: NDArray[Any] = pixels[index_of(area)]
    return part


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
    """The options `crop`, `flip` and `turn` of a loader: which window of each picture, and how it is turned."""

    crop: CenterCrop | None
    flip: Flip
    turn: bool = False

    @classmethod
    def of(
        cls, crop: Sides | CenterCrop | None, flip: Flip, turn: bool = False, sides: Sequence[int | None] = (None, None)
    ) -> CropAndFlip | None:
        """Return the options as one object; `(H, W)` means a random window. None if there is nothing to do.

        `sides`: the sides of a row, three of volumes; None where they differ.
        """
        window = crop if crop is None or isinstance(crop, CenterCrop) else RandomCrop(crop)
        if type(window) not in (type(None), CenterCrop, RandomCrop) or (window and len(window.size) != len(sides)):
            size, rows = ("(D, H, W)", "volumes") if len(sides) == 3 else ("(H, W)", "pictures")
            expected = f"expected {size}, RandomCrop({size}) or CenterCrop({size})"
            raise RequestError(f"crop={crop!r}: the rows are {rows}; {expected}")
        if flip not in (True, False, "all"):
            raise RequestError(f'flip={flip!r}: expected True (left to right), "all" (every axis) or False')
        height, width = (sides if window is None else window.size)[-2:]
        if turn and (height is None or height != width):
            size = "rows of many sizes" if height is None else f"{height}x{width}"
            raise RequestError(f"turn=True: quarter turns need squares, found {size}; pass crop= with equal sides")
        return cls(window, flip, turn) if window or flip or turn else None

    def of_one(self, rows: Numbers, runs: Sequence[Run], sides: NDArray[np.int64]) -> BatchWindows:
        """Return the window of a single row, whose classes are not known."""
        if self.follows_classes:
            raise RequestError("holds=, most= and foreground= draw by the classes of a pack: use loader(crop=…)")
        return self.windows(rows, runs, sides[None])

    @property
    def follows_classes(self) -> bool:
        """True if windows are drawn by the classes in them."""
        return isinstance(self.crop, RandomCrop) and self.crop.follows_classes

    def scaled(self, rows: Numbers, runs: Sequence[Run], sizes: NDArray[Any]) -> NDArray[Any]:
        """Return the sides that the rows of a batch are scaled to."""
        if not isinstance(self.crop, RandomCrop) or not self.crop.scales:
            return sizes
        return scaled_sides(sizes, between(self.crop.scale, draws(rows, runs, "scale", 1)[0])[:, None])

    def windows(
        self, rows: Numbers, runs: Sequence[Run], sizes: NDArray[Any], spans: Spans | None = None, attempt: int = 0
    ) -> BatchWindows:
        """Return the windows of the rows of a batch, whose sides are `sizes`, over `spans`: the same for each `attempt`
        but for their starts."""
        down, across, pose, deep = dice(rows, runs, "cut", 4)
        flips, swaps = self._poses(pose, sizes.shape[1])
        if self.crop is None:
            return BatchWindows(None, 0, np.zeros_like(sizes).tolist(), flips, None, swaps)
        scaled = self.scaled(rows, runs, sizes)
        spare = spare_pixels(scaled, self.crop.size)
        if isinstance(self.crop, RandomCrop):
            if attempt:
                down, across, deep = dice(rows, runs, f"cut {attempt}", 3)
            drawn = np.stack([deep, down, across][-spare.shape[1] :], 1)
            first, last = np.minimum(spare, 0), np.maximum(spare, 0)
            if spans is not None:
                first, last = spans.starts(first, last, self.crop.size)
            starts = first + (drawn % (last - first + 1).astype(np.uint64)).astype(np.int64)
        else:
            starts = centered(spare)
        scaled_to = None if scaled is sizes else scaled.tolist()
        return BatchWindows(self.crop.size, self.crop.pad, starts.tolist(), flips, scaled_to, swaps)

    def _poses(self, drawn: Words, axes: int) -> tuple[list[int], list[bool] | None]:
        """Return how windows are flipped, and whether lines and columns change places: bit 63 of a random number flips
        the columns, 62 the lines, 61 the slices; two more are the number of quarter turns."""
        bits = list(FLIPS.values())[: axes if self.flip == "all" else int(self.flip)]
        flips = sum(((drawn >> np.uint64(63 - place) & _ONE) * np.uint64(bit) for place, bit in enumerate(bits)), _NO)
        flips = np.broadcast_to(flips, drawn.shape)
        if not self.turn:
            return flips.tolist(), None
        turns = drawn >> np.uint64(59) & np.uint64(3)
        return (flips ^ _TURNED[turns]).tolist(), (turns % 2 == 1).tolist()


def drawn_row() -> tuple[Numbers, list[Run]]:
    """Return a row and its run, from which random numbers follow: PyTorch draws them."""
    return np.zeros(1, np.int64), [Run(int(torch.randint(1 << 62, ())), 0, 1)]


class Spans(NamedTuple):
    """For each row of a batch the part of it, scaled, that its window must cover; none where it ends at 0."""

    begins: NDArray[np.int64]
    ends: NDArray[np.int64]

    def starts(
        self, first: NDArray[np.int64], last: NDArray[np.int64], size: Sides
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first and the last start of each window that covers its part, of those that were possible."""
        covers = self.ends > 0
        low = np.where(covers, np.maximum(first, self.ends - np.asarray(size)), first)
        return low, np.where(covers, np.minimum(last, self.begins), last)
