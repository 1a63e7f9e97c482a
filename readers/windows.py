"""Windows of pictures: where they lie, and copies of them out of pictures that may be smaller than the window."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.fields import Sides
from readers.contract.kernels import fits_kernels, kernel
from readers.contract.tile_grid import Area
from readers.scaled import ScaledSide, scale_window

KERNEL, TILE_KERNEL = kernel("readers.window_kernel"), kernel("readers.tile_kernel")
WindowIndex = tuple[Any, ...]
"""An index of the last axes, for arrays of numpy and for tensors."""
BatchPicture = tuple[int, NDArray[np.uint8], int, Sides]
"""The index in the batch, the mapped file, the position of the first pixel there, and the size."""
ReadPart = Callable[[Area], NDArray[Any]]
"""`read(part)` returns a part of a row."""
TiledPicture = tuple[int, NDArray[np.uint8], Sides]
"""The index in the batch, the stored bytes of a row in tiles, and its size."""
CopyPixels = Callable[[NDArray[Any], NDArray[Any]], object]
"""`copy(out, pixels)` writes pixels into an array: unchanged, or converted to the other form of label."""


def whole_numbers(numbers: Any) -> tuple[int, ...]:
    """Return starts or sides as a user gave them; none of what is not a sequence of whole numbers."""
    try:
        return tuple(map(operator.index, numbers))
    except TypeError:
        return ()


def spare_pixels(picture: Sequence[int] | NDArray[Any], window: Sides) -> NDArray[np.int64]:
    """Return how much longer each side of a picture is than the window's side; negative where it is shorter."""
    return np.asarray(picture, np.int64) - np.asarray(window, np.int64)


def centered(spare: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where a window in the middle begins. The last of an odd number of spare pixels is cut, or padded."""
    return np.abs(spare) // 2 * np.sign(spare)


def overlap(picture: Sequence[int], window: Sequence[int], starts: Sequence[int]) -> tuple[WindowIndex, WindowIndex]:
    """Return the part of a picture inside a window, as an index of the picture and as an index of the window.

    The window begins at `starts`, one for each of the last axes, negative where it begins outside of the picture.
    """
    axes = len(starts)
    parts = [
        slice(min(max(0, start), side), max(0, min(side, start + length)))
        for side, length, start in zip(picture[-axes:], window[-axes:], starts, strict=True)
    ]
    inside = (slice(part.start - start, part.stop - start) for part, start in zip(parts, starts, strict=True))
    return (..., *parts), (..., *inside)


def mirrored(inside: WindowIndex, width: int, flip: bool) -> WindowIndex:
    """Return the part of a window that is covered, in the flipped window if it is flipped."""
    if not flip:
        return inside
    return (*inside[:-1], slice(width - inside[-1].stop, width - inside[-1].start))


@dataclass(frozen=True)
class HowToCopy:
    """The copy of the pixels of a field, and the number around them.

    `is_linear`: pixels of scaled windows are made of neighbours. `missing` is the number of those without data.
    """

    copy: CopyPixels = np.copyto
    fill: float | None = None
    is_linear: bool = False
    missing: float | None = None


@dataclass(frozen=True)
class BatchWindows:
    """The window of each row of a batch: where it begins, which may be outside of the picture, and whether to flip.

    With `scaled`, the sides that each picture is scaled to, it begins there in the scaled picture.
    """

    size: Sides | None
    pad: float
    starts: list[list[int]]
    """For each row the start of its window on each side."""
    flips: list[bool]
    scaled: list[list[int]] | None = None

    def copy_all(self, pictures: Iterable[BatchPicture], out: NDArray[Any]) -> bool:
        """Copy the windows of all rows into `out` by one call of the kernel. Return False if it cannot do that: it is
        not there, pixels are too large, or a window is partly outside of its picture."""
        if KERNEL is None or out.itemsize > 2 or not self.flips or len(self.starts[0]) != 2 or self.scaled is not None:
            return False
        lines, columns = out.shape[-2:]
        windows = []
        for target, data, start, (height, width) in pictures:
            top, left = self.starts[target]
            if not (0 <= top <= height - lines and 0 <= left <= width - columns):
                return False
            windows.append((data, (start, height, width, target, top, left, self.flips[target])))
        KERNEL.copy_all(windows, out if out.ndim == 4 else out[:, None])
        return True

    def copy_tiles(self, rows: Iterable[TiledPicture], tile: Sides, out: NDArray[Any]) -> bool:
        """Copy the windows of rows in tiles of raw pixels as `copy_all` does. Return False also if a row is damaged."""
        if TILE_KERNEL is None or out.itemsize > 2 or not self.flips or len(tile) != 2 or self.scaled is not None:
            return False
        lines, columns = out.shape[-2:]
        windows = []
        for target, stored, (height, width) in rows:
            top, left = self.starts[target]
            if not (0 <= top <= height - lines and 0 <= left <= width - columns):
                return False
            window = (0, len(stored), height, width, *tile, target, top, left, self.flips[target])
            windows.append((stored, window))
        try:
            TILE_KERNEL.copy_all(windows, out if out.ndim == 4 else out[:, None])
        except (ValueError, OverflowError):  # the sides of a tile may be any numbers
            return False
        return True

    def part(self, target: int, sides: Sides) -> Area:
        """Return the part of the batch's row `target`, of these sides, that its window shows."""
        if self._is_scaled(target, sides):
            return tuple(side.part for side in self._scaled_sides(target, sides, self.size or sides))
        _, *part = overlap(sides, self.size or sides, self.starts[target])[0]
        return tuple(part)

    def _is_scaled(self, target: int, sides: Sides) -> bool:
        return self.scaled is not None and tuple(self.scaled[target]) != tuple(sides)

    def _scaled_sides(self, target: int, sides: Sides, window: Sides) -> list[ScaledSide]:
        """Return what the window of a row, of this size, shows of each side."""
        assert self.scaled is not None, "the row is scaled"
        _, *parts = overlap(self.scaled[target], window, self.starts[target])[0]
        return [
            ScaledSide(side, scaled, part.start, part.stop)
            for side, scaled, part in zip(sides, self.scaled[target], parts, strict=True)
        ]

    def _copy_scaled(self, target: int, sides: Sides, read: ReadPart, out: NDArray[Any], how: HowToCopy) -> None:
        """Copy the window of a row that is scaled."""
        assert self.scaled is not None, "the row is scaled"
        flip = self.flips[target]
        inside = mirrored(overlap(self.scaled[target], out.shape, self.starts[target])[1], out.shape[-1], flip)
        covered, shown = out[inside], self._scaled_sides(target, sides, out.shape[-2:])
        if covered.shape != out.shape:
            out[...] = self.pad if how.fill is None else how.fill
        if not covered.size:
            return
        pixels = read(tuple(side.part for side in shown))
        scaled = covered
        if how.copy is not np.copyto:
            scaled = np.empty((*pixels.shape[:-2], *covered.shape[-2:]), pixels.dtype)
        scale_window(pixels, shown, scaled, flip, how.is_linear, how.missing)
        if scaled is not covered:
            how.copy(covered, scaled)

    def copy(self, target: int, sides: Sides, read: ReadPart, out: NDArray[Any], how: HowToCopy) -> None:
        """Copy the window of the batch's row `target`, of these sides, into `out`. Only the part that the window shows
        is read. Outside of the picture lies `fill`, or else `pad`."""
        if self._is_scaled(target, sides):
            self._copy_scaled(target, sides, read, out, how)
            return
        flip, copy, fill = self.flips[target], how.copy, how.fill
        (_, *part), inside = overlap(sides, out.shape, self.starts[target])
        inside = mirrored(inside, out.shape[-1], flip)
        window, covered = read(tuple(part)), out[inside]
        if covered.shape != out.shape:
            out[...] = self.pad if fill is None else fill
        if not covered.size:
            return
        if copy is np.copyto:
            copy_pixels(covered, window, flip)
        elif not flip:
            copy(covered, window)
        elif window.size < covered.size:
            turned = np.empty_like(window)
            copy_pixels(turned, window, flip)
            copy(covered, turned)
        else:
            copy(covered, window)
            mirror(covered)


def copy_pixels(out: NDArray[Any], pixels: NDArray[Any], flip: bool) -> None:
    """Copy (…, H, W) pixels, with the last axis reversed if `flip`."""
    if out.ndim > 3:
        for volume, window in zip(out, pixels, strict=True):
            copy_pixels(volume, window, flip)
        return
    alike = out.dtype == pixels.dtype and fits_kernels(out) and fits_kernels(pixels)
    if KERNEL is not None and alike and out.itemsize <= 2:
        KERNEL.copy(*((array[None] if array.ndim == 2 else array) for array in (pixels, out)), flip)
        return
    np.copyto(out, pixels)
    if flip:
        mirror(out)


def mirror(pixels: NDArray[Any]) -> None:
    """Reverse the last axis, in place."""
    words = 8 // pixels.itemsize
    if pixels.itemsize == 1 and pixels.shape[-1] % words == 0 and pixels.flags.c_contiguous:
        eights = pixels.view(np.uint64)
        eights[...] = eights[..., ::-1].byteswap()
    else:
        pixels[...] = pixels[..., ::-1].copy()
