"""The exact area mean: shrink a picture of bytes, by a kernel, or by OpenCV or NumPy with the same bytes.

docs/guide/sizes.md defines it. Both sides of a picture shrink or stay. With both lengths of a side divided by their
greatest divisor, a source pixel is `step` units long and a target pixel `length` units. A target pixel is the sum of
number * units * units over the source pixels that it covers, divided by the product of both lengths, halves to even.
NumPy shrinks 16 bits by the same formula. Of floating-point numbers it takes the sums in float64, first down the
columns, then along the rows, from the first number on, and rounds the quotient once. Images with a range are not
shrunk here but by OpenCV.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from readers.contract.kernels import kernel

KERNEL = kernel("packer.pixels.area_kernel")
RULE = "area mean 1"
"""The name of this definition in recipes, so that shards of another one are not reused. No library is part of it."""
MOST = 1 << 22
"""The longest side that the kernel takes."""
MOST_LINES = (1 << 16) - 1
"""The most lines that the kernel makes."""
MOST_CHANNELS = 4
"""The most channels that the kernel takes at a time."""
FEW_CHANNELS = 16
"""The most channels that are copied into planes at once. A line of more fits into the cache, and a picture does not."""
BLOCK = 1 << 18
"""The numbers that are summed at a time without the kernel: they fit into the caches."""
LEAST_LINES = 512
"""The lines that are summed at a time if hardly any columns of a picture have the same units."""

SIGN = np.uint16(1 << 15)


def area_mean(pixels: NDArray[Any], planes: NDArray[Any]) -> None:
    """Write the area mean of a picture (H,W,C) into planes (C,h,w) of the same type. No side may grow."""
    source, target = pixels.shape[:2], planes.shape[1:]
    if pixels.dtype != np.uint8:
        area_mean_in_numpy(pixels, planes)
    elif len(planes) > MOST_CHANNELS:
        for first in range(0, len(planes), MOST_CHANNELS):
            some = slice(first, first + MOST_CHANNELS)
            area_mean(np.ascontiguousarray(pixels[..., some]), planes[some])
    elif KERNEL is not None and max(source) <= MOST and target[0] <= MOST_LINES:
        KERNEL.area_mean(np.ascontiguousarray(pixels), planes)
    elif opencv_is_exact(source, target):
        fitted = cv2.resize(pixels, target[::-1], interpolation=cv2.INTER_AREA)
        split_planes(fitted.reshape(*target, -1), planes)
    else:
        area_mean_in_numpy(pixels, planes)


def opencv_is_exact(source: Sequence[int], target: Sequence[int]) -> bool:
    """Return whether OpenCV's means, which it sums in float32, are rounded to the right side of every half.

    An odd total has no halves: a mean is at least 1 / (2 * total) away. Each step of a sum is wrong by at most 2^-24 of
    it, and it is at most 255. OpenCV ignores a part of a pixel below 0.001.
    """
    down, across = (_Side.of(*sides) for sides in zip(source, target, strict=True))
    total = down.length * across.length
    steps = sum(-(-side.length // side.step) + 3 for side in (down, across))
    return total % 2 == 1 and total * steps * 256 < 1 << 23 and max(down.step, across.step) < 1000


@dataclass(frozen=True)
class _Side:
    """A side that shrinks, in units that source and target have in common."""

    length: int
    step: int

    @classmethod
    def of(cls, source: int, target: int) -> _Side:
        divisor = gcd(source, target)
        return cls(source // divisor, target // divisor)

    def sums(self, lines: NDArray[Any], first: int, out: NDArray[Any]) -> None:
        """Write the sums of the target lines from `first` on, as many as `out` has.

        After `step` target lines and `length` source lines the units repeat, so such lines are summed together.
        """
        for number in range(first, first + min(self.step, len(out))):
            alike = out[number - first :: self.step]
            begin, end = number * self.length, (number + 1) * self.length
            for source in range(begin // self.step, -(-end // self.step)):
                units = min(end, (source + 1) * self.step) - max(begin, source * self.step)
                part = alike if source * self.step <= begin else np.empty_like(alike)
                np.multiply(
                    lines[source :: self.length][: len(alike)], out.dtype.type(units), out=part, dtype=out.dtype
                )
                if part is not alike:
                    alike += part


def area_mean_in_numpy(pixels: NDArray[Any], planes: NDArray[Any]) -> None:
    """Sum the lines of some target lines, turn these sums on their side, sum again, and divide."""
    if pixels.dtype == np.int16:  # moved by an even number, so that halves stay with their neighbours
        area_mean_in_numpy(pixels.view(np.uint16) ^ SIGN, planes.view(np.uint16))
        planes.view(np.uint16)[...] ^= SIGN
        return
    (height, width, channels), (_, tall, wide) = pixels.shape, planes.shape
    down, across = _Side.of(height, tall), _Side.of(width, wide)
    total = down.length * across.length
    lines = pixels.reshape(height, -1)
    rows = max(1, BLOCK // lines.shape[1], min(across.step, LEAST_LINES))
    for top in range(0, tall, rows):
        block = min(rows, tall - top)
        sums = np.empty((block, lines.shape[1]), _sum_type(pixels.dtype, down.length))
        down.sums(lines, top, sums)
        columns = sums.reshape(block, width, channels).transpose(1, 2, 0).reshape(width, -1)
        sums = np.empty((wide, columns.shape[1]), _sum_type(pixels.dtype, total))
        across.sums(columns, 0, sums)
        means = _quotients(sums, total, pixels.dtype)
        planes[:, top : top + block] = means.reshape(wide, channels, block).transpose(1, 2, 0)


def _sum_type(dtype: np.dtype[Any], units: int) -> np.dtype[Any]:
    """Return a type for the sum of this number of values."""
    return np.dtype(np.float64) if dtype.kind == "f" else np.min_scalar_type(np.iinfo(dtype).max * units)


def _quotients(sums: NDArray[Any], total: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Divide and round once.

    area_avx2.h explains when float32 does for bytes. In float64 a quotient of 16 bits is wrong by 2^-37 at most. If it
    is not a half, it is 1 / (2 * total) away from one, so totals below 2^36 are safe: pictures of 128 GiB.
    """
    if dtype.kind == "f":
        return np.asarray(sums / float(total), dtype)
    exact = "f4" if dtype == np.uint8 and total < 1 << 16 else "f8"
    return np.asarray(np.rint(sums.astype(exact) / np.asarray(total, exact)), dtype)


def planes_of(pixels: NDArray[Any]) -> NDArray[Any]:
    """Return the channels of an image as planes. One channel is not copied."""
    if pixels.shape[2] == 1:
        return np.ascontiguousarray(pixels[None, ..., 0])
    planes = np.empty((pixels.shape[2], *pixels.shape[:2]), pixels.dtype)
    split_planes(pixels, planes)
    return planes


def split_planes(pixels: NDArray[Any], planes: NDArray[Any]) -> None:
    """Write the channels of an image into planes of the same type."""
    in_planes = pixels.transpose(2, 0, 1)
    if len(planes) > FEW_CHANNELS:
        for line, numbers in enumerate(pixels):  # a line fits into the cache: a seventh of the time for 200 channels
            planes[:, line] = numbers.T
    elif pixels.dtype == np.uint8 and not in_planes.flags.c_contiguous:
        cv2.split(pixels, list(planes))  # a third of the time of a copy of the transposed array
    else:
        np.copyto(planes, in_planes)
