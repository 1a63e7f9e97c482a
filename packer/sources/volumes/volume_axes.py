"""`VolumeAxes`: the axes of volumes as the options of a build choose them."""

from __future__ import annotations

from typing import NamedTuple

from packer.decoding.find_axes import axes_toward
from packer.decoding.turn import UNTURNED, Turn
from packer.sources.volumes.nifti_volume import THIRD, Volume


class VolumeAxes(NamedTuple):
    """The axis along which slices follow each other, after a volume is turned."""

    axis: int = THIRD
    orient: str = ""
    """The directions that the axes are turned to, such as `RAS`; empty if they stay."""

    def turn_of(self, volume: Volume) -> Turn:
        """Return the axes of a volume as the sides of its row."""
        upright = axes_toward(volume.file_grid, self.orient) if self.orient else UNTURNED
        return upright.then(Turn.along(self.axis))

    @property
    def tools(self) -> tuple[str, ...]:
        """The rules of these axes, for a recipe."""
        along = () if self.axis == THIRD else (f"along axis {self.axis}",)
        return (*((f"oriented {self.orient}",) if self.orient else ()), *along)
