"""The two forms of a label: planes, one per class (`onehot`), and one number per pixel (`index`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from readers.contract.kernels import fits_kernels, kernel

KERNEL = kernel("readers.contract.onehot_kernel")
Labels = NDArray[np.uint8] | NDArray[np.uint16]


def expand(index: Labels, classes: int, out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """Convert (H, W) or (D, H, W) numbers to (classes, …) planes of 0 and 1; an ignored pixel is 0 in every plane."""
    if out is None:
        out = np.empty((classes, *index.shape), np.uint8)
    if index.ndim > 2:
        for numbers, planes in zip(index, np.moveaxis(out, 1, 0), strict=True):
            expand(numbers, classes, planes)
    elif KERNEL is not None and fits_kernels(index) and fits_kernels(out):
        KERNEL.expand(index, out)
    else:
        np.equal(index, np.arange(classes, dtype=index.dtype)[:, None, None], out=out.view(np.bool_))
    return out


def collapse(planes: NDArray[np.uint8], dtype: str, out: Labels | None = None) -> Labels:
    """Convert (classes, …) planes to (…) numbers; a pixel without a class gets the dtype's largest number.

    Each pixel has at most one 1, so the sum of (class + 1) * plane is class + 1, or 0. Minus 1, the 0 wraps around.
    """
    index: Labels = np.empty(planes.shape[1:], dtype) if out is None else out
    index[...] = 0
    part = np.empty_like(index)
    for number in range(len(planes)):
        np.multiply(planes[number], index.dtype.type(number + 1), out=part, dtype=index.dtype)
        index += part
    index -= 1
    return index
