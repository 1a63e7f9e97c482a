"""The stored columns of a packed data set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from readers.contract.json_entry import Entry

IMAGE = "image"
LABEL = "label"
KEY = "key"
"""Besides its fields, every shard stores a column of keys: UTF-8, as wide as the longest of the shard."""
SIZE = "size"
"""A shard of native rows also stores the height and width of each row."""
START = "{}_start"
"""In formats where the native rows of a field form one flat column, also the index of each row's first number."""

MOST_ROW_BYTES = 2**40

ENCODINGS = {IMAGE: ("rgb",), LABEL: ("onehot", "index")}
DTYPES = {"rgb": ("|u1", "<f2", "<f4"), "onehot": ("|u1",), "index": ("|u1", "<u2")}


@dataclass(frozen=True)
class Field:
    """A stored column: its name, the dtype and shape of one row, and the encoding of its numbers.

    Native rows keep the height and width of their pictures: both are None in `shape`, null in JSON.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    encoding: str

    @property
    def native(self) -> bool:
        """True if each row has a height and width of its own."""
        return None in self.shape

    @property
    def flat(self) -> bool:
        """True if stored rows differ in length, so that they lie back to back and the position of each is stored."""
        return self.native

    @property
    def size(self) -> tuple[int, int] | None:
        """The height and width of every row; None if each has its own."""
        height, width = self.shape[-2:]
        return None if height is None or width is None else (height, width)

    @property
    def planes(self) -> tuple[int, ...]:
        """The dimensions of a row before height and width."""
        return tuple(side for side in self.shape[:-2] if side is not None)

    @property
    def numbers(self) -> int:
        """The number of values of a pixel."""
        return math.prod(self.planes)

    def row_shape(self, height: int, width: int) -> tuple[int, ...]:
        """Return the shape of a row of this size."""
        return (*self.planes, height, width)

    @property
    def pixel_bytes(self) -> int:
        return int(self.dtype[2:]) * self.numbers

    def row_bytes_at(self, height: int, width: int) -> int:
        """Return the bytes of a row of this size."""
        return self.pixel_bytes * height * width

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype, "shape": list(self.shape), "encoding": self.encoding}

    @classmethod
    def from_json(cls, entry: Entry) -> Field:
        name = entry.choice("name", tuple(ENCODINGS))
        encoding = entry.choice("encoding", ENCODINGS[name])
        field = cls(name, entry.choice("dtype", DTYPES[encoding]), entry.shape("shape"), encoding)
        wrong = _wrong_shape(field)
        if wrong is not None:
            entry.problem("shape", wrong)
        entry.close()
        return field


def _wrong_shape(field: Field) -> str | None:
    """Return what is wrong with the shape of a field, if anything."""
    dimensions = 2 if field.encoding == "index" else 3
    if len(field.shape) != dimensions:
        return f"expected {dimensions} numbers, found {list(field.shape)}"
    if field.native and field.shape != (*field.planes, None, None):
        return f"expected null for height and width, both or neither, found {list(field.shape)}"
    least = field.row_bytes_at(*(field.size or (1, 1)))
    return f"a row of {least} bytes is over the limit of 1 TiB" if least >= MOST_ROW_BYTES else None
