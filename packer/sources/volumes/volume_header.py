"""`VolumeHeader`: what the header of a volume says, in words that all formats share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from packer.decoding.grid import Grid


@dataclass(frozen=True)
class VolumeHeader:
    """The type, the sides and the place of voxels. Stored numbers times `slope` plus `intercept` are the values."""

    kind: str
    """The name of the format."""
    dtype: np.dtype[Any]
    sides: tuple[int, int, int]
    """In the order of the file's axes. Numbers next to each other along the first one are next to each other."""
    grid: Grid | None = None
    """The place of the voxels in the world, in the order of the file's axes, if the header says it."""
    slope: float = 0.0
    intercept: float = 0.0
    channels: int = 1
    """The numbers of a voxel."""
    is_interleaved: bool = False
    """True if the channels of a voxel are next to each other. Otherwise one volume follows the other."""
    text: bytes = b""
    """The bytes of the header, if it is not among the bytes of the voxels."""

    @property
    def size(self) -> int:
        """The bytes of all numbers."""
        return self.dtype.itemsize * math.prod(self.sides) * self.channels

    @property
    def is_scaled(self) -> bool:
        """True if the numbers in the file are not the values. A slope of 0 means that there is none."""
        return self.slope != 0 and (self.slope, self.intercept) != (1, 0)
