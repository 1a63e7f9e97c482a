"""`SlidingWindows`: windows of one size that cover whole pictures, which may be scaled and flipped, for evaluation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from readers.contract.errors import RequestError
from readers.contract.fields import Sides
from readers.contract.tiles import size_text
from readers.crop import MOST_SCALE, scaled_sides
from readers.permutation import Numbers
from readers.windows import BatchWindows, whole_numbers


@dataclass(frozen=True, repr=False)
class SlidingWindows:
    """`loader(8, windows=SlidingWindows((512, 512), overlap=128))`: all windows of all pictures, row by row.

    With `scale` both sides of a picture are scaled before, as by `RandomCrop`, and the keys name the scaled size. With
    `flip` each window is mirrored left to right, and stays in its place: `undo` mirrors what a model says about it.
    """

    size: Sides
    overlap: int = 0
    scale: float = 1
    flip: bool = False

    def __post_init__(self) -> None:
        sides, shared = whole_numbers(self.size), whole_numbers([self.overlap])
        if len(sides) not in (2, 3) or min(sides) < 1:
            expected = "expected a height and a width, of volumes a depth before them, from 1 on"
            raise RequestError(f"windows of the size {self.size!r}: {expected}")
        if not shared or not 0 <= shared[0] < min(sides):
            raise RequestError(f"overlap={self.overlap!r}: expected a whole number below each side of {sides}")
        is_number = isinstance(self.scale, (int, float)) and math.isfinite(self.scale)
        if not is_number or not 0 < self.scale <= MOST_SCALE:
            raise RequestError(f"scale={self.scale!r}: expected a number above 0, at most {MOST_SCALE}")
        if self.flip not in (True, False):
            raise RequestError(f"flip={self.flip!r}: expected True (left to right) or False")
        if self.scale != 1 and len(sides) != 2:
            raise RequestError(f"scale={self.scale!r}: scales pictures, and {sides} is a window of volumes")

    @classmethod
    def of(cls, windows: Sides | SlidingWindows, sides: int) -> SlidingWindows:
        """Return the windows that a user names, also by their size alone, for rows of this number of sides."""
        chosen = windows if isinstance(windows, SlidingWindows) else cls(windows)
        if len(chosen.size) != sides:
            rows, size = ("volumes", "(D, H, W)") if sides == 3 else ("pictures", "(H, W)")
            raise RequestError(f"windows={windows!r}: the rows are {rows}; expected {size} or SlidingWindows({size})")
        return chosen

    def scaled(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sides to which rows of these sides are scaled."""
        return sizes if self.scale == 1 else scaled_sides(sizes, np.array(float(self.scale)))

    def counts(self, sizes: NDArray[np.int64]) -> Numbers:
        """Return the number of windows of rows of these sides."""
        counts: Numbers = self._along(sizes).prod(-1)
        return counts

    def starts(self, sizes: NDArray[np.int64], numbers: Numbers) -> NDArray[np.int64]:
        """Return where a window of each row begins: the window of this number in its scaled row."""
        along, places, left = self._along(sizes), [], numbers
        for axis in reversed(range(sizes.shape[1])):
            left, place = np.divmod(left, along[:, axis])
            places.append(place)
        steps = np.array(self.size) - self.overlap
        starts: NDArray[np.int64] = np.stack(places[::-1], 1) * steps
        return starts

    def windows(self, sizes: NDArray[np.int64], starts: NDArray[np.int64]) -> BatchWindows:
        """Return the windows of a batch of rows."""
        scaled = None if self.scale == 1 else self.scaled(sizes).tolist()
        flips = [self.flip] * len(starts)
        return BatchWindows(size=tuple(self.size), pad=0, starts=starts.tolist(), flips=flips, scaled=scaled)

    def undo(self, pixels: Any) -> Any:
        """Return what a model says about windows (…, H, W), an array or a tensor, mirrored back if they are."""
        if not self.flip:
            return pixels
        return pixels.flip(-1) if isinstance(pixels, torch.Tensor) else np.flip(pixels, -1)

    def _along(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many windows there are along each side of rows of these sides; see `tile_starts`."""
        steps = np.array(self.size) - self.overlap
        along: NDArray[np.int64] = np.maximum(-(-(self.scaled(sizes) - self.overlap) // steps), 1)
        return along

    def __repr__(self) -> str:
        """Return what states of loaders are compared by."""
        parts = [size_text(tuple(self.size)), f"overlap={self.overlap}", f"scale={self.scale}", f"flip={self.flip}"]
        return f"SlidingWindows({', '.join(parts)})"
