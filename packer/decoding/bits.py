"""Unpack rows of numbers with less than 8 bits."""

from __future__ import annotations

import numpy as np

from packer.decoding.header import Pixels


def unpack_bits(rows: Pixels, bits: int, width: int) -> Pixels:
    """Return `width` numbers for each row of bytes. The first number of a byte is in its highest bits."""
    if bits == 8:
        return np.ascontiguousarray(rows[:, :width])
    shifts = np.arange(8 - bits, -1, -bits, dtype=np.uint8)
    numbers = rows[..., None] >> shifts & (2**bits - 1)
    return np.ascontiguousarray(numbers.reshape(len(rows), -1)[:, :width])
