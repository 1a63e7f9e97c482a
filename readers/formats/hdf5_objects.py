"""The blocks of an HDF5 file: its superblock, and the object headers whose messages describe groups and data sets.

Positions are checked against the file, lengths against what our packer writes, and checksums before anything in a block
is used. The names below are from the HDF5 File Format Specification.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from readers.formats.contents import Contents
from readers.formats.hdf5_checksum import lookup3

_MAGIC = b"\x89HDF\r\n\x1a\n"
_SUPERBLOCK = struct.Struct("<8s4B4Q")  # magic, version, sizes, flags; base, extension, end of file, root group
_MESSAGE = struct.Struct("<BHB")  # type, size, flags
_HEADER = struct.Struct("<4sBBH")  # signature, version, flags, length of the messages
_VERSION, _OFFSET_BYTES, _LENGTH_BYTES, _FLAGS = 2, 8, 8, 0
_OBJECT_VERSION = 2
_WIDE = 0x01
"""The flag for a length of two bytes."""
_CHECKSUM_BYTES = 4
_MOST_BYTES = 4096
"""The most bytes of a block. A block of 66 links has 3,400."""

UNDEFINED = 2**64 - 1


class Message(NamedTuple):
    """A message of an object header: its type, and its content."""

    kind: int
    body: bytes


def root_group(data: Contents) -> int:
    """Return the position of the object header of the root group. Anything unexpected raises ValueError."""
    magic, *kind, base, extension, end, root = _SUPERBLOCK.unpack(_cut(data, 0, _SUPERBLOCK.size))
    if magic != _MAGIC or kind != [_VERSION, _OFFSET_BYTES, _LENGTH_BYTES, _FLAGS]:
        raise ValueError(f"it is not an HDF5 file with a superblock of version {_VERSION}")
    _checked(data, 0, _SUPERBLOCK.size)
    if (base, extension) != (0, UNDEFINED):
        raise ValueError("its superblock has a base address or an extension, expected none")
    if end != len(data):
        raise ValueError(f"it has {len(data)} bytes, expected {end}; was it cut short?")
    return int(root)


def messages(data: Contents, start: int) -> Iterator[Message]:
    """Yield the messages of the object header at this position, which is one block."""
    signature, version, flags, size = _HEADER.unpack(_cut(data, start, _HEADER.size))
    if (signature, version, flags) != (b"OHDR", _OBJECT_VERSION, _WIDE):
        raise ValueError(f"there is no object header of version {_OBJECT_VERSION} at {start}")
    return _split(_checked(data, start, _HEADER.size + size)[_HEADER.size :])


def _split(block: bytes) -> Iterator[Message]:
    """Yield the messages of a block. Those that are shared, or that may be ignored, are refused."""
    at = 0
    while at < len(block):
        if len(block) - at < _MESSAGE.size:
            raise ValueError("an object header ends within a message")
        kind, size, flags = _MESSAGE.unpack_from(block, at)
        at += _MESSAGE.size
        if size > len(block) - at or flags > 1:
            raise ValueError(f"a message of type {kind:#x} is too long or has the flags {flags:#x}")
        yield Message(kind, block[at : at + size])
        at += size


def _checked(data: Contents, start: int, length: int) -> bytes:
    """Return some bytes after which their checksum follows."""
    if not 0 <= length <= _MOST_BYTES:
        raise ValueError(f"a block of {length} bytes of metadata is not possible")
    block = _cut(data, start, length + _CHECKSUM_BYTES)
    checksum = int.from_bytes(block[length:], "little")
    if checksum != lookup3(block[:length]):
        raise ValueError(f"the checksum of the metadata at {start} is wrong")
    return block[:length]


def _cut(data: Contents, start: int, length: int) -> bytes:
    """Return some bytes of the file. All must exist."""
    if not 0 <= start <= len(data) - length:
        raise ValueError(f"its metadata at {start} ends beyond the file; was it cut short?")
    return bytes(data[start : start + length])
