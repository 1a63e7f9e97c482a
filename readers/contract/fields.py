"""The stored columns of a packed data set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from readers.contract.checked import Entry

IMAGE = "image"
LABEL = "label"
KEY = "key"
"""Every shard also stores a column of keys, beside its fields: UTF-8, as wide as the longest of the shard."""
SIZE, START = "size", "{}_start"
"""Columns of native shards: height and width of each row, and where in its field's flat column it begins."""

ENCODINGS = {IMAGE: ("rgb",), LABEL: ("onehot", "index")}
DTYPES = {"rgb": ("|u1", "<f2", "<f4"), "onehot": ("|u1",), "index": ("|u1", "<u2")}


@dataclass(frozen=True)
class Field:
    """A stored column: its name, the dtype and shape of one row, and how to understand the numbers."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    encoding: str

    def row_shape(self, height: int, width: int) -> tuple[int, ...]:
        """The shape of a row of this size."""
        return (*(part for part in self.shape[:-2] if part is not None), height, width)

    def row_bytes_at(self, height: int, width: int) -> int:
        return int(np.dtype(self.dtype).itemsize) * math.prod(self.row_shape(height, width))

    @property
    def row_bytes(self) -> int:
        return self.row_bytes_at(*self.shape[-2:])

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype, "shape": list(self.shape), "encoding": self.encoding}

    @classmethod
    def from_json(cls, entry: Entry) -> Field:
        name = entry.choice("name", tuple(ENCODINGS))
        encoding = entry.choice("encoding", ENCODINGS[name])
        field = cls(name, entry.choice("dtype", DTYPES[encoding]), entry.wholes("shape", least=1), encoding)
        dimensions = 2 if encoding == "index" else 3
        if len(field.shape) != dimensions:
            entry.problem("shape", f"expected {dimensions} numbers, found {list(field.shape)}")
        elif field.row_bytes >= 2**40:
            entry.problem("shape", f"a row of {field.row_bytes} bytes is over the limit of 1 TiB")
        entry.close()
        return field
