"""The fields of a row as a function of the user gives them: checked, copied and identified."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from packer.errors import BadPair
from packer.recipe.source import Data
from packer.sources.functions import plain

FIELDS = IMAGE, LABEL = ("image", "label")
MOST_VALUE = 65_535
"""The largest number that a class table may give a class."""


def take_fields(given: object) -> tuple[Data, Data]:
    """Return copies of both fields: the user may fill the same arrays with the next row."""
    if not isinstance(given, Mapping):
        raise BadPair(f"load() returned {_kind(given)}; expected a mapping with image and label")
    for name in FIELDS:
        if name not in given:
            raise BadPair(f"load() returned no {name}")
    others = [plain(repr(name)) for name in given if name not in FIELDS]
    if others:
        raise BadPair(f"load() returned {', '.join(sorted(others))}; the fields are image and label")
    return _taken(IMAGE, given[IMAGE]), _taken(LABEL, given[LABEL])


def _taken(name: str, value: object) -> Data:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        raise BadPair(
            f"load() returned {_kind(value)} as {name}; expected a NumPy array or the bytes of a picture file"
        )
    pixels = np.array(value, value.dtype.newbyteorder("="), order="C")
    return pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels


def _kind(value: object) -> str:
    return "None" if value is None else f"a {plain(type(value).__name__)}"


def class_numbers(pixels: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers of a label as 8 or 16 bits, whatever type of whole numbers they have."""
    if pixels.dtype.kind not in "biu" or pixels.dtype in (np.uint8, np.uint16) or not pixels.size:
        return pixels
    low, high = int(pixels.min()), int(pixels.max())
    if low < 0 or high > MOST_VALUE:
        wrong = low if low < 0 else high
        index = ", ".join(map(str, np.argwhere(pixels == wrong)[0].tolist()))
        raise BadPair(f"has the number {wrong} at ({index}); class numbers are 0 to {MOST_VALUE}")
    return pixels.astype(np.uint8 if high < 256 else np.uint16)


def identity(data: Data) -> str:
    """Return the BLAKE3 of a file's bytes, or of the dtype, the shape and the numbers of an array."""
    if isinstance(data, bytes):
        return blake3(data).hexdigest()
    digest = blake3(f"{data.dtype.str} {data.shape}\n".encode())
    digest.update(data.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
