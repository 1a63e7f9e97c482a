"""`VoxelFile`: numbers in a file, plain or compressed by gzip or zlib."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from zlib_ng import zlib_ng

from packer.errors import BadPair
from packer.sources.volumes.voxels import Voxels
from readers.contract.regular_files import open_raw

GZIP, ZLIB = "gzip", "zlib"
MOST_RATIO = 1032
"""deflate makes no file smaller than this part of it."""
_BITS = {GZIP: 31, ZLIB: 15}
_PIECE = 1 << 16
"""Bytes that are read at once. What follows a part in them is copied for each part."""
_UNPACKED = 1 << 20
"""The most bytes that are unpacked at once."""
_PART, _SLACK = 1 << 10, 1 << 20
"""The bytes that take as long as a part of a gzip file, and the bytes that may be read before unpacking."""


@dataclass(frozen=True)
class VoxelFile(Voxels):
    """A file from byte `start` to its end. Unpacked, it has `offset` bytes before the numbers."""

    path: Path
    start: int = 0
    packing: str = ""
    offset: int = 0

    @property
    def is_packed(self) -> bool:  # type: ignore[override]  # it follows from the packing
        return bool(self.packing)

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.path,)

    def check(self, size: int) -> None:
        with open_raw(self.path) as file:
            length = file.seek(0, 2)
        needed = self.offset + size
        if self.packing and (length - self.start) * MOST_RATIO < needed:
            raise BadPair(f"has {length} bytes; its header demands {needed} unpacked")
        if not self.packing and length != self.start + needed:
            raise BadPair(f"has {length} bytes; its header demands {self.start + needed}")

    def pieces(self, size: int) -> Iterator[bytes]:
        missing = self.offset + size
        with open_raw(self.path) as file:
            file.seek(self.start)
            for piece in unpacked(file, missing + 1, self.packing):
                missing -= len(piece)
                if missing >= 0:
                    yield piece
        if missing:
            raise BadPair(f"{'unpacks to' if self.packing else 'has'} another length than its header demands")

    def part(self, start: int, size: int) -> bytes:
        with open_raw(self.path) as file:
            file.seek(self.start + self.offset + start)
            raw = file.read(size)
        if len(raw) != size:
            raise BadPair("is cut short")
        return raw


def unpacked(file: BinaryIO, most: int, packing: str) -> Iterator[bytes]:
    """Yield the next bytes that a file unpacks to, `most` at most. One of gzip may have several parts.

    Refuse a file that takes longer than its content, such as one of a million empty parts.
    """
    if not packing:
        yield from _read(file, most)
        return
    total, unpacking = 0, zlib_ng.decompressobj(wbits=_BITS[packing])
    rest, parts, begin = b"", 1, file.tell()
    while total < most:
        rest = rest or file.read(_PIECE)
        if not rest:
            break
        if unpacking.eof:
            if packing == ZLIB:
                raise BadPair("has bytes behind its compressed numbers")
            unpacking = zlib_ng.decompressobj(wbits=_BITS[packing])
            parts += 1
        if (packed := file.tell() - begin) + parts * _PART > _SLACK + 2 * total:
            raise BadPair(f"has {packed} bytes in {parts} parts that unpack to {total}; compress it again")
        try:
            piece = unpacking.decompress(rest, min(_UNPACKED, most - total))
        except zlib_ng.error as error:  # type: ignore[misc]  # its stub calls this class an instance
            raise BadPair(f"is damaged ({error})") from error
        rest = unpacking.unused_data if unpacking.eof else unpacking.unconsumed_tail
        total += len(piece)
        yield piece
    if total < most and not unpacking.eof:
        raise BadPair("is cut short")


def _read(file: BinaryIO, most: int) -> Iterator[bytes]:
    """Yield the next bytes of a file, `most` at most."""
    while most and (piece := file.read(min(_UNPACKED, most))):
        most -= len(piece)
        yield piece
