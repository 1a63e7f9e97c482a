"""Decode JPEG 2000: gray of 8 to 16 bits, and RGB. Boxes and the first markers are checked here, OpenCV decodes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from io import BytesIO
from typing import BinaryIO, NamedTuple

import cv2

from packer.decoding import gml, opencv
from packer.decoding.grid import Grid
from packer.decoding.header import FilePixels, Header
from packer.decoding.tiff import geo
from packer.decoding.tiff.directory import read_directory
from packer.errors import BadPair

BOXES, CODESTREAM = b"\0\0\0\x0cjP  \r\n\x87\n", b"\xff\x4f\xff\x51"
_GEO_TIFF = bytes.fromhex("b14bf8bd083d4b43a5ae8cd7d5a6ce03")
_SRGB = 16
_CODING_STYLE, _REVERSIBLE = 0xFF52, 1
_SIZES = struct.Struct(">HHIIIIIIIIH")
_MOST_METADATA = 1 << 22
_MOST_BOXES = 1 << 12
_DEEPEST = 4
SAVE_AGAIN = "save it as a TIFF"


class _Box(NamedTuple):
    """A box: its kind, and where its content is."""

    kind: bytes
    start: int
    end: int


class _Codestream(NamedTuple):
    """The facts of the first markers."""

    width: int
    height: int
    components: int
    bits: int
    is_reversible: bool


def read(file: BinaryIO) -> Header:
    """Read the size and the type from the codestream, and the colours and the place from the boxes."""
    end = file.seek(0, 2)
    file.seek(0)
    has_boxes = file.read(12) == BOXES
    boxes = list(_boxes(file, 0, end)) if has_boxes else [_Box(b"jp2c", 0, end)]
    start = next((box.start for box in boxes if box.kind == b"jp2c"), None)
    if start is None:
        raise BadPair("is a JPEG 2000 without pixels")
    stream = _codestream(file, start)
    inner = [inner for box in boxes if box.kind == b"jp2h" for inner in _boxes(file, box.start, box.end)]
    _check_colours(file, inner, stream.components)
    depth = 8 if stream.bits == 8 else 16
    grid = _grid(file, boxes, (stream.width, stream.height))
    return Header(
        "JPEG 2000",
        stream.width,
        stream.height,
        depth,
        stream.components,
        is_lossy=not stream.is_reversible,
        grid=grid,
    )


def decode(data: bytes, header: Header) -> FilePixels:
    """Return gray or colours. OpenCV refuses a file that is cut short."""
    pixels = opencv.decode(data, cv2.IMREAD_UNCHANGED)
    return FilePixels(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB) if pixels.ndim == 3 else pixels)


def _boxes(file: BinaryIO, start: int, end: int) -> Iterator[_Box]:
    """Yield the boxes in a part of a file. Each must be inside."""
    for _ in range(_MOST_BOXES):
        if start + 8 > end:
            return
        file.seek(start)
        length, kind = struct.unpack(">I4s", file.read(8))
        head = 8
        if length == 1:
            (length,), head = struct.unpack(">Q", file.read(8)), 16
        elif length == 0:
            length = end - start
        if length < head or start + length > end:
            raise BadPair("is damaged: a box reaches beyond its end")
        yield _Box(kind, start + head, start + length)
        start += length
    raise BadPair(f"is damaged: it has more than {_MOST_BOXES} boxes")


def _codestream(file: BinaryIO, start: int) -> _Codestream:
    """Read the markers SIZ and COD."""
    file.seek(start)
    if file.read(4) != CODESTREAM:
        raise BadPair("is damaged: its codestream does not begin with a size")
    length, _, right, bottom, left, top, *_, count = _SIZES.unpack(file.read(_SIZES.size))
    components = struct.unpack(f">{3 * count}B", file.read(3 * count)) if 1 <= count <= 4 else ()
    if count not in (1, 3) or len(set(zip(*[iter(components)] * 3, strict=True))) != 1:
        raise BadPair(f"is a JPEG 2000 of {count} components, or of different ones; {SAVE_AGAIN}")
    bits, across, down = components[:3]
    if bits >= 0x80 or not 8 <= bits + 1 <= 16:
        signed = " signed" if bits >= 0x80 else ""
        raise BadPair(f"is a JPEG 2000 of {(bits & 0x7F) + 1}{signed} bits, and 8 to 16 bits are read; {SAVE_AGAIN}")
    if (across, down, left, top) != (1, 1, 0, 0):
        raise BadPair(f"is a JPEG 2000 with an offset, or with fewer pixels in some components; {SAVE_AGAIN}")
    style = _marker(file, start + 4 + length, _CODING_STYLE)
    return _Codestream(right, bottom, count, bits + 1, style[9] == _REVERSIBLE)


def _marker(file: BinaryIO, start: int, kind: int) -> bytes:
    """Return the content of the first marker of a kind, in front of the first tile."""
    for _ in range(_MOST_BOXES):
        file.seek(start)
        marker, length = struct.unpack(">HH", file.read(4))
        if marker == kind:
            return file.read(length - 2)
        if not 0xFF30 <= marker < 0xFF90:
            break
        start += 2 + length
    raise BadPair("is damaged: its codestream does not say how it is coded")


def _check_colours(file: BinaryIO, boxes: list[_Box], components: int) -> None:
    """Refuse a palette, and three components that are not RGB."""
    kinds = {box.kind for box in boxes}
    if b"pclr" in kinds or b"cmap" in kinds:
        raise BadPair(f"is a JPEG 2000 with a palette; {SAVE_AGAIN}")
    spaces = [_colour_space(file, box) for box in boxes if box.kind == b"colr"]
    if components == 3 and boxes and not {_SRGB, 0} & {*spaces}:
        raise BadPair(f"is a JPEG 2000 whose three components are not called RGB; {SAVE_AGAIN}")


def _colour_space(file: BinaryIO, box: _Box) -> int:
    """Return the number of the colour space; 0 if a profile describes it."""
    file.seek(box.start)
    method, _, _, space = struct.unpack(">BBBI", file.read(7))
    return int(space) if method == 1 else 0


def _grid(file: BinaryIO, boxes: list[_Box], sides: tuple[int, int]) -> Grid | None:
    """Return the place: from a GeoTIFF in the file, else from its GML."""
    for box in boxes:
        if box.kind == b"uuid" and _content(file, box)[:16] == _GEO_TIFF:
            try:
                tiff = read_directory(BytesIO(_content(file, box)[16:]))
            except (BadPair, struct.error):
                continue
            grid = geo.grid_of(tiff.geo, tiff.order, sides)
            if grid is not None:
                return grid
    texts = (_content(file, inner) for box in boxes if box.kind == b"asoc" for inner in _texts(file, box))
    return next((grid for text in texts if (grid := gml.grid_of(text, sides)) is not None), None)


def _texts(file: BinaryIO, box: _Box, depth: int = 0) -> Iterator[_Box]:
    """Yield the XML in a box, and in the boxes inside."""
    for inner in _boxes(file, box.start, box.end):
        if inner.kind == b"asoc" and depth < _DEEPEST:
            yield from _texts(file, inner, depth + 1)
        elif inner.kind == b"xml ":
            yield inner


def _content(file: BinaryIO, box: _Box) -> bytes:
    file.seek(box.start)
    return file.read(min(box.end - box.start, _MOST_METADATA))
