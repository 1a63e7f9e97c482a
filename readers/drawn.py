"""`DrawnWindows`: what a loader has delivered: how often each class was asked for, and how much of it was there."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readers.contract.count_cells import count_pixels
from readers.contract.fields import Field
from readers.contract.kinds import ONEHOT

EVERY = 128
"""The labels of one batch in 128 are counted: it reads them once more, which takes as long as to copy them."""


class BatchDraw(NamedTuple):
    """The draw of the windows of a batch."""

    windows: int
    classes: NDArray[np.int64] | None = None
    """The classes that were asked for, one for each window; -1 for none."""
    again: int = 0
    """The windows that were drawn again for `most`."""
    above: int = 0
    """The windows that have too much of a class nevertheless."""
    pixels: NDArray[np.int64] | None = None
    """The pixels of each class in each window, if they were counted."""


@dataclass
class DrawnWindows:
    """The windows that the user has received since the loader was made; `clear` begins again.

    Pixels are counted in the delivered labels, without padding. They are counted in one batch of
    `EVERY`, if the loader draws by classes.
    """

    names: tuple[str, ...] = ()
    """The names of the classes; none if the loader does not draw by classes."""
    windows: int = 0
    again: int = 0
    above: int = 0
    counted: int = 0
    """The windows whose labels were counted."""
    asked: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """For each class the windows that it was asked for."""
    having: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """For each class the counted windows that have it."""
    pixels: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """For each class its pixels in the counted windows."""
    _adding: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.clear()

    @classmethod
    def of(cls, label: Field | None) -> DrawnWindows:
        """Return no windows of a loader that draws by the classes of this label."""
        return cls(() if label is None or label.classes is None else tuple(label.classes.names))

    def clear(self) -> None:
        """Forget all windows."""
        with self._adding:
            self.windows = self.again = self.above = self.counted = 0
            self.asked, self.having, self.pixels = (np.zeros(len(self.names), np.int64) for _ in range(3))

    def add(self, batch: BatchDraw) -> None:
        """Count a batch that the user receives."""
        with self._adding:
            self.windows += batch.windows
            self.again += batch.again
            self.above += batch.above
            if batch.classes is not None:
                self.asked += np.bincount(batch.classes[batch.classes >= 0], minlength=len(self.names))
            if batch.pixels is not None:
                self.counted += len(batch.pixels)
                self.having += np.count_nonzero(batch.pixels, axis=0)
                self.pixels += batch.pixels.sum(axis=0)

    def __repr__(self) -> str:
        head = f"{self.windows:,} windows"
        if self.again:
            head += f", {self.again:,} of them drawn again, {self.above:,} still above most="
        if not self.counted:
            return head
        valid = max(1, int(self.pixels.sum()))
        width = max(map(len, self.names))
        lines = [
            f"{name:<{width}}  {asked:>8,}  {having / self.counted:>8.1%}  {pixels / valid:>8.2%}"
            for name, asked, having, pixels in zip(
                self.names, self.asked.tolist(), self.having.tolist(), self.pixels.tolist(), strict=True
            )
        ]
        title = f"{'class':<{width}}  {'asked':>8}  {'windows':>8}  {'pixels':>8}"
        return "\n".join([f"{head}; classes of {self.counted:,} windows:", title, *lines])


def pixels_of(label: Field, rows: Sequence[NDArray[Any]] | NDArray[Any]) -> NDArray[np.int64]:
    """Return the pixels of each class in each delivered label of a batch."""
    classes = len(label.classes or ())
    if label.form == ONEHOT:
        counts = [[int(np.count_nonzero(plane)) for plane in planes] for planes in rows]
    else:
        counts = [count_pixels(index, classes).tolist() for index in rows]
    return np.array(counts, np.int64).reshape(len(rows), classes)
