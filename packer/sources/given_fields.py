"""The fields of a row as a function of the user gives them: checked, copied and identified."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from blake3 import blake3

from packer.errors import BadPair
from packer.recipe.source import Data
from packer.sources.functions import plain

FIELDS = IMAGE, LABEL = ("image", "label")


def take_fields(given: object, is_labelled: bool = True) -> tuple[Data, Data]:
    """Return copies of both fields: the user may fill the same arrays with the next row. A missing label is empty."""
    if not isinstance(given, Mapping):
        raise BadPair(f"load() returned {_kind(given)}; expected a mapping with image and label")
    if IMAGE not in given:
        raise BadPair("load() returned no image")
    if is_labelled and LABEL not in given:
        raise BadPair('load() returned no label; name the rows that have none: Rows(..., without={"label": keys})')
    others = [plain(repr(name)) for name in given if name not in FIELDS]
    if others:
        raise BadPair(f"load() returned {', '.join(sorted(others))}; the fields are image and label")
    if is_labelled:
        return _taken(IMAGE, given[IMAGE]), _taken(LABEL, given[LABEL])
    if given.get(LABEL) is not None:
        raise BadPair("load() returned a label of a row that has none, as without= says")
    return _taken(IMAGE, given[IMAGE]), b""


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


def identity(data: Data) -> str:
    """Return the BLAKE3 of a file's bytes, or of the dtype, the shape and the numbers of an array."""
    if isinstance(data, bytes):
        return blake3(data).hexdigest()
    digest = blake3(f"{data.dtype.str} {data.shape}\n".encode())
    digest.update(data.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
