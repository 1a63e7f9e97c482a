"""`StackForm`: the rows of a stack of images and a stack of labels, found by their shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from packer.decoding.arrays import ARRAY, FEW, header_by
from packer.decoding.decode import check_label
from packer.decoding.header import Header
from packer.decoding.raw_file import naming
from packer.decoding.rules import MOST_PIXELS, check_size
from packer.errors import BadPair
from packer.sources.container import Names
from readers.contract.kinds import MOST_BANDS
from readers.contract.tiles import Size


class Shaped(Protocol):
    """The facts of an array in a container. Its first axis is the axis of the rows."""

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def shape(self) -> tuple[int, ...]: ...


class Stack(Shaped, Protocol):
    """An array whose rows can be read."""

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Return a copy of some rows. Raise BadPair if they cannot be read."""


FIRST, LAST = 0, 2
"""The axis of the channels in a row: the first of (N,C,H,W), the last of (N,H,W,C). (N,H,W) has none."""
LIKELY = 4
MOST_ROWS = 1 << 30
"""A build has the keys of all rows in memory."""
ArrayShape: TypeAlias = tuple[int, ...]
Axes: TypeAlias = "tuple[int | None, int | None]"
"""The axis of the channels of the image, and of the label."""
NO_SIZE = "no common height and width", "expected (N, H, W), (N, H, W, C) or (N, C, H, W) of both"
AMBIGUOUS = "channels may be the first or the last", "give the rows with a function (Rows) that knows which"
"""Problems and what to do."""


@dataclass(frozen=True)
class StackForm:
    """The number of rows, the header of each field, and where the channels of each are in a row."""

    rows: int
    heads: tuple[Header, ...]
    axes: Axes

    @classmethod
    def of(cls, names: Names, stacks: Sequence[Shaped], problems: list[str]) -> StackForm | None:
        """Return the form of an image, a label and perhaps keys; None if they do not fit, and why."""
        described = [f"{name} {shape_text(stack)}" for name, stack in zip(filter(None, names), stacks, strict=True)]
        if len({stack.shape[:1] for stack in stacks}) > 1:
            problems.append(f"different numbers of rows: {', '.join(described)}")
        if stacks[0].shape[0] > MOST_ROWS:
            problems.append(f"{described[0]}: has more than {MOST_ROWS} rows")
        if stacks[2:] and (len(stacks[2].shape) != 1 or stacks[2].dtype.kind not in "OSUiu"):
            problems.append(f"{described[2]}: keys must be texts or whole numbers, one for each row")
        axes = _likeliest(stacks[0].shape, stacks[1].shape)
        if len(axes) != 1:
            problem, hint = AMBIGUOUS if axes else NO_SIZE
            problems.append(f"{problem}: {', '.join(described[:2])}; {hint}")
            return None
        heads = []
        for field, name in enumerate(names[:2]):
            try:
                with naming(str(name)):
                    heads.append(_head(stacks[field], axes[0][field], is_label=field == 1))
            except BadPair as bad:
                problems.append(str(bad))
        return None if problems else cls(stacks[0].shape[0], tuple(heads), axes[0])

    def upright(self, field: int, pixels: NDArray[Any]) -> NDArray[Any]:
        """Return a row as (H,W) or (H,W,C), in the byte order of this machine."""
        return _upright(pixels, self.axes[field])


def shape_text(stack: Shaped) -> str:
    """Return the shape and the type of an array, such as (20, 512, 512, 3) uint8."""
    return f"{stack.shape} {stack.dtype.name}"


def _likeliest(image: ArrayShape, label: ArrayShape) -> list[Axes]:
    """Return where the channels of both may be if both have one height and width: those ways of the fewest channels.

    Up to 4 channels are likelier than up to 16, these are likelier than up to 512, and these than more.
    """
    ways: dict[int, list[Axes]] = {}
    for axes in product(_axes(image), _axes(label)):
        (size, channels), (label_size, label_channels) = map(_size, (image, label), axes)
        if size == label_size:
            most = max(channels, label_channels)
            ways.setdefault(sum(most > limit for limit in (LIKELY, FEW, MOST_BANDS)), []).append(axes)
    return ways[min(ways)] if ways else []


def _axes(shape: ArrayShape) -> tuple[int | None, ...]:
    """Return where the channels in rows of this shape may be."""
    return {3: (None,), 4: (FIRST, LAST)}.get(len(shape), ())


def _size(shape: ArrayShape, axis: int | None) -> tuple[Size, int]:
    """Return height and width of the rows, and the number of their channels."""
    if axis is None:
        return (shape[1], shape[2]), 1
    return ((shape[2], shape[3]), shape[1]) if axis == FIRST else ((shape[1], shape[2]), shape[3])


def _upright(pixels: NDArray[Any], channels: int | None) -> NDArray[Any]:
    if channels == FIRST:
        pixels = pixels.transpose(1, 2, 0)
    if pixels.shape[2:] == (1,):
        pixels = pixels[..., 0]
    return np.ascontiguousarray(pixels, pixels.dtype.newbyteorder("="))


def _head(stack: Shaped, axis: int | None, is_label: bool) -> Header:
    """Return the header of each row. Its dtype decides it; the numbers of labels are checked when they are read."""
    (height, width), channels = _size(stack.shape, axis)
    check_size(height, width, channels, MOST_PIXELS, "has")
    if is_label and channels == 1 and stack.dtype.kind in "biu":
        return Header(ARRAY, width, height, 8, 1)
    header = header_by(ARRAY, (height, width) if channels == 1 else (height, width, channels), stack.dtype)
    if is_label:
        check_label(header)
    return header
