"""`VolumeScaling`: the slices of a volume that is scaled along all three sides, made one at a time.

readers/contract/FORMAT.md defines it. Corners stay on corners: on a side of S voxels that becomes D, the centre of
voxel i lies `(2i+1)*S - D` units of 1 / 2D behind the centre of the first source voxel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LINEAR, CUBIC, NEAREST = "linear", "cubic", "nearest"
RULE = "volumes scaled 1"
"""The name of this definition in recipes."""


class Taps(NamedTuple):
    """The source voxels of each voxel along a side, and their weights: both (taps, D)."""

    voxels: NDArray[np.int64]
    weights: NDArray[np.float64]


class VolumeScaling(NamedTuple):
    """A volume of the sides `source` becomes one of the sides `size`."""

    source: tuple[int, int, int]
    size: tuple[int, int, int]
    interpolation: str

    @property
    def _taps(self) -> list[Taps]:
        pairs = zip(self.source, self.size, strict=True)
        return [taps(source, target, self.interpolation) for source, target in pairs]

    def slices(self, number: int) -> list[int]:
        """Return the source slices of a slice, each once."""
        return sorted(set(self._taps[0].voxels[:, number].tolist()))

    def end(self, number: int) -> int:
        """Return the source slices that the first slices of this number need: all before the returned one."""
        return self.slices(number - 1)[-1] + 1 if number else 0

    def slice(self, source: Callable[[int], NDArray[Any]], number: int) -> NDArray[Any]:
        """Return a slice (H,W) of the type of the source slices, whose sums are made in float64 and rounded once."""
        depth, height, width = self._taps
        planes = [source(voxel) for voxel in depth.voxels[:, number].tolist()]
        if self.interpolation == NEAREST:
            nearest: NDArray[Any] = planes[0].take(height.voxels[0], 0).take(width.voxels[0], 1)
            return nearest
        with np.errstate(invalid="ignore", over="ignore"):  # infinite numbers, and their differences
            weights_of = depth.weights[:, number].tolist()
            sums = sum(plane.astype(np.float64) * weight for plane, weight in zip(planes, weights_of, strict=True))
            for axis, (voxels, weights) in enumerate((height, width)):
                if len(voxels) > 1:
                    across = weights[..., None] if axis == 0 else weights[:, None]
                    sums = sum(sums.take(line, axis) * weight for line, weight in zip(voxels, across, strict=True))
            return _rounded(np.asarray(sums), planes[0].dtype)


@lru_cache(maxsize=1024)
def taps(source: int, target: int, interpolation: str) -> Taps:
    """Return the source voxels of each voxel of a side that is scaled; beyond the ends the last ones count again."""
    doubled = (2 * np.arange(target, dtype=np.int64) + 1) * source
    if source == target or interpolation == NEAREST:
        return Taps(doubled[None] // (2 * target), np.ones((1, target)))
    first, rest = np.divmod(doubled - target, 2 * target)
    t = rest / (2 * target)
    if interpolation == LINEAR:
        return Taps(np.stack([first, first + 1]).clip(0, source - 1), np.stack([1 - t, t]))
    weights = [t * (2 * t - t * t - 1), t * t * (3 * t - 5) + 2, t * (1 + t * (4 - 3 * t)), t * t * (t - 1)]
    return Taps(np.stack([first + step for step in (-1, 0, 1, 2)]).clip(0, source - 1), np.stack(weights) / 2)


def _rounded(sums: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return sums as numbers of a type: whole ones are rounded to the nearest, halves to even, and clipped."""
    if dtype.kind == "f":
        return sums.astype(dtype)
    limits = np.iinfo(dtype)
    whole = np.rint(sums)
    inside = np.clip(whole, float(limits.min), float(limits.max)).astype(dtype)
    return np.where(whole >= float(limits.max), limits.max, inside).astype(dtype)
