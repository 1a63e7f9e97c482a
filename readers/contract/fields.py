"""The stored columns of a packed data set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from readers.contract.classes import ClassTable
from readers.contract.kinds import BANDS, CLASSES, FLAG, INDEX, ONEHOT, PICTURE, planes_of

IMAGE = "image"
LABEL = "label"
KEY = "key"
"""Besides its fields, every shard stores a column of keys: UTF-8, as wide as the longest of the shard."""
SIZE = "size"
"""A shard of native rows also stores the sides of each row."""
END = "{}_end"
"""In formats where the rows of a field form one flat column, also the index after each row's last number."""
LENGTH = "length"
"""In LMDB a row with a flat field also stores the bytes of each field."""

RAW, ZSTD, JPEG = "raw", "zstd", "jpeg"
"""Encodings: rows that are stored as raw pixels, as a frame of Zstandard, as a JPEG file."""
TILED = {"tiles": RAW, "tiles-zstd": ZSTD, "tiles-jpeg": JPEG}
"""The encodings of rows that are cut into tiles, and how each tile is stored."""
READABLE = (RAW, ZSTD, JPEG, *TILED)
"""The encodings that this release reads."""
RGB = ("red", "green", "blue")
Sides = tuple[int, ...]
"""The size of a row: height and width, or depth, height and width of a volume."""
VOLUME = (None, None, None)
"""The sides of the fields of volumes, which keep their own sizes."""


@dataclass(frozen=True)
class Field:
    """A stored column: its name, what its numbers mean, and the dtype, shape and encoding of one row.

    Native rows keep the sides of their pictures or volumes: these are None in `shape`, null in JSON.
    """

    name: str
    kind: str
    form: str
    dtype: str
    shape: tuple[int | None, ...]
    bands: tuple[str, ...] | None = None
    """The name of each band of a picture."""
    classes: ClassTable | None = None
    fill: float | str = 0
    """The number in padding and for rows that lack the field, as JSON has it: `nan` is a text."""
    range: tuple[float, ...] | None = None
    """The numbers of a picture that count as 0 and 1."""
    optional: bool = False
    """True if some rows lack the field."""
    encoding: str = RAW
    tile: tuple[int, ...] | None = None
    """The sides of a tile, one for each side of a row, if the encoding has tiles."""
    no_data: bool = False
    """True of a picture in which `fill` marks the numbers of pixels without data, besides padding."""
    times: int = 1
    """The dates of a picture that is a time series. Its bands come date by date."""

    @property
    def native(self) -> bool:
        """True if each row has sides of its own."""
        return None in self.shape

    @property
    def flat(self) -> bool:
        """True if stored rows differ in length, so that they lie back to back and the position of each is stored."""
        return self.native or self.is_encoded

    @property
    def is_encoded(self) -> bool:
        """True if the stored bytes of a row are not its numbers."""
        return self.encoding != RAW

    @property
    def is_tiled(self) -> bool:
        """True if rows are cut into tiles."""
        return self.encoding in TILED

    @property
    def is_read_in_parts(self) -> bool:
        """True if a window reads only a part of a row: the tiles that it touches, or its lines of a raw volume."""
        return self.is_tiled or (self.is_volume and not self.is_encoded)

    @property
    def is_jpeg(self) -> bool:
        """True if rows or their tiles are JPEG files, so that something may be lost."""
        return self.unit_encoding == JPEG

    @property
    def unit_encoding(self) -> str:
        """The encoding of what is unpacked at once: of a tile if rows are cut into tiles, else of a row."""
        return TILED.get(self.encoding, self.encoding)

    @property
    def encoding_text(self) -> str:
        """The encoding with the sides of its tiles, such as `tiles-zstd:256x256`."""
        return self.encoding if self.tile is None else f"{self.encoding}:{'x'.join(map(str, self.tile))}"

    @property
    def stored_dtype(self) -> str:
        """The dtype of the stored column: bytes, if the numbers of a row are encoded."""
        return "|u1" if self.is_encoded else self.dtype

    @property
    def stored_shape(self) -> tuple[int | None, ...]:
        """The shape of a stored row: None stands for each side that differs from row to row."""
        return (None,) if self.is_encoded else self.shape

    @property
    def sides(self) -> tuple[int | None, ...]:
        """Height and width, or depth, height and width of a volume, as `shape` has them."""
        return self.shape if self.form in (INDEX, FLAG) else self.shape[1:]

    @property
    def is_volume(self) -> bool:
        """True if rows are volumes."""
        return len(self.sides) == len(VOLUME)

    @property
    def size(self) -> Sides | None:
        """The sides of every row; None if each has its own."""
        fixed = tuple(side for side in self.sides if side is not None)
        return fixed if len(fixed) == len(self.sides) else None

    @property
    def planes(self) -> tuple[int, ...]:
        """The dimensions of a row before its sides."""
        return tuple(side for side in self.shape[: len(self.shape) - len(self.sides)] if side is not None)

    @property
    def numbers(self) -> int:
        """The number of values of a pixel."""
        return math.prod(self.planes)

    @property
    def fill_number(self) -> float:
        """The number in padding and for rows that lack the field."""
        return float(self.fill) if isinstance(self.fill, str) else self.fill

    def row_shape(self, *sides: int) -> tuple[int, ...]:
        """Return the shape of a row of this size; of a field that is one number, the shape of a number."""
        return (*self.planes, *sides) if self.shape else ()

    @property
    def delivered_planes(self) -> tuple[int, ...]:
        """The dimensions of a row before its sides as readers deliver it: of a time series, dates and bands."""
        return (self.times, self.numbers // self.times) if self.times > 1 else self.planes

    @property
    def pixel_bytes(self) -> int:
        return int(self.dtype[2:]) * self.numbers

    def row_bytes_at(self, *sides: int) -> int:
        """Return the bytes of a row of this size."""
        return self.pixel_bytes * math.prod(sides)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": self.kind,
            "form": self.form,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "bands": None if self.bands is None else list(self.bands),
            "classes": None if self.classes is None else self.classes.to_json(),
            "fill": self.fill,
            "range": None if self.range is None else list(self.range),
            "optional": self.optional,
            "encoding": self.encoding,
            "tile": None if self.tile is None else list(self.tile),
            **({"no_data": True} if self.no_data else {}),
            **({"times": self.times} if self.times > 1 else {}),
        }


def picture_field(name: str, dtype: str, size: tuple[int | None, ...] | None, bands: tuple[str, ...] = RGB) -> Field:
    """Return the field of pictures with these sides, None for native ones. Floating-point numbers are from 0 to 1."""
    scale = {"|u1": (0, 255), "<f2": (0, 1), "<f4": (0, 1)}.get(dtype)
    return Field(name, PICTURE, BANDS, dtype, (len(bands), *(size or (None, None))), bands, range=scale)


def classes_field(name: str, form: str, table: ClassTable, size: tuple[int | None, ...] | None) -> Field:
    """Return the field of labels of this form and with these sides, None for native ones."""
    shape = (*planes_of(form, len(table)), *(size or (None, None)))
    if form == ONEHOT:
        return Field(name, CLASSES, form, "|u1", shape, classes=table)
    return Field(name, CLASSES, form, table.index_dtype, shape, classes=table, fill=table.ignore_index)
