"""A hash of an image, to find duplicates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.pixels.exact_numbers import as_bits
from readers.contract.receipt import FLAT
from readers.contract.tiles import Size

SAMPLED = 128
"""The hash is made of about this many rows and columns. Every pixel would take a tenth of a build."""


def image_hash(crc32: int, planes: NDArray[Any]) -> str:
    """Return the CRC of the stored image, followed by the difference hash of its pixels (B,H,W) or by `flat`.

    The difference hash of a volume (B,D,H,W) is the hash of its middle slice.
    """
    shown = planes if planes.ndim == 3 else planes[:, planes.shape[1] // 2]
    step = step_of(shown.shape[1:])
    lines = np.ascontiguousarray(shown[:, ::step])  # twice as fast as to gather pixels from the whole image
    sample = np.ascontiguousarray(lines[:, :, ::step])
    first = planes[(slice(None), *[slice(1)] * (planes.ndim - 1))]
    return hash_of(crc32, sample, lambda: is_same(planes, first))


def is_same(planes: NDArray[Any], first: NDArray[Any]) -> bool:
    """Return whether all numbers of each plane are its first one, which may be NaN."""
    return bool((as_bits(planes) == as_bits(first)).all())


def step_of(size: Size) -> int:
    """Return which rows and columns of an image make its hash, as many rows as columns."""
    return max(1, min(size) // SAMPLED)


def hash_of(crc32: int, sample: NDArray[Any], has_one_colour: Callable[[], bool]) -> str:
    """Return the hash of an image from the rows and columns that make it. Pixels without data count as 0."""
    sample = np.nan_to_num(sample) if sample.dtype.kind == "f" else sample
    small = _colours(sample) if len(sample) == 3 and sample.dtype in (np.uint8, np.float32) else _bands(sample)
    bits = np.packbits(small[:, 1:] > small[:, :-1]).tobytes().hex()
    flat = small.max() - small.min() <= 3 and has_one_colour()
    return f"{crc32:08x}{FLAT if flat else bits}"


def _colours(planes: NDArray[Any]) -> NDArray[Any]:
    """Return the small picture of red, green and blue together."""
    small = cv2.resize(cv2.merge(list(planes)), (9, 8), interpolation=cv2.INTER_AREA)
    return np.asarray(small.astype(np.float32).sum(2))


def _bands(planes: NDArray[Any]) -> NDArray[Any]:
    """Return the sum of the small pictures of any bands."""
    small = [cv2.resize(plane.astype(np.float64), (9, 8), interpolation=cv2.INTER_AREA) for plane in planes]
    return np.asarray(np.sum(small, axis=0))
