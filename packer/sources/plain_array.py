"""`PlainArray`: an array that lies in a file as plain numbers, one row after the other. It reads a row by its offset.

A file that became shorter gives an error. Through a memory map it would kill the process.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair
from readers.contract.regular_files import open_raw

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class PlainArray:
    """Rows of `shape[1:]`, from an offset in a file on."""

    def __init__(self, path: Path, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self.path, self.offset, self.dtype, self.shape = path, offset, dtype, shape
        self._row_bytes = dtype.itemsize * math.prod(shape[1:])

    def to_json(self) -> list[Any]:
        return [str(self.path), self.offset, self.dtype.str, self.shape]

    @classmethod
    def from_json(cls, facts: list[Any]) -> PlainArray:
        path, offset, dtype, shape = facts
        return cls(Path(path), offset, np.dtype(dtype), tuple(shape))

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Return a copy of some rows."""
        found = np.empty((stop - start, *self.shape[1:]), self.dtype)
        rest, position = found.reshape(-1).view(np.uint8).data, self.offset + start * self._row_bytes
        with open_raw(self.path) as file:
            while len(rest):
                count = os.preadv(file.fileno(), [rest], position)
                if count == 0:
                    raise BadPair("lies beyond the end of the file, which became shorter")
                rest, position = rest[count:], position + count
        return found


def npy_array(path: Path) -> PlainArray:
    """Open a .npy file of plain numbers or texts. Raise ValueError if it is not one, or not whole."""
    with open_raw(path) as file:
        try:
            read = _HEADERS[np.lib.format.read_magic(file)]
            shape, is_fortran, dtype = read(file)
        except (ValueError, TypeError, KeyError, SyntaxError, TokenError) as error:
            raise ValueError("has a header that is not one of a .npy file of version 1 or 2") from error
        start, size = file.tell(), os.fstat(file.fileno()).st_size
    if dtype.hasobject or dtype.names:
        raise ValueError(f"holds {dtype}; expected plain numbers or texts. Objects are pickled, and are never opened")
    if is_fortran and len(shape) > 1:
        raise ValueError("is in Fortran order, where no row lies in one piece; save numpy.ascontiguousarray of it")
    if min(shape, default=0) < 0 or size != start + dtype.itemsize * math.prod(shape):
        raise ValueError(f"has {size} bytes, which is not the size of {shape} {dtype.name} with its header")
    return PlainArray(path, start, dtype, shape)
