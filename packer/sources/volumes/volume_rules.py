"""`VolumeRules`: the axes and the spacing of volumes, as the options of a build choose them."""

from __future__ import annotations

from typing import NamedTuple

from packer.decoding.find_axes import axes_toward
from packer.decoding.turn import UNTURNED, Turn
from packer.errors import BadPair
from packer.sources.volumes.volume import MOST_SLICES, THIRD, Volume
from packer.sources.volumes.volume_place import place_of_file
from packer.sources.volumes.volume_scaling import LINEAR, RULE, VolumeScaling
from readers.contract.tiles import size_text

MOST_VOXELS = 1 << 32
"""The most voxels of a volume that is scaled."""


class VolumeRules(NamedTuple):
    """The axis along which slices follow each other, after a volume is turned; and the distances of voxels."""

    axis: int = THIRD
    orient: str = ""
    """The directions that the axes are turned to, such as `RAS`; empty if they stay."""
    spacing: tuple[float, ...] = ()
    """The distance in mm from slice to slice, row to row and column to column; empty if it stays."""
    interpolation: str = LINEAR

    def turn_of(self, volume: Volume) -> Turn:
        """Return the axes of a volume as the sides of its row."""
        upright = axes_toward(volume.header.grid, self.orient) if self.orient else UNTURNED
        return upright.then(Turn.along(self.axis))

    def scaling_of(self, volume: Volume) -> VolumeScaling | None:
        """Return how a turned volume gets its spacing; None if it stays."""
        if not self.spacing:
            return None
        place = place_of_file(volume)
        if place is None:
            raise BadPair(f"has no place in its header, so --spacing {self._spacing_text} cannot scale it")
        ratios = [old / new for old, new in zip(place.spacing, self.spacing, strict=True)]
        sides = [side * ratio for side, ratio in zip(volume.upright, ratios, strict=True)]
        if not max(sides) < MOST_VOXELS:
            raise BadPair(f"has voxels of {_text(place.spacing)} mm, too large for --spacing {self._spacing_text}")
        slices, height, width = size = _rounded(*sides)
        if slices > MOST_SLICES or slices * height * width > MOST_VOXELS:
            raise BadPair(
                f"has {size_text(size)} voxels with --spacing {self._spacing_text}; up to {MOST_SLICES:,} slices and "
                f"{MOST_VOXELS:,} voxels are packed"
            )
        return VolumeScaling(volume.upright, size, self.interpolation) if size != volume.upright else None

    @property
    def tools(self) -> tuple[str, ...]:
        """The rules of these volumes, for a recipe."""
        oriented = (f"oriented {self.orient}",) if self.orient else ()
        along = () if self.axis == THIRD else (f"along axis {self.axis}",)
        spaced = (f"{RULE}, {self.interpolation}, {self._spacing_text} mm",) if self.spacing else ()
        return (*oriented, *along, *spaced)

    @property
    def _spacing_text(self) -> str:
        return _text(self.spacing)


def _rounded(slices: float, height: float, width: float) -> tuple[int, int, int]:
    return max(1, round(slices)), max(1, round(height)), max(1, round(width))


def _text(spacing: tuple[float, ...]) -> str:
    return ",".join(repr(step).removesuffix(".0") for step in spacing)
