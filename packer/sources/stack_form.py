"""`StackForm`: the rows of a stack of images and a stack of labels, found by their shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from packer.decoding.arrays import ARRAY, header_of
from packer.decoding.decode import check_label
from packer.decoding.header import Header
from packer.decoding.raw_file import naming
from packer.errors import BadPair
from packer.sources.container import Names
from readers.contract.tiles import Size


class Stack(Protocol):
    """An array in a container. Its first axis is that of the rows."""

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Return a copy of some rows. Raise BadPair if they cannot be read."""


FIRST, LAST = 0, 2
"""The axis of the channels in a row: the first of (N,C,H,W), the last of (N,H,W,C). (N,H,W) has none."""


@dataclass(frozen=True)
class StackForm:
    """The number of rows, the header of each field, and where the channels of each are."""

    rows: int
    heads: tuple[Header, ...]
    channels: tuple[int | None, ...]

    @classmethod
    def of(cls, names: Names, stacks: Sequence[Stack], problems: list[str]) -> StackForm | None:
        """Return the form of an image, a label and perhaps keys; None if they do not fit, and why."""
        described = [
            f"{name} {shape_text(stack)}" for name, stack in zip(filter(None, names), stacks, strict=False)
        ]  # a worker has no keys
        if len({stack.shape[:1] for stack in stacks}) > 1:
            problems.append(f"different numbers of rows: {', '.join(described)}")
        if stacks[2:] and (len(stacks[2].shape) != 1 or stacks[2].dtype.kind not in "OSUiu"):
            problems.append(f"{described[2]}: keys must be texts or whole numbers, one for each row")
        images, labels = _sizes(stacks[0].shape), _sizes(stacks[1].shape)
        size = next((size for size in images if size in labels), None)
        if size is None:
            problems.append(
                f"no common height and width: {', '.join(described[:2])}; expected (N, H, W), (N, H, W, C) "
                "or (N, C, H, W) of both"
            )
            return None
        channels = images[size], labels[size]
        heads = []
        for field, name in enumerate(names[:2]):
            try:
                with naming(str(name)):
                    heads.append(_head(stacks[field], channels[field], size, is_label=field == 1))
            except BadPair as bad:
                problems.append(str(bad))
        return None if problems else cls(stacks[0].shape[0], tuple(heads), channels)

    def upright(self, field: int, pixels: NDArray[Any]) -> NDArray[Any]:
        """Return a row as (H,W) or (H,W,C), in the byte order of this machine."""
        return _upright(pixels, self.channels[field])


def shape_text(stack: Stack) -> str:
    """Return the shape and the type of an array, such as (20, 512, 512, 3) uint8."""
    return f"{stack.shape} {stack.dtype.name}"


def _sizes(shape: tuple[int, ...]) -> dict[Size, int | None]:
    """Return the heights and widths that rows of this shape may have, and where their channels are then."""
    if len(shape) == 3:
        return {(shape[1], shape[2]): None}
    if len(shape) == 4:
        return {(shape[2], shape[3]): FIRST, (shape[1], shape[2]): LAST}
    return {}


def _upright(pixels: NDArray[Any], channels: int | None) -> NDArray[Any]:
    if channels == FIRST:
        pixels = pixels.transpose(1, 2, 0)
    if pixels.shape[2:] == (1,):
        pixels = pixels[..., 0]
    return np.ascontiguousarray(pixels, pixels.dtype.newbyteorder("="))


def _head(stack: Stack, channels: int | None, size: Size, is_label: bool) -> Header:
    """Return the header of each row. Its dtype decides it; the numbers of labels are checked when they are read."""
    row = np.broadcast_to(np.zeros((), stack.dtype.newbyteorder("=")), stack.shape[1:])
    row = row.transpose(1, 2, 0) if channels == FIRST else row
    row = row[..., 0] if row.shape[2:] == (1,) else row
    if is_label and row.ndim == 2 and row.dtype.kind in "biu":
        return Header(ARRAY, size[1], size[0], 8, 1)
    header = header_of(row)
    if is_label:
        check_label(header)
    return header
