"""`Colour`: how the colours of pictures are changed at random, in a loader or as a transform."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import RequestError
from readers.draws import draws
from readers.epoch import Run
from readers.permutation import Numbers

GRAY = (0.299, 0.587, 0.114)
"""The parts of red, green and blue in gray, as in torchvision."""
MOST = 4
"""A channel is not multiplied by as much."""
Range = float | tuple[float, float]


@dataclass(frozen=True)
class Colour:
    """`colour=Colour(brightness=0.3, contrast=0.3, saturation=0.3)`: each picture with random factors of its own.

    A factor is between 1 - x and 1 + x, or in a range (low, high). Pixels from 0 to 1 are multiplied by the factor of
    `channels`, one for each channel, and by the brightness. Then `contrast` changes their distance from `middle`, and
    `saturation` that from their gray. `gray` is the share of pictures that become gray. All is one sum for each pixel,
    which is cut off at 0 and 1 at its end. torchvision's ColorJitter cuts off after each step, and its middle is the
    mean of each picture.
    """

    brightness: Range = 0
    contrast: Range = 0
    saturation: Range = 0
    channels: Range = 0
    gray: float = 0
    middle: float = 0.5

    def __post_init__(self) -> None:
        ranges = {name: _range(name, getattr(self, name)) for name in _FACTORS}
        most = float(np.prod([high for _, high in ranges.values()]))
        if most >= MOST:
            raise RequestError(f"{self}: the largest factors make {most:g} together; expected less than {MOST}")
        if not (0 <= self.gray <= 1 and 0 <= self.middle <= 1):
            raise RequestError(f"{self}: expected gray and middle from 0 to 1")

    def check(self, channels: int) -> None:
        """Refuse pictures that have no gray."""
        if self._mixes and channels != len(GRAY):
            raise RequestError(
                f"{self}: saturation and gray need red, green and blue, and pictures have {channels} channels"
            )

    def weights(self, rows: Numbers, runs: Sequence[Run], channels: int) -> NDArray[np.float64]:
        """Return for each row of a batch the factors of its channels, those for gray if it is used, and a term."""
        return self.drawn(draws(rows, runs, "colour", len(_FACTORS) + channels), channels)

    def drawn(self, numbers: NDArray[np.float64], channels: int) -> NDArray[np.float64]:
        """Return the same for numbers from 0 to 1: of brightness, contrast, saturation, gray and each channel."""
        ranges = (self.brightness, self.contrast, self.saturation)
        brightness, contrast, saturation = (_between(*pair) for pair in zip(ranges, numbers, strict=False))
        saturation = np.where(numbers[3] < self.gray, 0.0, saturation)
        own = _between(self.channels, numbers[4:]) * brightness * contrast
        gray = [own * np.array(GRAY)[:, None] * (1 - saturation)] if self._mixes else []
        return np.concatenate([own * saturation if gray else own, *gray, [(1 - contrast) * self.middle]]).T

    @property
    def _mixes(self) -> bool:
        return self.gray > 0 or _range("saturation", self.saturation) != (1, 1)


_FACTORS = ("brightness", "contrast", "saturation", "channels")


def _range(name: str, factors: Range) -> tuple[float, float]:
    """Return the least and the largest factor."""
    try:
        low, high = (
            map(float, factors) if isinstance(factors, (tuple, list)) else (max(0.0, 1 - factors), 1.0 + factors)
        )
    except (TypeError, ValueError):
        low = high = math.nan
    if not 0 <= low <= high:
        raise RequestError(f"{name}={factors!r}: expected a number from 0 on, or the least and the largest factor")
    return low, high


def _between(factors: Range, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = _range("a factor", factors)
    return low + (high - low) * numbers
