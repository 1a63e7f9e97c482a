"""Write a label at the stored size, and count the pixels of each class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.pixels.class_lookup import IGNORE
from packer.pixels.class_picture import ClassPicture
from packer.pixels.resize import Geometry
from readers.contract.kernels import kernel
from readers.contract.tiles import Origin

KERNEL = kernel("packer.pixels.sample_kernel")


def store(
    picture: ClassPicture, geometry: Geometry, origin: Origin | None, classes: int, out: NDArray[Any]
) -> list[int]:
    """Write class indices into `out`, ignored pixels as its largest number; return the pixels of each class."""
    if KERNEL is None or picture.classes is None or out.dtype != np.uint8:
        np.copyto(out, geometry.label(picture.index(), origin), casting="unsafe")
        return count_runs(out, classes)
    rows, columns, region = geometry.sampled(picture.shape, origin)
    if out[region].shape != out.shape:
        out[...] = IGNORE & 0xFF
    counts = np.empty(256, np.int64)
    KERNEL.sample(picture.numbers, picture.classes.astype(np.uint8), rows, columns, out[region], counts)
    return list(map(int, counts[:classes]))


def count_runs(index: NDArray[Any], classes: int) -> list[int]:
    """Return the pixels of each class, summed over runs of equal ones: runs are few, and float64 sums are exact."""
    flat = index.reshape(-1)
    ends = np.append(np.flatnonzero(flat[1:] != flat[:-1]), flat.size - 1)
    counts = np.bincount(flat[ends], np.diff(ends, prepend=-1), classes)[:classes]
    return list(map(int, counts))
