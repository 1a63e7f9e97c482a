"""`Palette`: a colour for each class, the colours of the class table first, the others generated and well apart.

The colour of a class follows from the table up to that class. Classes that are appended change no colour, unless one of
them has nearly the colour that another class got.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

RGB = tuple[int, int, int]
"""Red, green and blue from 0 to 255."""
Colours = NDArray[np.uint8]

IGNORED: RGB = (222, 222, 222)
FIRST: tuple[RGB, ...] = (
    (47, 116, 208),
    (224, 123, 31),
    (42, 157, 116),
    (200, 69, 107),
    (138, 107, 209),
    (160, 138, 46),
    (58, 165, 184),
)
"""The first generated colours, which our charts also have."""
OKABE_ITO: tuple[RGB, ...] = (
    (0, 114, 178),
    (230, 159, 0),
    (0, 158, 115),
    (204, 121, 167),
    (86, 180, 233),
    (213, 94, 0),
    (240, 228, 66),
    (0, 0, 0),
)
"""The palette of Okabe and Ito, which people with any kind of colour blindness can tell apart."""
APART = 256
"""The number of classes whose colours are compared with each other; the colours of later classes are all different."""
LEAST = 0.1
"""The distance in OKLab from which a proposed colour is taken. The palette of Okabe and Ito is taken as a whole."""
SAME = 0.05
"""Colours that are nearer look the same."""

_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
_BLIND = (
    np.eye(3),
    np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
)
"""Linear RGB as seen without and with protanopia, deuteranopia and tritanopia (Machado and others, 2009)."""


class Palette(Sequence[RGB]):
    """The colours of the classes in order, as tuples: what torchvision's `draw_segmentation_masks` and Matplotlib take.

    `rgb` is the same as a uint8 array (N,3), and `lookup[label]` draws an index label of the pack, ignored pixels in
    the colour `ignored`.
    """

    def __init__(self, rgb: Colours, ignored: RGB, ignore_index: int) -> None:
        self.rgb = rgb
        self.rgb.setflags(write=False)
        self.ignored = ignored
        self._ignore_index = ignore_index

    @cached_property
    def lookup(self) -> Colours:
        """A colour for each number of an index label: (256,3), or (65536,3) if there are more than 255 classes."""
        table = np.empty((self._ignore_index + 1, 3), np.uint8)
        table[:] = self.ignored
        table[: len(self)] = self.rgb
        table.setflags(write=False)
        return table

    @property
    def hex(self) -> tuple[str, ...]:
        """The colours as texts such as `#2f74d0`."""
        return tuple(map(hex_of, self))

    @cached_property
    def colour_blind(self) -> Palette:
        """Other colours for the same classes: the colours of Okabe and Ito, then generated ones."""
        return Palette(_generated([None] * len(self), True), IGNORED, self._ignore_index)

    @overload
    def __getitem__(self, index: int) -> RGB: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[RGB, ...]: ...

    def __getitem__(self, index: int | slice) -> RGB | tuple[RGB, ...]:
        if isinstance(index, slice):
            return tuple(self[number] for number in range(*index.indices(len(self))))
        red, green, blue = self.rgb[index].tolist()
        return red, green, blue

    def __len__(self) -> int:
        return len(self.rgb)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.rgb, dtype)

    def __repr__(self) -> str:
        shown = ", ".join(map(hex_of, self[:6]))
        if len(self) > 6:
            shown += ", …"
        return f"Palette({len(self)} colours: {shown}; ignored={hex_of(self.ignored)})"


def palette_of(drawn: Sequence[RGB | None], ignored: Sequence[tuple[int, ...]], ignore_index: int) -> Palette:
    """Return the palette of classes with these colours, None for those without one.

    The first ignored source colour that is opaque and not the colour of a class is `ignored`.
    """
    rgb = _generated(drawn, False)
    taken = {*map(tuple, rgb.tolist())}
    greys = [(grey, grey, grey) for grey in range(IGNORED[0], -1, -1)]
    free = [colour[:3] for colour in ignored if len(colour) == 3 and tuple(colour) not in taken]
    red, green, blue = free[0] if free else next((grey for grey in greys if grey not in taken), IGNORED)
    return Palette(rgb, (red, green, blue), ignore_index)


def hex_of(colour: RGB) -> str:
    """Return a colour as a text such as `#2f74d0`."""
    return "#" + bytes(colour).hex()


@cache
def apart(count: int) -> Colours:
    """Return generated colours that are well apart, without a class table."""
    return _generated([None] * count, False)


def _generated(drawn: Sequence[RGB | None], blind: bool) -> Colours:
    """Return the given colours, and a generated one for each None."""
    rgb = _spread(len(drawn))
    missing = np.array([colour is None for colour in drawn], bool)
    if not missing.all():
        rgb[~missing] = [colour for colour in drawn if colour is not None]
    compared = int(np.flatnonzero(missing[:APART])[-1]) + 1 if missing[:APART].any() else 0
    seen, proposed, candidates = _candidates(blind)
    free = np.full(len(candidates), np.inf)
    for colour in _seen(rgb[~missing], blind).swapaxes(0, 1) if compared else ():
        free[_distance(seen, colour[:, None]) < SAME] = 0
    _take(free, seen, _seen(np.array([IGNORED], np.uint8), blind))
    for number in range(compared):
        if missing[number]:
            near = np.flatnonzero(free[:proposed] > (1e-3 if blind else LEAST))
            rgb[number] = candidates[near[0] if len(near) else int(free.argmax())]
        _take(free, seen, _seen(rgb[number : number + 1], blind))
    return rgb


def _take(free: NDArray[Any], seen: NDArray[Any], colour: NDArray[Any]) -> None:
    """Note the distance of each candidate from a colour that is taken: the least that some kind of eye perceives."""
    np.minimum(free, _distance(seen, colour), out=free)


def _distance(seen: NDArray[Any], colour: NDArray[Any]) -> NDArray[Any]:
    distance: NDArray[Any] = np.sqrt(((seen - colour) ** 2).sum(2)).min(0)
    return distance


@cache
def _candidates(blind: bool) -> tuple[NDArray[Any], int, Colours]:
    """Return the candidates as an eye perceives them, how many of them come before all others, and the candidates."""
    proposed = np.array(OKABE_ITO if blind else FIRST, np.uint8)
    grid = np.stack(np.meshgrid(*[np.arange(10, 256, 15)] * 3, indexing="ij"), -1).reshape(-1, 3).astype(np.uint8)
    light, *ab = _seen(grid, False)[0].T
    strength = np.hypot(*ab)
    within = (light > 0.3) & (light < 0.95) if blind else (light > 0.42) & (light < 0.88) & (strength > 0.06)
    colours = np.concatenate([proposed, grid[within & (strength < 0.24)]])
    return _seen(colours, blind), len(proposed), colours


def _seen(rgb: Colours, blind: bool) -> NDArray[Any]:
    """Return colours in OKLab, for each kind of eye: (kinds, N, 3)."""
    part = rgb / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    kinds = [np.clip(linear @ matrix.T, 0, 1) for matrix in _BLIND[: None if blind else 1]]
    return np.stack([np.cbrt(kind @ _TO_LMS.T) @ _TO_LAB.T for kind in kinds])


def _spread(count: int) -> Colours:
    """Return up to 65,536 different colours; two that follow each other differ clearly."""
    number = np.arange(count, dtype=np.uint32) * np.uint32(40503) & np.uint32(0xFFFF)
    parts = 40 + 6 * (number >> 11), 40 + 3 * (number >> 5 & 63), 40 + 6 * (number & 31)
    return np.stack(parts, -1).astype(np.uint8)
