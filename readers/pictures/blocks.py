"""A picture as lines of a terminal: half blocks in 24-bit or 256 colours, or plain shades."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from readers.pictures.draw import Picture
from readers.pictures.shrink import ShownSize

HALF = "▀"
"""The upper half of a character: its colour shows a pixel, its background shows the pixel below."""
SHADES = " .:-=+*#%@"
RESET = "\x1b[0m"
TALL = 2
"""A character of a terminal is about twice as high as wide."""
_LEVELS = np.array([0, 95, 135, 175, 215, 255])
"""The numbers of red, green and blue in the 216 colours of a terminal with 256."""


def fitted_blocks(size: ShownSize, columns: int, lines: int) -> ShownSize:
    """Return the height and width in pixels of a picture that fills these columns and lines, two pixels a line."""
    scale = min(columns / size[1], TALL * lines / size[0])
    height, width = max(1, round(size[0] * scale)), max(1, round(size[1] * scale))
    return min(TALL * lines, height + height % TALL), min(columns, width)


def coloured(picture: Picture, many: bool) -> list[str]:
    """Return lines of half blocks, two pixels each, in 24-bit colours if the terminal has `many`, else in 256."""
    codes = _exact(picture) if many else _of_256(picture)
    below = codes[1::TALL] if len(codes) % TALL == 0 else [*codes[1::TALL], codes[-1]]
    return [_line(*rows) for rows in zip(codes[::TALL], below, strict=True)]


def shades(picture: Picture) -> list[str]:
    """Return lines of plain characters, from dark to bright, for files and terminals without colours."""
    light = picture.astype(np.float64) @ np.array([0.299, 0.587, 0.114])
    pairs = light[: len(light) // TALL * TALL] if len(light) > 1 else light.repeat(TALL, 0)
    pairs = pairs.reshape(-1, TALL, light.shape[1]).mean(1)
    dark, bright = np.percentile(pairs, (1, 99))
    steps = np.clip((pairs - dark) / max(bright - dark, 1), 0, 1) * (len(SHADES) - 1)
    return ["".join(SHADES[step] for step in row).rstrip() for row in steps.round().astype(int).tolist()]


def swatch(colour: tuple[int, int, int], many: bool) -> str:
    """Return two characters of a colour."""
    pixel = np.array([[colour]], np.uint8)
    return f"\x1b[38;{(_exact(pixel) if many else _of_256(pixel))[0][0]}m██{RESET}"


def _line(upper: list[str], lower: list[str]) -> str:
    """Return a line. A colour is set only where it changes."""
    parts: list[str] = []
    before = ("", "")
    for both in zip(upper, lower, strict=True):
        front = f"\x1b[38;{both[0]}m" if both[0] != before[0] else ""
        back = f"\x1b[48;{both[1]}m" if both[1] != before[1] else ""
        parts.append(f"{front}{back}{HALF}")
        before = both
    return "".join(parts) + RESET


def _exact(picture: Picture) -> list[list[str]]:
    return [[f"2;{red};{green};{blue}" for red, green, blue in row] for row in picture.tolist()]


def _of_256(picture: Picture) -> list[list[str]]:
    """Return the nearest of the 216 colours, or of 24 grays if that is nearer."""
    nearest: NDArray[np.int64] = np.abs(picture[..., None].astype(int) - _LEVELS).argmin(-1)
    gray = np.clip((picture.mean(-1) - 3) / 10, 0, 23).astype(int)
    far = np.abs(_LEVELS[nearest] - picture).sum(-1)
    far_gray = np.abs((8 + 10 * gray)[..., None] - picture.astype(int)).sum(-1)
    codes = np.where(far_gray < far, 232 + gray, 16 + nearest @ np.array([36, 6, 1]))
    return [[f"5;{code}" for code in row] for row in codes.tolist()]
