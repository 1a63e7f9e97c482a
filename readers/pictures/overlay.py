"""`overlay`: a picture with its label over it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.pictures.draw import FAINT, HATCHED, HIDDEN, SHOWN, Drawing, Picture

HATCH, LINE = 8, 3
"""Ignored pixels are hatched: every 8 pixels a line that is 3 wide, and a dark edge that is seen on bright pictures."""
FULL = 256
OUTLINE = 12
"""The index of outlines among the strengths."""


def overlay(picture: Picture, label: Drawing, opacity: float = 0.5, outlines: bool = False) -> Picture:
    """Return a picture with a label of the same size over it. With opacity 0 it is the picture, with 1 the label.

    Ignored pixels are hatched, and pixels in no object or class hardly covered. `outlines` draws the edges of classes
    and objects in full colour.
    """
    which = _kinds_of_pixels(label, outlines)
    kept, added = _strengths(opacity).take(which, 1)
    mixed: NDArray[np.uint16] = picture * kept[..., None]
    mixed += label.rgb * added[..., None]
    mixed += FULL // 2 - 1
    mixed >>= 8
    return mixed.astype(np.uint8)


def _kinds_of_pixels(label: Drawing, outlines: bool) -> NDArray[np.uint8]:
    """Return for each pixel which of the strengths it has: a single one if all are alike."""
    edges = _edges(label.parts) & (label.cover == SHOWN) if outlines and label.parts is not None else None
    if edges is None and not label.cover.any():
        return np.zeros((1, 1), np.uint8)
    height, width = label.cover.shape
    which: NDArray[np.uint8] = np.uint8(3) * label.cover
    which += np.tile(_hatch(), (-(-height // HATCH), -(-width // HATCH)))[:height, :width]
    if edges is not None:
        which[edges] = OUTLINE
    return which


def _hatch() -> NDArray[np.uint8]:
    """Return a square of pixels: 0 between the lines of the hatch, 1 on a line, 2 on its edge."""
    kinds = np.array([1] * LINE + [2] + [0] * (HATCH - LINE - 1), np.uint8)
    return kinds.take((np.arange(HATCH)[:, None] + np.arange(HATCH)) % HATCH)


def _strengths(opacity: float) -> NDArray[np.uint16]:
    """Return how strong the picture is, and how strong the label, of 256: three of each kind of pixel, and of outlines.

    The three are those between the lines of the hatch, on them, and on their edges.
    """
    faint, line = opacity**3, 1 - (1 - opacity) ** 3
    hatched = [(1 - faint, faint), (1 - line, line), ((1 - opacity) ** 1.5, opacity**5)]
    kinds = {SHOWN: [(1 - opacity, opacity)] * 3, HATCHED: hatched, FAINT: [(1 - faint, faint)] * 3}
    kinds[HIDDEN] = [(1.0, 0.0)] * 3
    every = [*(pair for what in sorted(kinds) for pair in kinds[what]), (0.0, 1.0)]
    strengths = np.floor(np.array(every).T * FULL + 0.5)
    strengths[0] = np.minimum(strengths[0], FULL - strengths[1])
    return strengths.astype(np.uint16)


def _edges(parts: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the pixels on both sides of each border between parts."""
    edges = np.zeros(parts.shape, np.bool_)
    across, along = parts[1:] != parts[:-1], parts[:, 1:] != parts[:, :-1]
    edges[1:] |= across
    edges[:-1] |= across
    edges[:, 1:] |= along
    edges[:, :-1] |= along
    return edges
