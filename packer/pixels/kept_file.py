"""Rows that stay the file that they were read from, or the reason why one does not."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packer.decoding.jpeg import SIGNATURE, read
from readers.contract.errors import DamagedError
from readers.contract.fields import Field
from readers.formats.tiled_rows import unpack_row


def why_encoded(field: Field, file: bytes, numbers: NDArray[Any]) -> str:
    """Return why a row cannot be stored as the file that it was read from; nothing if it can.

    `file` is empty if the row was read from something else.
    """
    if _holds(field, file, numbers):
        return ""
    if field.is_tiled:
        return "not in these tiles before"
    if not file.startswith(SIGNATURE):
        return "not a JPEG file before"
    header = read(BytesIO(file))
    if header.orientation != 1:
        return "turned by EXIF"
    if header.channels != field.numbers:
        return "gray made RGB" if header.channels == 1 else "RGB made gray"
    return "another size" if header.size != numbers.shape[1:] else "other pixels"


def _holds(field: Field, file: bytes, numbers: NDArray[Any]) -> bool:
    """Return whether readers get just these numbers from a file."""
    if not field.is_tiled and not file.startswith(SIGNATURE):
        return False
    decoded = np.empty_like(numbers)
    try:
        unpack_row(field, np.frombuffer(file, np.uint8), decoded)
    except DamagedError:
        return False
    return np.array_equal(decoded, numbers)
