"""Draw with Pillow on an array: without copies, which take as long as drawing."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw


def drawn(height: int, width: int, draw: Callable[[ImageDraw.ImageDraw], None]) -> NDArray[np.bool_]:
    """Return the pixels that are drawn on an empty picture with numbers that are not 0."""
    pixels = _on_array(height, width, draw) if _shares_memory() else _on_picture(height, width, draw)
    return pixels.view(np.bool_)


def _on_array(height: int, width: int, draw: Callable[[ImageDraw.ImageDraw], None]) -> NDArray[np.uint8]:
    pixels = np.zeros((height, width), np.uint8)
    picture = Image.frombuffer("L", (width, height), pixels, "raw", "L", 0, 1)
    picture.readonly = 0  # otherwise Pillow draws on a copy
    draw(ImageDraw.Draw(picture))
    return pixels


def _on_picture(height: int, width: int, draw: Callable[[ImageDraw.ImageDraw], None]) -> NDArray[np.uint8]:
    picture = Image.new("L", (width, height))
    draw(ImageDraw.Draw(picture))
    return np.asarray(picture)


@cache
def _shares_memory() -> bool:
    """Return whether the installed version of Pillow draws on the memory of an array."""
    return bool(_on_array(1, 2, lambda picture: picture.point((1, 0), 1)).tolist() == [[0, 1]])
