"""Decode strips and tiles of JPEG as strictly as JPEG files.

The tables that all blocks share are in the tag JPEGTables, and a block is a JPEG without them. The colours are YCbCr if
the tag PhotometricInterpretation says so. What a block itself says about them is left out, as libtiff does.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from io import BytesIO

from packer.decoding import jpeg
from packer.decoding.tiff.directory import JPEG_TABLES, PHOTOMETRIC, Directory
from packer.decoding.tiff.shape import TiffShape
from packer.errors import BadPair

_YCBCR = 6
_TABLES = (0xC4, 0xCC, 0xDB, 0xDD)
"""Huffman tables, conditioning of arithmetic coding, quantisation tables, restart interval."""


def jpeg_unpacker(tiff: Directory) -> Callable[[bytes, TiffShape], bytes]:
    """Return the function that decodes the blocks of a file."""
    tables = tiff.texts.get(JPEG_TABLES, b"")
    transform = int(tiff.one(PHOTOMETRIC) == _YCBCR)
    start = b"\xff\xd8" + jpeg.segment(0xEE, b"Adobe" + struct.pack(">HHHB", 100, 0, 0, transform))
    if tables:
        start += _head(tables, _keep_tables)[0]

    def unpack(block: bytes, shape: TiffShape) -> bytes:
        head, rest = _head(block, _keep_what_decides)
        return _decoded(start + head + rest, shape)

    return unpack


def _head(stream: bytes, change: jpeg.Change) -> tuple[bytes, bytes]:
    if not stream.startswith(jpeg.SIGNATURE):
        raise BadPair("is damaged: a block or its tables are not JPEG")
    try:
        return jpeg.changed_head(stream, change)
    except (struct.error, IndexError) as error:
        raise BadPair("is damaged: a JPEG in it ends within its header") from error


def _keep_tables(marker: int, content: bytes) -> bytes | None:
    return content if marker in _TABLES else None


def _keep_what_decides(marker: int, content: bytes) -> bytes | None:
    """Leave out comments and application segments."""
    return None if 0xE0 <= marker <= 0xEF or marker == 0xFE else content


def _decoded(stream: bytes, shape: TiffShape) -> bytes:
    """Return the bytes of the pixels of a block, whose size and channels must be as the directory says."""
    try:
        header = jpeg.read(BytesIO(stream))
    except (struct.error, IndexError) as error:
        raise BadPair("is damaged: a JPEG in it ends within its header") from error
    rows, columns, samples = header.stored_height, header.stored_width, header.channels
    if rows not in (shape.rows, shape.most_rows) or (columns, samples) != (shape.columns, shape.samples):
        expected = f"{shape.rows}x{shape.columns} with {shape.samples} channels"
        raise BadPair(f"is damaged: a block of {expected} has a JPEG of {rows}x{columns} with {samples}")
    return jpeg.decode(stream, header).numbers[: shape.rows].tobytes()
