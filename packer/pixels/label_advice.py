"""Advice on how labels could be read, from the numbers that they hold. A build and a probe give the same."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.pixels.label_rules import BINARY, COLOUR

IGNORED = 255
AS_BINARY = f"--label-codec {BINARY}"
NUMBERS_BESIDE_COLOURS = "the labels hold numbers, and the class table has colours only: add the values of the classes"
ADD_OR_IGNORE = "add to the class table, or use --ignore or --unknown ignore"


def is_binary(values: Collection[int]) -> bool:
    """Return whether labels with these values are masks: 0 and 1, or 0 and 255."""
    return set(values) in ({0}, {1}, {IGNORED}, {0, 1}, {0, IGNORED})


def advice_on(values: Collection[int], presets: Iterable[str] = ()) -> str:
    """Return the options that could read labels with these values. `presets` are those that other facts speak for."""
    if is_binary(values) and len(values) == 2:
        return f"the labels are masks of two values, perhaps {AS_BINARY}"
    classes = [value for value in values if value != IGNORED]
    number = f"--classes {max(classes, default=0) + 1}" + (f" --ignore {IGNORED}" if IGNORED in values else "")
    if len(classes) < 2 <= len(values):
        number = f"--classes {','.join(map(str, sorted(values)))}"
    named = "".join(f"--preset {name}, or " for name in presets)
    return (
        f"the labels hold numbers, so a number of classes is enough, perhaps {named}{number}, "
        "and --ignore for a value that means nothing, such as void"
    )


def advice_on_strays(pixels: NDArray[Any], codec: str) -> str:
    """Return what to do with a label that has pixels in no class."""
    if pixels.ndim == 2 and len(found := np.unique(pixels)) == 2 and is_binary(found.tolist()):
        return f"a mask of two values is read with {AS_BINARY}"
    return NUMBERS_BESIDE_COLOURS if pixels.ndim == 2 and codec == COLOUR else ADD_OR_IGNORE
