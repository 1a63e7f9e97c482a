"""Advice on how labels could be read, from the numbers that they hold. A build and a probe give the same."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.pixels.label_rules import BINARY, COLOUR

IGNORED = 255
MOST_GRAYS = 16
"""The most classes that people paint as grays to tell them apart. More values are numbers."""
SOFT_SHARE = 0.9
"""If more pixels than this share have the darkest or brightest value, labels are binary with soft edges."""
SOFT_VALUES = 12
"""Soft edges have more gray values than this."""
AS_BINARY = f"--label-codec {BINARY}"
ALL_IGNORED = (
    f"every pixel is {IGNORED}: perhaps masks that are all foreground ({AS_BINARY}), or labels in which nothing is "
    "labelled; look at some"
)
TRANSPARENT_GRAY = "gray with an alpha channel, and some pixels are transparent; save it as gray alone"
NUMBERS_BESIDE_COLOURS = "the labels hold numbers, and the class table has colours only: add the values of the classes"
ADD_OR_IGNORE = "add to the class table, or use --ignore or --unknown ignore"


def is_binary(values: Collection[int]) -> bool:
    """Return whether labels with these values are masks: 0 and 1, or 0 and 255, or one of them alone."""
    return set(values) in ({0}, {IGNORED}, {0, 1}, {0, IGNORED})


def class_values(values: Collection[int]) -> list[int]:
    """Return the values that are classes. 255 usually is not one, but it ends a scale of grays in equal steps."""
    ordered = sorted(values)
    return ordered if len(ordered) < 3 or is_gray_scale(ordered) else [value for value in ordered if value != IGNORED]


def is_gray_scale(values: Collection[int]) -> bool:
    """Return whether classes are painted as grays in equal steps from 0 to 255, such as 0, 128, 255."""
    if not 2 < len(values) <= MOST_GRAYS:
        return False
    grays = (number * IGNORED / (len(values) - 1) for number in range(len(values)))
    return all(abs(value - gray) <= 1 for value, gray in zip(sorted(values), grays, strict=True))


def soft_threshold(pixels: Mapping[int, int]) -> int | None:
    """Return the threshold of masks with soft edges, whose pixels by value these are; None for other labels."""
    low, high = min(pixels), max(pixels)
    is_soft = pixels[low] + pixels[high] > SOFT_SHARE * sum(pixels.values())
    return high // 2 + 1 if is_soft and len(pixels) > SOFT_VALUES and high <= IGNORED else None


def advice_on(values: Mapping[int, int], presets: Iterable[str] = (), has_palette: bool = False) -> str:
    """Return the options that could read labels with these values and their numbers of pixels.

    `presets` are those that other facts speak for.
    """
    threshold = None if has_palette else soft_threshold(values)
    if threshold is not None:
        return f"the labels could be masks with soft edges, perhaps {AS_BINARY} --threshold {threshold}"
    if set(values) == {IGNORED}:
        return ALL_IGNORED
    if is_binary(values):
        return f"the labels could be masks of two values, perhaps {AS_BINARY}"
    classes = class_values(values)
    number = f"--classes {','.join(map(str, classes)) if IGNORED in classes else max(classes) + 1}"
    number += f" --ignore {IGNORED}" if len(classes) < len(values) else ""
    named = "".join(f"--preset {name}, or " for name in presets)
    return (
        f"the labels hold numbers, so a number of classes is enough, perhaps {named}{number}, "
        "and --ignore for a value that means nothing, such as void"
    )


def advice_on_strays(pixels: NDArray[Any], codec: str) -> str:
    """Return what to do with a label that has pixels in no class."""
    if pixels.ndim == 2 and len(values := np.unique(pixels)) == 2 and is_binary(values.tolist()):
        return f"a mask of two values is read with {AS_BINARY}"
    return NUMBERS_BESIDE_COLOURS if pixels.ndim == 2 and codec == COLOUR else ADD_OR_IGNORE
