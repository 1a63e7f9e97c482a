"""`overlay`: a picture with its label over it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.pictures.draw import FAINT, HATCHED, HIDDEN, SHOWN, Drawing, Picture

HATCH, LINE = 8, 3
"""Ignored pixels are hatched: every 8 pixels a line that is 3 wide."""
FULL = 256


def overlay(picture: Picture, label: Drawing, opacity: float = 0.5, outlines: bool = False) -> Picture:
    """Return a picture with a label of the same size over it. With opacity 0 it is the picture, with 1 the label.

    Ignored pixels are hatched, and pixels in no object or class hardly covered. `outlines` draws the edges of classes
    and objects in full colour.
    """
    height, width = picture.shape[:2]
    lines = ((np.arange(height)[:, None] + np.arange(width)) % HATCH < LINE).view(np.uint8)
    strength = _strengths(opacity)[label.cover * np.uint8(2) + lines]
    if outlines and label.parts is not None:
        strength[_edges(label.parts) & (label.cover == SHOWN)] = FULL
    over = strength[..., None]
    mixed: NDArray[np.uint16] = picture * (FULL - over)
    mixed += label.rgb * over
    mixed += FULL // 2 - 1
    return (mixed >> 8).astype(np.uint8)


def _strengths(opacity: float) -> NDArray[np.uint16]:
    """Return how strongly a pixel is covered, of 256, by what it is and whether it lies on a line of the hatch."""
    faint = opacity**3
    strengths = {SHOWN: (opacity, opacity), HATCHED: (faint, 1 - (1 - opacity) ** 3), FAINT: (faint, faint)}
    parts = [strengths.get(what, (0, 0)) for what in (SHOWN, HATCHED, FAINT, HIDDEN)]
    return (np.array(parts).reshape(-1) * FULL).round().astype(np.uint16)


def _edges(parts: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the pixels on both sides of each border between parts."""
    edges = np.zeros(parts.shape, np.bool_)
    across, along = parts[1:] != parts[:-1], parts[:, 1:] != parts[:, :-1]
    edges[1:] |= across
    edges[:-1] |= across
    edges[:, 1:] |= along
    edges[:, :-1] |= along
    return edges
