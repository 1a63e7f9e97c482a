"""Statistics of a split, computed from the sums in the manifest: exact, and no pixel is read."""

from __future__ import annotations

import math
import statistics
from typing import Literal

from readers.contract.errors import RequestError
from readers.contract.manifest import Manifest
from readers.contract.pixel_sums import Pixels

Weighting = Literal["inverse", "median", "enet"]
WEIGHTINGS: tuple[Weighting, ...] = ("inverse", "median", "enet")


def training_pixels(manifest: Manifest) -> Pixels | None:
    """Return the sums of the training split, which images of every split are normalised by; None if it is not clear
    which split that is.

    It is the only split, or else the one named "train", or else the only one whose name begins with "train".
    """
    if len(manifest.splits) == 1:
        return manifest.splits[0].pixels
    named = [split for split in manifest.splits if split.name.lower().startswith("train")]
    exact = [split for split in named if split.name.lower() == "train"]
    chosen = exact or named
    return chosen[0].pixels if len(chosen) == 1 else None


def mean(pixels: Pixels) -> tuple[float, ...]:
    """Return the mean of each channel, of pixels from 0 to 1."""
    return tuple(total / (255 * max(1, pixels.count)) for total in pixels.sums)


def deviation(pixels: Pixels) -> tuple[float, ...]:
    """Return the standard deviation of each channel, of pixels from 0 to 1."""
    count = max(1, pixels.count)
    return tuple(
        math.sqrt(count * square - total * total) / (255 * count)
        for total, square in zip(pixels.sums, pixels.squares, strict=True)
    )


def class_weights(pixels: Pixels, weighting: Weighting) -> tuple[float, ...]:
    """Return the weight of a pixel of each class in a loss, so that rare classes are learnt as well; 0 for a class
    that does not occur.

    "inverse": one over the class's share of the labelled pixels and the number of classes that occur, so that all these
    classes count alike. "median": the median of all classes' frequencies over the class's own, each the share of the
    class in the pictures that have it (Eigen and Fergus). "enet": 1 / ln(1.02 + share) (Paszke et al.).
    """
    labelled = max(1, sum(pixels.classes))
    shares = [count / labelled for count in pixels.classes]
    if weighting == "inverse":
        present = sum(count > 0 for count in pixels.classes)
        return tuple(1 / (present * share) if share else 0.0 for share in shares)
    if weighting == "enet":
        return tuple(1 / math.log(1.02 + share) if share else 0.0 for share in shares)
    if weighting == "median":
        frequencies = [count / area if area else 0.0 for count, area in zip(pixels.classes, pixels.areas, strict=True)]
        middle = statistics.median([frequency for frequency in frequencies if frequency] or [0.0])
        return tuple(middle / frequency if frequency else 0.0 for frequency in frequencies)
    raise RequestError(f"class weights {weighting!r}: expected one of {', '.join(map(repr, WEIGHTINGS))}")
