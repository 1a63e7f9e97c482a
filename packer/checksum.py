"""CRC-32: zlib's, or the same from zlib-ng where that is installed, which takes a tenth of the time."""

from __future__ import annotations

try:
    from zlib_ng.zlib_ng import crc32
except ImportError:
    from zlib import crc32

__all__ = ["crc32"]
