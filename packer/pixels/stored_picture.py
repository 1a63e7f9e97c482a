"""Bring a picture whose numbers are stored unchanged to the stored size: any bands, any type."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.pixels.area import area_mean, planes_of, split_planes
from packer.pixels.nearest_lines import stored_lines
from packer.pixels.placement import Placement
from packer.pixels.valid_mean import is_valid
from readers.contract.tiles import Size

Planes = NDArray[Any]
_GROW = {"area": cv2.INTER_LINEAR, "linear": cv2.INTER_LINEAR, "cubic": cv2.INTER_CUBIC}


def store_picture(pixels: NDArray[Any], placement: Placement, interpolation: str, out: Planes, fill: float = 0) -> None:
    """Write an (H,W,B) picture into planes (B,h,w) of the same type, with `fill` around it.

    area and cubic take the area mean on sides that shrink; OpenCV grows sides, and shrinks them for linear.
    """
    if placement.is_filled:
        out[...] = fill
    target = out[(slice(None), *placement.region)]
    if placement.scaled == placement.source:
        split_planes(pixels[placement.taken], target)
        return
    if interpolation == "nearest":
        rows, columns = stored_lines(placement)
        split_planes(pixels.take(rows, axis=0).take(columns, axis=1), target)
        return
    shrunk: Size = placement.source
    if interpolation != "linear":
        shrunk = min(shrunk[0], placement.scaled[0]), min(shrunk[1], placement.scaled[1])
    if shrunk == placement.scaled == out.shape[1:]:
        area_mean(pixels, out)
        return
    if shrunk == placement.source:
        planes = planes_of(pixels)
    else:
        planes = np.empty((len(out), *shrunk), pixels.dtype)
        area_mean(pixels, planes)
    for plane, row in zip(planes, target, strict=True):
        row[...] = _scaled(plane, placement.scaled, _GROW[interpolation])[placement.taken]


def store_with_data(pixels: NDArray[Any], placement: Placement, interpolation: str, out: Planes, fill: float) -> None:
    """Write a picture in which `fill` marks numbers without data as `store_picture` does: others do not change by them.

    A number of the stored picture is the quotient of two pictures of float64, both scaled in the same way: of the
    numbers, with 0 for missing ones, and of 1 and 0 for the numbers that are there. It is missing if the second is
    below a half.
    """
    for plane, numbers in zip(out, planes_of(pixels)[..., None], strict=True):
        valid = is_valid(numbers, fill)
        if valid.all() or interpolation == "nearest" or placement.scaled == placement.source:
            store_picture(numbers, placement, interpolation, plane[None], fill)
            continue
        sums, shares = np.zeros((1, *plane.shape)), np.zeros((1, *plane.shape))
        store_picture(np.where(valid, numbers, 0).astype(np.float64), placement, interpolation, sums)
        store_picture(valid.astype(np.float64), placement, interpolation, shares)
        is_enough = shares[0] >= 0.5
        means = np.divide(sums[0], shares[0], out=np.zeros_like(sums[0]), where=is_enough)
        plane[...] = np.where(is_enough, _fitted(means, plane.dtype), plane.dtype.type(fill))


def _fitted(numbers: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return numbers rounded to a type, at its ends if they are beyond: a cubic may leave the range."""
    if dtype.kind != "f":
        limits = np.iinfo(dtype)
        return np.clip(np.rint(numbers), limits.min, limits.max).astype(dtype)
    most = float(np.finfo(dtype).max)
    return np.clip(numbers, -most, most).astype(dtype)


def _scaled(plane: Planes, size: Size, rule: int) -> Planes:
    """Scale by OpenCV; floating-point numbers in float64, because a cubic may leave the range of their type."""
    if size == plane.shape:
        return plane
    if plane.dtype.kind != "f":
        return np.asarray(cv2.resize(plane, size[::-1], interpolation=rule), plane.dtype)
    scaled = np.asarray(cv2.resize(plane.astype(np.float64), size[::-1], interpolation=rule), np.float64)
    return _fitted(scaled, plane.dtype)
