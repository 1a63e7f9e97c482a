"""The checksum that HDF5 keeps of its metadata: `hashlittle` of Bob Jenkins' lookup3.c, starting with 0."""

from __future__ import annotations

import struct

_WORDS = struct.Struct("<III")
_MASK = 0xFFFFFFFF


def lookup3(data: bytes) -> int:
    """Return the checksum of some metadata. It takes a second for two megabytes: bound the length first.

    Only numbers that are rotated next are cut to 32 bits, which saves a quarter of the time.
    """
    a = b = c = 0xDEADBEEF + len(data) & _MASK
    if not data:
        return c
    whole = (len(data) - 1) // 12 * 12
    for x, y, z in _WORDS.iter_unpack(data[:whole]):
        a, b, c = a + x, b + y, c + z & _MASK
        a = (a - c ^ (c << 4 | c >> 28)) & _MASK
        c += b
        b = (b - a ^ (a << 6 | a >> 26)) & _MASK
        a += c
        c = (c - b ^ (b << 8 | b >> 24)) & _MASK
        b += a
        a = (a - c ^ (c << 16 | c >> 16)) & _MASK
        c += b
        b = (b - a ^ (a << 19 | a >> 13)) & _MASK
        a += c
        c = (c - b ^ (b << 4 | b >> 28)) & _MASK
        b += a
    x, y, z = _WORDS.unpack(data[whole:].ljust(12, b"\0"))
    return _final(a + x & _MASK, b + y & _MASK, c + z & _MASK)


def _final(a: int, b: int, c: int) -> int:
    for bits in (14, 11, 25, 16, 4, 14, 24):
        c = (c ^ b) - (b << bits | b >> 32 - bits) & _MASK
        a, b, c = b, c, a
    return b
