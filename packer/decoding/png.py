"""Decode PNG. Chunks are checked and chosen here; `plain_png` or OpenCV unpacks the pixels."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

import cv2
import numpy as np
from numpy.typing import NDArray
from zlib_ng.zlib_ng import crc32

from packer.decoding import opencv, plain_png
from packer.decoding.header import FileBytes, FilePixels, Header, Pixels
from packer.decoding.orientation import Orientation, read_metadata
from packer.decoding.plain_png import Chunk
from packer.decoding.png_length import check_length
from packer.decoding.png_text import MOST_KEYWORD, TEXTS, add_text, may_turn
from packer.errors import BadPair

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GRAY, RGB, PALETTE, GRAY_ALPHA, RGB_ALPHA = 0, 2, 3, 4, 6
_CHANNELS = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGB_ALPHA: 4}
_DEPTHS = {GRAY: (1, 2, 4, 8, 16), RGB: (8, 16), PALETTE: (1, 2, 4, 8), GRAY_ALPHA: (8, 16), RGB_ALPHA: (8, 16)}
_CRITICAL = (b"IHDR", b"PLTE", b"IDAT", b"IEND")
PIECE = 1 << 20
"""The bytes of a large file that are in memory at a time."""
_CHUNK = struct.Struct(">I4s")
"""The length and the kind in front of a chunk."""
_STARTS = {b"IHDR": 13, b"orNT": 1, b"eXIf": 0, **dict.fromkeys(TEXTS, MOST_KEYWORD + 1)}
"""Bytes to read of a chunk, before it is known whether the rest matters."""


def read(file: BinaryIO) -> Header:
    """Read the headers of all chunks: the orientation may come after the pixels."""
    facts: tuple[int, ...] | None = None
    exif, texts, own_turn = Orientation(), Orientation(), 1
    behind = len(SIGNATURE)
    while True:
        file.seek(behind)
        length, kind = _CHUNK.unpack(file.read(_CHUNK.size))
        _check_kind(kind, first=facts is None)
        if kind == b"IEND":
            break
        behind += _CHUNK.size + length + 4
        if kind not in _STARTS:
            continue
        content = file.read(min(length, _STARTS[kind]))
        if kind == b"IHDR":
            facts = struct.unpack(">IIBBBBB", content)
        elif kind == b"eXIf":
            exif.add_exif(read_metadata(file, length))
        elif kind in TEXTS and may_turn(content):
            add_text(kind, content + read_metadata(file, length - len(content)), texts)
        elif kind == b"orNT" and length == 1:
            own_turn = content[0]
    assert facts is not None
    width, height, depth, colour, *_ = facts
    if depth not in _DEPTHS.get(colour, ()):
        raise BadPair(f"is not a valid PNG: colour type {colour} with {depth} bits")
    if 2 <= own_turn <= 8 and not (exif.is_known or texts.is_known):
        raise BadPair("is turned by ImageMagick's chunk orNT alone, which other programs ignore; save it upright")
    turned = exif.exif or texts.number
    return Header(
        "PNG",
        width,
        height,
        depth,
        _CHANNELS[colour],
        has_alpha=colour in (GRAY_ALPHA, RGB_ALPHA),
        orientation=turned,
        has_palette=colour == PALETTE,
    )


def decode(data: bytes, header: Header) -> FilePixels:
    """Return gray and palettes as the numbers in the file, the rest as colours, tRNS and alpha as alpha."""
    palette, marked, raster = parts(data)
    colour = data[25]
    pixels = plain_png.decode(data, raster)
    if pixels is None:
        pixels = _by_opencv(data, raster, colour, header.depth)
    return stored(pixels, colour, palette, marked)


def parts(data: FileBytes) -> tuple[bytes, bytes, list[Chunk]]:
    """Return the contents of PLTE and of tRNS, and the chunks IHDR, IDAT and IEND. Every chunk is checked."""
    palette, marked, raster = b"", b"", []
    for kind, start, end in _chunks(data):
        if kind == b"PLTE":
            palette = data[start:end]
        elif kind == b"tRNS":
            marked = data[start:end]
        elif kind in (b"IHDR", b"IDAT", b"IEND"):
            raster.append((kind, start, end))
    return palette, marked, raster


def stored(pixels: Pixels, colour: int, palette: bytes, marked: bytes) -> FilePixels:
    """Return the numbers of a file, or some lines of them, as `decode` does."""
    if colour == PALETTE:
        return FilePixels(pixels, palette=_palette(palette, marked))
    if colour in (GRAY, RGB):
        return FilePixels(pixels, _marked(pixels, marked))
    alpha = pixels[..., -1]
    if colour == GRAY_ALPHA:
        return FilePixels(np.ascontiguousarray(pixels[..., 0]), alpha)
    return FilePixels(cv2.cvtColor(pixels, cv2.COLOR_RGBA2RGB), alpha)


def _by_opencv(data: bytes, raster: list[Chunk], colour: int, depth: int) -> Pixels:
    """Return the numbers in the file. OpenCV gets neither PLTE nor tRNS, nor anything else that does not matter."""
    check_length(data, raster)
    parts = [SIGNATURE]
    for kind, start, end in raster:
        parts.append(_as_gray(data[start:end]) if kind == b"IHDR" else data[start - 8 : end + 4])
    flags = cv2.IMREAD_UNCHANGED
    if colour == RGB:
        flags = cv2.IMREAD_COLOR_RGB if depth == 8 else cv2.IMREAD_COLOR_RGB | cv2.IMREAD_ANYDEPTH
    pixels = opencv.decode(b"".join(parts), flags)
    if depth < 8:  # OpenCV spreads them over 0..255
        pixels //= 255 // (2**depth - 1)
    if pixels.ndim == 3 and pixels.shape[2] == 4:
        pixels = cv2.cvtColor(pixels, cv2.COLOR_BGRA2RGBA)
    return pixels


def _chunks(data: FileBytes) -> Iterator[Chunk]:
    """Yield each chunk. A wrong checksum, order or end is damage."""
    offset, previous, before = len(SIGNATURE), b"", set[bytes]()
    while offset + 12 <= len(data):
        (length,) = struct.unpack(">I", data[offset : offset + 4])
        kind, start, end = data[offset + 4 : offset + 8], offset + 8, offset + 8 + length
        if end + 4 > len(data):
            break
        _check_kind(kind, first=not before)
        if _crc32(data, offset + 4, end) != struct.unpack(">I", data[end : end + 4])[0]:
            raise BadPair(f"is damaged: the checksum of its chunk {kind.decode('latin-1')!r} is wrong")
        if kind in before and kind in _CRITICAL and not kind == previous == b"IDAT":
            raise BadPair(f"is damaged: it has more than one chunk {kind.decode('latin-1')!r}")
        yield kind, start, end
        if kind == b"IEND":
            return
        before.add(kind)
        offset, previous = end + 4, kind
    raise BadPair("is cut short")


def _crc32(data: FileBytes, start: int, end: int) -> int:
    """Return the checksum of a part of a file. Little of it is in memory at a time."""
    if isinstance(data, bytes):
        return crc32(memoryview(data)[start:end])
    checksum = 0
    for first in range(start, end, PIECE):
        checksum = crc32(data[first : min(first + PIECE, end)], checksum)
    return checksum


def _check_kind(kind: bytes, first: bool) -> None:
    """Refuse chunks that do not belong to one still picture, and critical chunks that are not in the standard."""
    if kind == b"CgBI":
        raise BadPair("is an Apple CgBI PNG, whose colours are altered; convert it to PNG")
    if first and kind != b"IHDR":
        raise BadPair("is not a PNG that follows the standard: it does not begin with IHDR")
    if kind == b"acTL":
        raise BadPair("is an animated PNG; save one frame as a PNG")
    if not kind[0] & 0x20 and kind not in _CRITICAL:
        raise BadPair(f"is damaged: unknown critical chunk {kind.decode('latin-1')!r}")


def _as_gray(content: bytes) -> bytes:
    """Return the chunk IHDR with gray instead of a palette: gray values are then the indices.

    OpenCV cannot decode a palette without applying it. The pixels of gray and palette are stored alike.
    """
    colour = GRAY if content[9] == PALETTE else content[9]
    chunk = b"IHDR" + content[:9] + bytes((colour,)) + content[10:]
    return struct.pack(">I", len(content)) + chunk + struct.pack(">I", crc32(chunk))


def _palette(colours: bytes, opacity: bytes) -> NDArray[np.uint8]:
    """Return PLTE and tRNS as rows of red, green, blue, alpha."""
    rows = np.full((len(colours) // 3, 4), 255, np.uint8)
    rows[:, :3] = np.frombuffer(colours[: 3 * len(rows)], np.uint8).reshape(-1, 3)
    count = min(len(opacity), len(rows))
    rows[:count, 3] = np.frombuffer(opacity[:count], np.uint8)
    return rows


def _marked(numbers: Pixels, marked: bytes) -> Pixels | None:
    """Return alpha if tRNS marks a gray or colour that occurs as transparent. A tRNS of wrong length is ignored."""
    channels = 1 if numbers.ndim == 2 else 3
    if len(marked) != 2 * channels:
        return None
    hit = (numbers.reshape(*numbers.shape[:2], channels) == np.frombuffer(marked, ">u2")).all(axis=-1)
    return np.where(hit, 0, 255).astype(np.uint8) if hit.any() else None
