"""The fields of a row as a function of the user gives them: checked, copied and identified."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
from blake3 import blake3

from packer.errors import BadPair
from packer.recipe.source import FieldData
from packer.sources.portable_functions import plain

IMAGE, LABEL = "image", "label"
FIELDS = (IMAGE, LABEL)
"""The fields of a row that has no others."""


def take_fields(returned: object, presence: Mapping[str, bool], sides: int) -> tuple[FieldData, ...]:
    """Return copies of the wanted fields: the user may fill the same arrays with the next row. One that the row lacks,
    as `presence` says, is empty. `sides` are 2 of pictures, 3 of volumes: a single band behind them is left out."""
    names = plain(" and ".join(presence))
    if not isinstance(returned, Mapping):
        raise BadPair(f"load() returned {_kind(returned)}; expected a mapping with {names}")
    for name, is_present in presence.items():
        if is_present and name not in returned:
            hint = f"; name the rows that have none: Rows(..., without={{{json.dumps(name)}: keys}})"
            raise BadPair(f"load() returned no {name}{'' if name == IMAGE else hint}")
        if not is_present and returned.get(name) is not None:
            raise BadPair(f"load() returned a {name} of a row that has none, as without= says")
    others = [plain(repr(name)) for name in returned if name not in presence]
    if others:
        raise BadPair(f"load() returned {', '.join(sorted(others))}; the fields are {names}")
    return tuple(_taken(name, returned[name], sides) if is_present else b"" for name, is_present in presence.items())


def _taken(name: str, value: object, sides: int) -> FieldData:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        raise BadPair(
            f"load() returned {_kind(value)} as {name}; expected a NumPy array or the bytes of a picture file"
        )
    pixels = np.array(value, value.dtype.newbyteorder("="), order="C")
    return pixels[..., 0] if pixels.shape[sides:] == (1,) else pixels


def _kind(value: object) -> str:
    return "None" if value is None else f"a {plain(type(value).__name__)}"


def identity(data: FieldData) -> str:
    """Return the BLAKE3 of a file's bytes, or of the dtype, the shape and the numbers of an array."""
    if isinstance(data, bytes):
        return blake3(data).hexdigest()
    digest = blake3(f"{data.dtype.str} {data.shape}\n".encode())
    digest.update(data.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
