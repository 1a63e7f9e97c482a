"""Windows of scaled pictures: parts of stored pictures that are scaled while they are copied.

Corners stay on corners. On a side of S pixels that becomes D, pixel i has the position `n = (2i+1)*S - D`, in units of
1 / 2D pixels: it is between the source pixel `n // 2D` and the next one, whose weight is `n % 2D`, rounded to 256ths.
Pictures take both, as `_of_bytes` and `_linear` say; all other fields take the pixel `(2i+1)*S // 2D`, as the packer
does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readers.contract.kernels import fits_kernels, kernel

KERNEL = kernel("readers.scale_kernel")
UNIT = 256
"""The weights of two neighbours are parts of this."""
_HALF = 1 << 15
KernelTone = tuple[NDArray[np.int16] | None, NDArray[np.float32] | None, int]
"""The weights of one row, the lines and the kind, as the kernel of tones takes them."""
PLAIN: KernelTone = None, None, 0


class ScaledSide(NamedTuple):
    """A side of a picture: its pixels, its scaled pixels, and the range of these that a window shows."""

    source: int
    scaled: int
    start: int
    stop: int

    @property
    def nearest(self) -> NDArray[np.int64]:
        """The source pixel of each pixel."""
        return self._doubled // (2 * self.scaled)

    @property
    def neighbours(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first of the two source pixels of each pixel, and the weight of the second."""
        doubled = self._doubled - self.scaled
        first, rest = np.divmod(np.maximum(doubled, 0), 2 * self.scaled)
        weights = (rest * UNIT + self.scaled) // (2 * self.scaled)
        last = max(self.source - 2, 0)
        return np.minimum(first, last), np.where(first > last, min(UNIT, UNIT * (self.source - 1)), weights)

    @property
    def part(self) -> slice:
        """The source pixels that a window is made of."""
        return slice(self._first(self.start), min(self._first(self.stop - 1) + 2, self.source))

    def _first(self, pixel: int) -> int:
        """Return the first of the two source pixels of a pixel."""
        first = max((2 * pixel + 1) * self.source - self.scaled, 0) // (2 * self.scaled)
        return min(first, max(self.source - 2, 0))

    @property
    def _doubled(self) -> NDArray[np.int64]:
        return (2 * np.arange(self.start, self.stop, dtype=np.int64) + 1) * self.source


def scale_window(
    pixels: NDArray[Any],
    sides: Sequence[ScaledSide],
    out: NDArray[Any],
    flip: int,
    linear: bool,
    fill: float | None,
    tone: KernelTone | None = None,
) -> None:
    """Write a window into `out` (…, H, W) of the type of `pixels`, which are the part of the source that it needs.

    With `fill`, numbers of this value mean no data, and others do not change by them. Only `can_tone` allows a `tone`.
    """
    shape, planes = pixels.shape[-2:], (pixels.reshape(-1, *pixels.shape[-2:]), out.reshape(-1, *out.shape[-2:]))
    assert np.may_share_memory(planes[1], out), "planes of an array follow each other"
    if linear and fill is not None and _are_missing(pixels, fill).any():
        _valid_linear(planes[0], sides, planes[1], fill)
    elif not _by_kernel(*planes, sides, flip, linear, tone or PLAIN):
        assert tone is None, "only the kernel knows tones"
        down, across = (side.nearest - side.part.start for side in sides)
        if linear:
            of_bytes = pixels.dtype == np.uint8
            planes[1][...] = _of_bytes(planes[0], sides) if of_bytes else _rounded(_linear(planes[0], sides), out.dtype)
        else:
            planes[1][...] = planes[0][:, down.clip(0, shape[0] - 1)][:, :, across.clip(0, shape[1] - 1)]
    else:
        return
    if flip:
        columns, lines = (slice(None, None, -1 if flip & bit else 1) for bit in (1, 2))
        out[...] = out[..., lines, columns].copy()


def scale_all(windows: list[Any], out: NDArray[Any], linear: bool, tone: KernelTone | None = None) -> bool:
    """Write windows of scaled pictures of bytes (N, C, H, W) by one call of the kernel. Return False if it cannot.

    A window is a mapped file, and (start, height, width, target, top, left, flip, scaled height, scaled width).
    """
    of_bytes = tone is not None or out.dtype == np.uint8
    if KERNEL is None or not of_bytes or not fits_kernels(out):
        return False
    if linear and any(min(numbers[1:3]) < 2 for _, numbers in windows):
        return False
    weights, lines, kind = tone or (None, np.zeros((out.shape[1], 2), np.float32), 0)
    KERNEL.scale_all(windows, out, not linear, weights, lines, kind)
    return True


def can_tone(pixels: NDArray[Any], sides: Sequence[ScaledSide], out: NDArray[Any]) -> bool:
    """Return whether a window of a picture can get its tone while it is scaled."""
    fits = KERNEL is not None and fits_kernels(pixels) and fits_kernels(out)
    return fits and pixels.dtype == np.uint8 and pixels.ndim == 3 and min(side.source for side in sides) > 1


def _by_kernel(
    pixels: NDArray[Any],
    out: NDArray[Any],
    sides: Sequence[ScaledSide],
    flip: int,
    linear: bool,
    tone: KernelTone,
) -> bool:
    """Write a window by the kernel. Return False if it cannot do that."""
    numbers = ((*side[:3], side.part.start) for side in sides)
    if linear and (tone is not PLAIN or can_tone(pixels, sides, out)):
        planes = np.zeros((len(out), 2), np.float32) if tone is PLAIN else tone[1]
        KERNEL.linear(pixels, out, *numbers, flip, tone[0], planes, tone[2])  # type: ignore[union-attr]
        return True
    if linear or KERNEL is None or not (fits_kernels(pixels) and fits_kernels(out)) or out.itemsize > 2:
        return False
    KERNEL.nearest(pixels, out, *numbers, flip)
    return True


def _linear(pixels: NDArray[Any], sides: Sequence[ScaledSide]) -> NDArray[Any]:
    """Return the weighted sums of four pixels each: whole numbers of whole ones, in units of 1 / 65536."""
    sums = pixels.astype(np.float64 if pixels.dtype.kind == "f" else np.int64)
    for axis, side in zip((1, 2), sides, strict=True):
        first, weights = side.neighbours
        first, last = first - side.part.start, sums.shape[axis] - 1
        weights = weights[:, None] if axis == 1 else weights
        sums = sums.take(first, axis) * (UNIT - weights) + sums.take(np.minimum(first + 1, last), axis) * weights
    return sums


def _of_bytes(pixels: NDArray[np.uint8], sides: Sequence[ScaledSide]) -> NDArray[np.uint8]:
    """Return a window of bytes: columns are added exactly, of lines the upper bits of each product."""
    (up, heights), (left, widths) = (side.neighbours for side in sides)
    up, left, sums = up - sides[0].part.start, left - sides[1].part.start, pixels.astype(np.int64)
    right, below = np.minimum(left + 1, sums.shape[2] - 1), np.minimum(up + 1, sums.shape[1] - 1)
    sums = sums[:, :, left] * (UNIT - widths) + sums[:, :, right] * widths
    upper, lower = (sums[:, rows] * part[:, None] // UNIT for rows, part in ((up, UNIT - heights), (below, heights)))
    scaled: NDArray[np.uint8] = ((upper + lower + UNIT // 2) // UNIT).astype(np.uint8)
    return scaled


def _rounded(sums: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    return (sums / (UNIT * UNIT)).astype(dtype) if dtype.kind == "f" else ((sums + _HALF) >> 16).astype(dtype)


def _valid_linear(pixels: NDArray[Any], sides: Sequence[ScaledSide], out: NDArray[Any], fill: float) -> None:
    """Write a window of a picture in which some numbers are missing: the mean of those that are there, or `fill` if
    these have less than half of the weight."""
    missing = _are_missing(pixels, fill)
    weights = _linear((~missing).astype(np.int64), sides)
    sums = _linear(np.where(missing, 0, pixels).astype(np.float64), sides)
    means = np.divide(sums, weights, out=np.zeros_like(sums), where=weights > 0)
    means = means if out.dtype.kind == "f" else np.rint(means)
    out[...] = np.where(2 * weights >= UNIT * UNIT, means, 0).astype(out.dtype)
    out[2 * weights < UNIT * UNIT] = fill


def _are_missing(pixels: NDArray[Any], fill: float) -> NDArray[np.bool_]:
    return np.isnan(pixels) if np.isnan(fill) else np.asarray(pixels == np.array(fill, pixels.dtype))
