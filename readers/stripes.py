"""Stitching: what a model says about overlapping tiles becomes pictures again, a stripe of rows at a time.

Tiles come in the order of their keys. So the rows above a tile are finished when it comes, and memory holds as many
rows as a tile has. `stitch_stripes` gives stripes, `stitch_all` pictures, `stitch` one picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.band import IN_ORDER, Band, Stripe, TileKey, Weight
from readers.contract.errors import RequestError

Parts = Iterable[tuple[str, Any]]
"""Keys of tiles, and their pixels as arrays or tensors: any axes, then two of a picture or three of a volume."""


def stitch(parts: Parts, fill: float | None = None, weight: Weight = "clip") -> NDArray[Any]:
    """Return the picture (…, H, W) made of (key, pixels) of all its tiles, in the order of keys.

    It works for labels and for the output of a model, as long as height and width come last. `fill`: the number of
    pixels that no tile covers, by default an error. `weight`: what is made of pixels that several tiles have. "clip"
    takes the value of the tile whose middle is nearest, "average" the mean, "gaussian" a mean in which the middle of a
    tile counts most. Where all tiles agree, their number comes out bit for bit.
    """
    pictures = list(stitch_all(_of_one_picture(parts), fill, weight))
    if not pictures:
        raise RequestError("there are no tiles to stitch")
    return pictures[0][1]


def stitch_all(parts: Parts, fill: float | None = None, weight: Weight = "clip") -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the key and the pixels of each picture, one picture in memory at a time; otherwise like `stitch`."""
    whole: NDArray[Any] | None = None
    for stripe in _stripes(parts, fill, weight, whole=True):
        if whole is None:
            lead = stripe.pixels.shape[: -len(stripe.size)]
            whole = np.empty((*lead, *stripe.size), stripe.pixels.dtype)
        whole[stripe.area] = stripe.pixels
        if stripe.start + stripe.pixels.shape[-len(stripe.size)] == stripe.size[0]:
            yield stripe.picture, whole
            whole = None


def stitch_stripes(parts: Parts, fill: float | None = None, weight: Weight = "clip") -> Iterator[Stripe]:
    """Yield the rows of each picture when they are finished: for pictures larger than memory; like `stitch_all`."""
    return _stripes(parts, fill, weight, whole=False)


def _stripes(parts: Parts, fill: float | None, weight: Weight, whole: bool) -> Iterator[Stripe]:
    band: Band | None = None
    done: set[str] = set()
    for key, pixels in parts:
        tile, array = TileKey.of(key), _array(pixels)
        if band is None or tile.picture != band.tile.picture:
            if band is not None:
                yield from band.finish(band.tile.size[0])
                done.add(band.tile.picture)
            if tile.picture in done:
                raise RequestError(f"{key!r} comes after tiles of other pictures; {IN_ORDER}")
            band = Band(tile, array, fill, weight, whole)
        band.check(tile, array)
        yield from band.finish(tile.origin[0])
        band.put(tile, array)
    if band is not None:
        yield from band.finish(band.tile.size[0])


def _array(pixels: Any) -> NDArray[Any]:
    """Return an array of numpy, of a tensor on any device, too."""
    return np.asarray(pixels.detach().cpu() if hasattr(pixels, "detach") else pixels)


def _of_one_picture(parts: Parts) -> Parts:
    first: TileKey | None = None
    for key, pixels in parts:
        tile = TileKey.of(key)
        first = first or tile
        if tile.picture != first.picture:
            raise RequestError(
                f"{key!r} is a tile of another picture than {first.key!r}; stitch_all takes several pictures"
            )
        yield key, pixels
