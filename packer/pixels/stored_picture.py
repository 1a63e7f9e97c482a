"""Bring a picture whose numbers are stored unchanged to the stored size: any bands, any type."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.pixels.area import area_mean
from packer.pixels.nearest_lines import store_nearest
from packer.pixels.placement import Placement
from readers.contract.tiles import Size

Planes = NDArray[Any]
_GROW = {"area": cv2.INTER_LINEAR, "linear": cv2.INTER_LINEAR, "cubic": cv2.INTER_CUBIC}


def store_picture(pixels: NDArray[Any], placement: Placement, interpolation: str, out: Planes) -> None:
    """Write an (H,W,B) picture into planes (B,h,w) of the same type, with 0 around it.

    area and cubic take the area mean on sides that shrink; OpenCV grows sides, and shrinks them for linear.
    """
    if interpolation == "nearest" or placement.scaled == placement.source:
        store_nearest(pixels.transpose(2, 0, 1), placement, 0, out)
        return
    if placement.is_filled:
        out[...] = 0
    shrunk: Size = placement.source
    if interpolation != "linear":
        shrunk = min(shrunk[0], placement.scaled[0]), min(shrunk[1], placement.scaled[1])
    if shrunk == placement.scaled == out.shape[1:]:
        area_mean(pixels, out)
        return
    planes: Planes = np.ascontiguousarray(pixels.transpose(2, 0, 1))
    if shrunk != placement.source:
        planes = np.empty((len(planes), *shrunk), pixels.dtype)
        area_mean(pixels, planes)
    target = out[(slice(None), *placement.region)]
    for plane, row in zip(planes, target, strict=True):
        row[...] = _scaled(plane, placement.scaled, _GROW[interpolation])[placement.taken]


def _scaled(plane: Planes, size: Size, rule: int) -> Planes:
    """Scale by OpenCV; floating-point numbers in float64, because a cubic may leave the range of their type."""
    if size == plane.shape:
        return plane
    if plane.dtype.kind != "f":
        return np.asarray(cv2.resize(plane, size[::-1], interpolation=rule), plane.dtype)
    limits = np.finfo(plane.dtype)
    scaled = cv2.resize(plane.astype(np.float64), size[::-1], interpolation=rule)
    return np.clip(scaled, float(limits.min), float(limits.max)).astype(plane.dtype)
