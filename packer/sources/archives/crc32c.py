"""CRC-32C (Castagnoli), the checksum of TFRecord, by NumPy.

A CRC without its start value is linear: that of two parts together is that of the first, moved over the length of the
second, XOR that of the second. So the bytes are cut into many lanes of one length, all lanes take a byte at each step,
and then neighbours are joined until one is left. Zeros in front change nothing, so the first lane is padded with them.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

SHORT = 100
"""Bytes for which Python is faster than NumPy."""
_POLYNOMIAL = 0x82F63B78
Crcs = NDArray[np.uint32]


def crc32c(data: bytes | memoryview) -> int:
    """Return the CRC-32C of these bytes."""
    if len(data) <= SHORT:
        crc = 0xFFFFFFFF
        for byte in data:
            crc = _BYTES[crc & 255 ^ byte] ^ crc >> 8
        return crc ^ 0xFFFFFFFF
    bits = (len(data) - 1).bit_length()
    steps = 1 << max(0, bits // 2 - 3)
    padded = np.zeros((-(-len(data) // (2 * steps)), steps), "<u2")
    padded.reshape(-1).view(np.uint8)[padded.nbytes - len(data) :] = np.frombuffer(data, np.uint8)
    crcs, table = np.zeros(len(padded), np.uint32), _table()
    for column in np.ascontiguousarray(padded.T):
        crcs = table[(crcs ^ column) & 0xFFFF] ^ (crcs >> 16)
    power = steps.bit_length()
    while len(crcs) > 1:
        if len(crcs) % 2:
            crcs = np.concatenate([np.zeros(1, np.uint32), crcs])
        crcs = _moved(crcs[::2], power) ^ crcs[1::2]
        power += 1
    start = np.array([0xFFFFFFFF], np.uint32)
    for power in range(len(data).bit_length()):
        if len(data) >> power & 1:
            start = _moved(start, power)
    return int(crcs[0] ^ start[0]) ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    """Return a CRC as TFRecord stores it, so that the CRC of data that hold CRCs has no pattern."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _after(crcs: Crcs, bits: int) -> Crcs:
    """Return CRCs after so many zero bits."""
    for _ in range(bits):
        crcs = (crcs >> np.uint32(1)) ^ (crcs & np.uint32(1)) * np.uint32(_POLYNOMIAL)
    return crcs


_BYTES: list[int] = _after(np.arange(256, dtype=np.uint32), 8).tolist()
"""The CRC of each byte."""


@lru_cache(maxsize=1)
def _table() -> Crcs:
    """Return the CRC of each two bytes."""
    return _after(np.arange(1 << 16, dtype=np.uint32), 16)


@lru_cache(maxsize=64)
def _moves(power: int) -> Crcs:
    """Return (4, 256): what each byte of a CRC becomes when 2 ** power zero bytes follow."""
    if power == 0:
        return _after(np.arange(256, dtype=np.uint32)[None] << np.array([[0], [8], [16], [24]], np.uint32), 8)
    return _moved(_moves(power - 1), power - 1)


def _moved(crcs: Crcs, power: int) -> Crcs:
    """Return CRCs moved over 2 ** power bytes."""
    moves = _moves(power)
    moved: Crcs = moves[0][crcs & 255] ^ moves[1][crcs >> 8 & 255] ^ moves[2][crcs >> 16 & 255] ^ moves[3][crcs >> 24]
    return moved
