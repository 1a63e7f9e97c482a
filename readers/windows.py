"""Windows of pictures: where they lie, and copies of them out of pictures that may be smaller than the window."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from readers.contract.fields import Sides
from readers.contract.kernels import fits_kernels, kernel
from readers.contract.tile_grid import Area
from readers.scaled import KernelTone, ScaledSide, can_tone, scale_all, scale_window

KERNEL, TILE_KERNEL = kernel("readers.window_kernel"), kernel("readers.tile_kernel")
SWAP_KERNEL = kernel("readers.swap_kernel")
FLIPS = {-1: 1, -2: 2, -3: 4}
"""The bit of a flip that turns an axis around: columns, lines, the slices of a volume."""
WindowIndex = tuple[Any, ...]
"""An index of the last axes, for arrays of numpy and for tensors."""
BatchPicture = tuple[int, NDArray[np.uint8], int, Sides]
"""The index in the batch, the mapped file, the position of the first pixel there, and the size."""
ReadPart = Callable[[Area], NDArray[Any]]
"""`read(part)` returns a part of a row."""
WindowInFile = tuple[NDArray[np.uint8], tuple[int, ...]]
"""A mapped file, and (start, height, width, target, top, left, flip) of the window of a picture in it. Two numbers more
are the sides that the picture is scaled to."""
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


def mirrored(inside: WindowIndex, window: Sequence[int], flip: int) -> WindowIndex:
    """Return the part of a window that is covered, in the flipped window if it is flipped."""
    return tuple(
        slice(window[axis] - part.stop, window[axis] - part.start) if part is not ... and flip & FLIPS[axis] else part
        for axis, part in zip(range(-len(inside), 0), inside, strict=True)
    )


class RowTone(Protocol):
    """The tone of a row."""

    @property
    def stored(self) -> np.dtype[Any]:
        """The dtype of the pixels before."""

    def __call__(self, out: NDArray[Any], pixels: NDArray[Any]) -> object: ...

    def padding(self, fill: float) -> NDArray[Any]:
        """Return what pixels outside of the picture become."""

    @property
    def of_kernel(self) -> KernelTone | None:
        """The same for the kernel that scales windows; None if it does not know such pictures."""


@dataclass(frozen=True)
class HowToCopy:
    """The copy of the pixels of a field, and the number around them.

    `is_linear`: pixels of scaled windows are made of neighbours. `missing` is the number of those without data.
    """

    copy: CopyPixels = np.copyto
    fill: float | None = None
    is_linear: bool = False
    missing: float | None = None
    tone: RowTone | None = None
    """The tone that the pixels of a picture get."""

    @property
    def is_unchanged(self) -> bool:
        """True if pixels are copied unchanged."""
        return self.copy is np.copyto and self.tone is None


@dataclass(frozen=True)
class BatchWindows:
    """The window of each row of a batch: where it begins, which may be outside of the picture, and how it is turned.

    With `scaled`, the sides that each picture is scaled to, it begins there in the scaled picture.
    """

    size: Sides | None
    pad: float
    starts: list[list[int]]
    """For each row the start of its window on each side."""
    flips: Sequence[int]
    """The axes of each window that are turned around, as bits of `FLIPS`."""
    scaled: list[list[int]] | None = None
    swaps: list[bool] | None = None
    """True where lines and columns of a window change places, before it is flipped. Then it is a square."""

    def copy_all(self, pictures: Iterable[BatchPicture], out: NDArray[Any], how: HowToCopy) -> bool:
        """Copy the windows of all rows into `out` by one call of the kernel. Return False if it cannot do that: it is
        not there, pixels are too large, or a window is partly outside of its picture."""
        if (
            KERNEL is None
            or out.itemsize > 2
            or not how.is_unchanged
            or (windows := self.in_files(pictures, out)) is None
        ):
            return False
        planes = out if out.ndim == 4 else out[:, None]
        if self.scaled is None:
            KERNEL.copy_all(windows, planes)
            return True
        return how.missing is None and scale_all(windows, planes, how.is_linear)

    def in_files(self, pictures: Iterable[BatchPicture], out: NDArray[Any]) -> list[WindowInFile] | None:
        """Return the positions of windows of raw pictures in their files, and how they are flipped and scaled. None if
        a window is turned, of a volume, or partly outside."""
        if not self.flips or len(self.starts[0]) != 2 or self.swaps is not None:
            return None
        lines, columns = out.shape[-2:]
        windows: list[WindowInFile] = []
        for target, data, start, (height, width) in pictures:
            top, left = self.starts[target]
            scaled = () if self.scaled is None else self.scaled[target]
            tall, wide = scaled or (height, width)
            if not (0 <= top <= tall - lines and 0 <= left <= wide - columns):
                return None
            windows.append((data, (start, height, width, target, top, left, self.flips[target], *scaled)))
        return windows

    def copy_tiles(self, rows: Iterable[TiledPicture], tile: Sides, out: NDArray[Any]) -> bool:
        """Copy the windows of rows in tiles of raw pixels as `copy_all` does. Return False also if a row is damaged."""
        if TILE_KERNEL is None or out.itemsize > 2 or not self.flips or len(tile) != 2 or self.scaled or self.swaps:
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

    def shown(self, target: int, sides: Sides) -> list[ScaledSide] | None:
        """Return what the window of a row shows of each scaled side; None if the row is not scaled."""
        return self._scaled_sides(target, sides, self.size or sides) if self._is_scaled(target, sides) else None

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

    def copy(self, target: int, sides: Sides, read: ReadPart, out: NDArray[Any], how: HowToCopy) -> None:
        """Copy the window of the batch's row `target`, of these sides, into `out`. Only the part that the window shows
        is read. Outside of the picture lies `fill`, or else `pad`."""
        flip, copy = self.flips[target], self._copy_scaled if self._is_scaled(target, sides) else self._copy_unscaled
        if self.swaps is None or not self.swaps[target]:
            copy(target, sides, read, out, how, flip)
            return
        dtype = out.dtype if how.tone is None else how.tone.stored
        window, turned = np.empty(out.shape, dtype), out if how.tone is None else np.empty(out.shape, dtype)
        copy(target, sides, read, window, replace(how, tone=None), 0)
        swap(window, turned, flip)
        if how.tone is not None:
            how.tone(out, turned)

    def _copy_scaled(
        self, target: int, sides: Sides, read: ReadPart, out: NDArray[Any], how: HowToCopy, flip: int
    ) -> None:
        assert self.scaled is not None, "the row is scaled"
        inside = mirrored(overlap(self.scaled[target], out.shape, self.starts[target])[1], out.shape, flip)
        covered, shown = out[inside], self._scaled_sides(target, sides, out.shape[-2:])
        if not self._pad(out, covered, how):
            return
        pixels = read(tuple(side.part for side in shown))
        tone = how.tone.of_kernel if how.tone is not None and can_tone(pixels, shown, covered) else None
        if how.is_unchanged or tone is not None:
            scale_window(pixels, shown, covered, flip, how.is_linear, how.missing, tone)
            return
        scaled = np.empty((*pixels.shape[:-2], *covered.shape[-2:]), pixels.dtype)
        scale_window(pixels, shown, scaled, flip, how.is_linear, how.missing)
        (how.tone or how.copy)(covered, scaled)

    def _copy_unscaled(
        self, target: int, sides: Sides, read: ReadPart, out: NDArray[Any], how: HowToCopy, flip: int
    ) -> None:
        (_, *part), inside = overlap(sides, out.shape, self.starts[target])
        window, covered = read(tuple(part)), out[mirrored(inside, out.shape, flip)]
        if not self._pad(out, covered, how):
            return
        if how.is_unchanged:
            copy_pixels(covered, window, flip)
            return
        copy = how.tone or how.copy
        if flip and (how.tone is not None or window.size < covered.size):
            turned = np.empty_like(window)
            copy_pixels(turned, window, flip)
            copy(covered, turned)
        else:
            copy(covered, window)
            mirror(covered, flip)

    def _pad(self, out: NDArray[Any], covered: NDArray[Any], how: HowToCopy) -> bool:
        """Fill a window that its picture does not cover. Return whether the picture covers any of it."""
        if covered.shape != out.shape:
            fill = self.pad if how.fill is None else how.fill
            out[...] = fill if how.tone is None else how.tone.padding(fill)
        return covered.size > 0


def copy_pixels(out: NDArray[Any], pixels: NDArray[Any], flip: int) -> None:
    """Copy (…, H, W) pixels, or (…, D, H, W), flipped."""
    if out.ndim > 3:
        for volume, window in zip(out, pixels, strict=True):
            copy_pixels(volume, window, flip)
        return
    alike = out.dtype == pixels.dtype and fits_kernels(out) and fits_kernels(pixels)
    if KERNEL is not None and alike and out.itemsize <= 2:
        KERNEL.copy(*((array[None] if array.ndim == 2 else array) for array in (pixels, out)), flip)
        return
    np.copyto(out, pixels)
    mirror(out, flip)


def mirror(pixels: NDArray[Any], flip: int = FLIPS[-1]) -> None:
    """Reverse the axes of a flip, in place."""
    words = 8 // pixels.itemsize
    if flip == FLIPS[-1] and pixels.itemsize == 1 and pixels.shape[-1] % words == 0 and pixels.flags.c_contiguous:
        eights = pixels.view(np.uint64)
        eights[...] = eights[..., ::-1].byteswap()
    elif flip:
        pixels[...] = flipped(pixels, flip).copy()


def flipped(pixels: NDArray[Any], flip: int) -> NDArray[Any]:
    """Return a view of pixels in which the axes of a flip run backwards."""
    view: NDArray[Any] = np.flip(pixels, tuple(axis for axis, bit in FLIPS.items() if flip & bit))
    return view


def swap(pixels: NDArray[Any], out: NDArray[Any], flip: int) -> None:
    """Write (…, W, H) pixels, or (…, D, W, H), with lines and columns in each other's places, then flipped."""
    if out.ndim > 3:
        for volume, window in zip(out, pixels, strict=True):
            swap(window, volume, flip)
    elif SWAP_KERNEL is not None and out.itemsize <= 2 and fits_kernels(out) and fits_kernels(pixels):
        SWAP_KERNEL.swap(*((array[None] if array.ndim == 2 else array) for array in (pixels, out)), flip)
    else:
        np.copyto(flipped(out, flip), pixels.swapaxes(-1, -2))
