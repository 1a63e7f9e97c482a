"""Random arrays for drills of kernels, with gaps between their lines."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

UNTOUCHED = 77
"""The number that fills the gaps, and must stay there."""
Dice = np.random.Generator


def array(dice: Dice, shape: tuple[int, ...], dtype: str = "uint8") -> NDArray[Any]:
    """Return random numbers; the lines have gaps behind them in half of the cases."""
    gap = int(dice.integers(0, 4)) if dice.random() < 0.5 else 0
    return dice.integers(0, 256, (*shape[:-1], shape[-1] + gap), dtype="uint8").astype(dtype)[..., : shape[-1]]


def target(dice: Dice, shape: tuple[int, ...], dtype: str = "uint8") -> tuple[NDArray[Any], NDArray[Any]]:
    """Return an array to write to, and its gaps, which must stay as they are."""
    gap = int(dice.integers(0, 4)) if dice.random() < 0.5 else 0
    whole = np.full((*shape[:-1], shape[-1] + gap), UNTOUCHED, dtype)
    return whole[..., : shape[-1]], whole[..., shape[-1] :]
