"""`PlainArray`: an array in a file, as plain numbers, one row after the other. It reads a row by its offset.

A file that became shorter gives an error. Through a memory map it would kill the process.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from packer.decoding.npy import NpyHeader
from packer.errors import BadPair
from readers.contract.regular_files import open_raw


class Opaque(NamedTuple):
    """The facts of an array whose rows only a library can read."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def to_json(self) -> list[Any]:
        return [self.dtype.str, self.shape]

    @classmethod
    def from_json(cls, facts: Sequence[Any]) -> Opaque:
        return cls(np.dtype(facts[0]), tuple(facts[1]))


class PlainArray:
    """Rows of `shape[1:]`, from an offset in a file on."""

    def __init__(self, path: Path, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self.path, self.offset, self.dtype, self.shape = path, offset, dtype, shape
        self._row_bytes = dtype.itemsize * math.prod(shape[1:])

    def to_json(self) -> list[Any]:
        return [str(self.path), self.offset, self.dtype.str, self.shape]

    @classmethod
    def from_json(cls, facts: Sequence[Any]) -> PlainArray:
        path, offset, dtype, shape = facts
        return cls(Path(path), offset, np.dtype(dtype), tuple(shape))

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Return a copy of some rows."""
        values = np.empty((stop - start, *self.shape[1:]), self.dtype)
        rest, position = values.reshape(-1).view(np.uint8).data, self.offset + start * self._row_bytes
        with open_raw(self.path) as file:
            while len(rest):
                count = os.preadv(file.fileno(), [rest], position)
                if count == 0:
                    raise BadPair("lies beyond the end of the file, which became shorter")
                rest, position = rest[count:], position + count
        return values


def npy_array(path: Path) -> PlainArray:
    """Open a .npy file of plain numbers or texts. Raise ValueError if it is not one, or not whole."""
    with open_raw(path) as file:
        try:
            array = NpyHeader(file)
        except BadPair as bad:
            raise ValueError(str(bad)) from bad
        size = os.fstat(file.fileno()).st_size
    if array.is_fortran and len(array.shape) > 1:
        raise ValueError("is in Fortran order, where no row is in one piece; save numpy.ascontiguousarray of it")
    if size != array.size:
        described = f"{array.shape} {array.dtype.name}"
        raise ValueError(f"has {size} bytes, which is not the size of {described} with its header")
    return PlainArray(path, array.offset, array.dtype, array.shape)
