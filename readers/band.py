"""The rows of a picture that tiles still cover, with the weights of the tiles: what stitching holds in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import reduce
from types import EllipsisType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readers.contract.errors import RequestError

Weight = Literal["clip", "average", "gaussian"]

_KEY = re.compile(r"(?P<picture>.+)@(?P<origin>\d+(?:\+\d+){1,2})of(?P<size>\d+(?:x\d+){1,2})", re.DOTALL)
MOST_PIXELS = 1 << 31
"""The limit for what is made at once: a key is only a text, and may name any size."""
SIGMA = 1 / 8
"""The standard deviation of the Gaussian weight, in sides of a tile."""
LEAST = 1e-3
"""The least Gaussian weight: in the corners of a tile the bell is almost 0."""
IN_ORDER = "give the tiles in the order of their keys, each once, such as a loader without shuffle has them"


class Stripe(NamedTuple):
    """Finished rows of a picture: all its columns from row `start` on. `picture[stripe.area] = stripe.pixels`."""

    picture: str
    size: tuple[int, ...]
    start: int
    pixels: NDArray[Any]

    @property
    def area(self) -> tuple[EllipsisType | slice, ...]:
        """The index of the stripe in an array of its picture, whatever axes come before the axes of the picture."""
        rows = self.pixels.shape[-len(self.size)]
        return (..., slice(self.start, self.start + rows), *[slice(None)] * (len(self.size) - 1))


class TileKey(NamedTuple):
    """Facts about a tile: where its pixels lie, in a picture or a volume."""

    key: str
    picture: str
    origin: tuple[int, ...]
    size: tuple[int, ...]

    @classmethod
    def of(cls, key: str) -> TileKey:
        match = _KEY.fullmatch(key)
        origin = tuple(map(int, match["origin"].split("+"))) if match else ()
        size = tuple(map(int, match["size"].split("x"))) if match else ()
        if match is None or len(origin) != len(size):
            raise RequestError(f"{key!r} is not the key of a tile, such as 'a@000512+001024of2048x4096'")
        if any(start >= side for start, side in zip(origin, size, strict=True)):
            raise RequestError(f"{key!r} begins outside of its picture")
        return cls(key, match["picture"], origin, size)


class Band:
    """The rows of a picture that tiles still cover: as many as a tile has, from `start` on."""

    def __init__(self, tile: TileKey, array: NDArray[Any], fill: float | None, weight: Weight, whole: bool) -> None:
        axes = len(tile.size)
        if array.ndim < axes or 0 in array.shape:
            raise RequestError(f"{tile.key!r}: {array.shape} has no pixels for {axes} sides; the sides come last")
        self.tile, self.dtype, self.shape, self.start = tile, array.dtype, array.shape, 0
        self._fill, self._clip = fill, weight == "clip"
        sides = (min(array.shape[-axes], tile.size[0]), *tile.size[1:])
        if np.prod(tile.size if whole else sides, dtype=object) > MOST_PIXELS:
            size = "x".join(map(str, tile.size))
            raise RequestError(f"{tile.key!r}: names a picture of {size} pixels; stitch_stripes takes larger ones")
        self._weights = _weights(weight, array.shape[-axes:])
        self._pixels = np.zeros((*array.shape[:-axes], *sides), array.dtype if self._clip else _exact(tile.key, array))
        self._sums = np.zeros(sides)
        """The sum of the weights of all tiles so far, or with "clip" the weight of the nearest one. 0: no tile yet."""

    def check(self, tile: TileKey, array: NDArray[Any]) -> None:
        """Refuse a tile that does not fit to the one before it."""
        before = self.tile
        if tile.size != before.size:
            raise RequestError(f"{tile.key!r} is a tile of another picture than {before.key!r}: they differ in size")
        if (array.shape, array.dtype) != (self.shape, self.dtype):
            raise RequestError(
                f"{tile.key!r} has {array.shape} numbers of {array.dtype}, the tile before it {self.shape} of "
                f"{self.dtype}; all tiles of a picture need the same"
            )
        if tile is not before and tile.origin == before.origin:
            raise RequestError(f"{tile.key!r} comes twice; {IN_ORDER}")
        if tile.origin < before.origin:
            raise RequestError(f"{tile.key!r} comes after {before.key!r}; {IN_ORDER}")

    def put(self, tile: TileKey, array: NDArray[Any]) -> None:
        """Add a tile that begins at `start`."""
        self.tile = tile
        corners = zip(tile.size, tile.origin, self._weights.shape, strict=True)
        ends = [min(side - at, length) for side, at, length in corners]
        inside: Any = tuple(slice(end) for end in ends)
        area: Any = (slice(ends[0]), *(slice(at, at + end) for at, end in zip(tile.origin[1:], ends[1:], strict=True)))
        old, new = self._pixels[(..., *area)], array[(..., *inside)]
        sums, weights = self._sums[area], self._weights[inside]
        if self._clip:
            np.copyto(old, new, where=weights > sums)
            np.maximum(sums, weights, out=sums)
        else:
            old[...] = _mean(old, new.astype(old.dtype, copy=False), sums, weights)
            sums += weights

    def finish(self, stop: int) -> Iterator[Stripe]:
        """Yield the rows before `stop`, and make room for those after them."""
        while self.start < stop:
            rows = min(stop - self.start, len(self._sums))
            yield Stripe(self.tile.picture, self.tile.size, self.start, self._finished(rows))
            for array in (np.moveaxis(self._pixels, -self._sums.ndim, 0), self._sums):
                array[: len(array) - rows] = array[rows:]
            self._sums[len(self._sums) - rows :] = 0
            self.start += rows

    def _finished(self, rows: int) -> NDArray[Any]:
        area: Any = (..., slice(rows), *[slice(None)] * (self._sums.ndim - 1))
        rounded = self.dtype.kind in "ui" and not self._clip
        pixels: NDArray[Any] = (np.rint(self._pixels[area]) if rounded else self._pixels[area]).astype(self.dtype)
        missing = self._sums[:rows] == 0
        if missing.any():
            if self._fill is None:
                raise RequestError(
                    f"{self.tile.picture!r}: tiles are missing, {np.count_nonzero(missing)} pixels are not covered "
                    f"in rows {self.start} to {self.start + rows - 1}, last came {self.tile.key!r}; a fill sets them"
                )
            pixels[..., missing] = self._fill
        return pixels


def _mean(old: NDArray[Any], new: NDArray[Any], sums: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """Return the mean of `old`, which has the weight `sums`, and `new`. The mean of equal numbers is that number."""
    share = (weights / (sums + weights)).astype(old.dtype)
    with np.errstate(invalid="ignore"):  # infinite numbers
        mixed = old * (1 - share) + new * share
    same = (old == new) | (np.isnan(old) & np.isnan(new))
    mean: NDArray[Any] = np.where(sums == 0, new, np.where(same, old, mixed))
    return mean


def _weights(weight: Weight, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the weight of each pixel of a tile, above 0: it falls with the distance from the middle."""
    squares = [(2 * np.arange(side) + 1 - side) ** 2 for side in shape]  # of the distance, in halves of a pixel
    distance = reduce(np.add.outer, squares)
    if weight == "clip":
        nearness: NDArray[np.float64] = 1.0 + distance.max() - distance
        return nearness
    if weight == "average":
        return np.ones(shape)
    if weight != "gaussian":
        raise RequestError(f'weight={weight!r} is none of "clip", "average" and "gaussian"')
    bells = [np.exp(square / (-8 * (side * SIGMA) ** 2)) for square, side in zip(squares, shape, strict=True)]
    weights: NDArray[np.float64] = np.maximum(reduce(np.multiply.outer, bells), LEAST)
    return weights


def _exact(key: str, array: NDArray[Any]) -> np.dtype[Any]:
    """Return the floating-point numbers that hold all numbers of a tile."""
    dtype = array.dtype
    if dtype.kind == "f" or (dtype.kind in "ui" and dtype.itemsize <= 4):
        return np.result_type(dtype, np.float32)
    raise RequestError(f'{key!r}: {dtype} has no exact mean; use weight="clip", or average scores instead of classes')
