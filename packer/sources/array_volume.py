"""An array that a function returned as a volume: its slices are pictures."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from packer.decoding.arrays import check_bands_last, header_of
from packer.decoding.header import Header
from packer.errors import BadPair
from packer.recipe.source import FieldData, Slices
from readers.contract.kinds import MOST_BANDS

SHAPES = f"expected (D, H, W), or (D, H, W, B) with 1 to {MOST_BANDS} bands"


def header_of_volume(voxels: FieldData) -> Header:
    """Return the facts of a volume. Raise BadPair if it cannot be one."""
    if isinstance(voxels, bytes):
        raise BadPair(f"is the bytes of a file, and the rows are volumes; {SHAPES}: return an array")
    if voxels.ndim not in (3, 4) or not len(voxels):
        raise BadPair(f"has the shape {voxels.shape}, and the rows are volumes; {SHAPES}")
    check_bands_last(voxels.shape[1:], voxels.dtype)
    header = header_of(voxels[0], sys.maxsize)  # --max-pixels is checked when a slice is decoded
    return replace(header, slices=len(voxels))


def slices_of_array(voxels: NDArray[Any], name: str) -> Slices:
    """Return a volume whose slices follow each other along the first axis."""
    return Slices(voxels.shape[:3], voxels.__getitem__, name)
