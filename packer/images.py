"""Decoding: from a file's bytes to upright pixels, or a plain word why not."""

from __future__ import annotations

import re
import struct
import zlib
from functools import lru_cache
from io import BytesIO
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair
from packer.header import GRAY, PALETTE, PNG_SIGNATURE, Header, jpeg_is_whole, png_chunks, read_header

Pixels = NDArray[Any]

_SEE_THROUGH = "has transparent pixels, and nobody knows what is behind them; flatten it"


@lru_cache(maxsize=1)
def decoder_identity() -> str:
    """Which decoders decide the pixels: another libjpeg may round another way."""
    about = cv2.getBuildInformation()
    parts = [f"opencv {cv2.__version__}"]
    for name in ("JPEG", "PNG"):
        found = re.search(rf"^\s*{name}:\s*(.*?)$", about, re.MULTILINE)
        version = re.search(r"ver ([^)\s]+)", found[1]) if found else None
        parts.append(f"{name.lower()} {version[1] if version else 'unknown'}")
    return ", ".join(parts)


def check_image(header: Header) -> None:
    """Refuse what would be packed other than it is."""
    if header.depth > 8:
        raise BadPair(f"has {header.depth} bits per channel; images must have 8")


def check_label(header: Header, lossy: bool = False) -> None:
    """Refuse what cannot carry a label."""
    if header.kind == "jpeg" and not lossy:
        raise BadPair("is a JPEG; its compression blurs labels, so it must be PNG")
    if header.depth == 16 and header.channels != 1:
        raise BadPair("has 16 bits per colour channel; labels have 8, or 16 in gray")


def decode_image(data: bytes) -> NDArray[np.uint8]:
    """An image as upright (H,W,3) RGB; gray gets three equal channels."""
    header = _whole_header(data)
    check_image(header)
    if header.colour == PALETTE:
        return _upright(_palette_colours(data, header), header)
    if header.transparent is None:
        return _upright(_decode(data, cv2.IMREAD_COLOR_RGB), header)
    pixels = _decode(data, cv2.IMREAD_UNCHANGED)
    if pixels.ndim == 3 and pixels.shape[2] == 4:
        if pixels[..., 3].min() < 255:
            raise BadPair(_SEE_THROUGH)
        return _upright(cv2.cvtColor(pixels, cv2.COLOR_BGRA2RGB), header)
    if pixels.ndim == 2 and (_raw_gray(pixels, header) == int.from_bytes(header.transparent, "big")).any():
        raise BadPair(_SEE_THROUGH)
    return _upright(_decode(data, cv2.IMREAD_COLOR_RGB), header)


def decode_label(data: bytes, as_index: bool, lossy: bool = False) -> Pixels:
    """A label as upright (H,W) values or (H,W,3) RGB. A palette gives its indices if `as_index`, else its colours.

    Gray of less than 8 bits is the number in the file if `as_index`, else the gray that it stands for.
    """
    header = _whole_header(data)
    check_label(header, lossy)
    if header.colour == PALETTE and as_index:
        return _upright(_palette_indices(data, header), header)
    if header.colour != GRAY:
        return decode_image(data)
    values = _decode(data, cv2.IMREAD_UNCHANGED)
    if values.ndim == 3:  # one value is marked as transparent; it is a value like any other
        values = values[..., 0]
    return _upright(_raw_gray(values, header) if as_index else values, header)


def _raw_gray(values: Pixels, header: Header) -> Pixels:
    """The numbers in the file: OpenCV spreads 1, 2 and 4 bits over 0..255."""
    return values // (255 // (2**header.depth - 1)) if header.depth < 8 else values


def _palette_colours(data: bytes, header: Header) -> NDArray[np.uint8]:
    """The colours of a palette PNG; an index beyond the palette is no colour, whatever a decoder makes of it."""
    indices = _palette_indices(data, header)
    palette = np.frombuffer(next((data[a:b] for kind, a, b in png_chunks(data) if kind == b"PLTE"), b""), np.uint8)
    most = int(indices.max())
    if 3 * most + 3 > len(palette):
        raise BadPair(f"is damaged: it uses colour {most} of a palette of {len(palette) // 3}")
    opacity = np.frombuffer(header.transparent or b"", np.uint8)
    if np.isin(indices, np.flatnonzero(opacity < 255)).any():
        raise BadPair(_SEE_THROUGH)
    return palette[: 3 * most + 3].reshape(-1, 3)[indices]


def _palette_indices(data: bytes, header: Header) -> Pixels:
    """The indices of a palette PNG: decoded as a gray one, for OpenCV cannot leave a palette unapplied."""
    return _raw_gray(_decode(_palette_as_gray(data), cv2.IMREAD_UNCHANGED), header)


def _whole_header(data: bytes) -> Header:
    """The header of a file that is whole: a decoder fills in what is missing and only warns."""
    header = read_header(BytesIO(data))
    if header.kind == "png":
        for _ in png_chunks(data):
            pass
    elif not jpeg_is_whole(data):
        raise BadPair("is cut short: the JPEG has no end")
    return header


def _decode(data: bytes, flags: int) -> Pixels:
    """The stored pixels; turning them is ours to do, so that image and label follow the same rule."""
    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), flags | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error as error:
        if error.code == cv2.Error.StsNoMem:  # says nothing about the picture, so it must not become a verdict on it
            raise MemoryError(error.err) from error
        raise BadPair(f"cannot be decoded ({error.err})") from error
    if pixels is None:
        raise BadPair("cannot be decoded")
    return pixels


def _upright(pixels: Pixels, header: Header) -> Pixels:
    """Turn the pixels as EXIF's orientation says."""
    if pixels.shape[:2] != (header.stored_height, header.stored_width):
        raise BadPair(f"decodes to {pixels.shape[:2]}, its header says otherwise")
    if header.orientation >= 5:
        pixels = pixels.swapaxes(0, 1)
    if header.orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if header.orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels)


def _palette_as_gray(data: bytes) -> bytes:
    """The same PNG with its palette left out and its colour type set to gray: the values are then the indices.

    OpenCV has no way to decode a palette without applying it, and the raster of both types is the same.
    """
    kept = [PNG_SIGNATURE]
    for kind, start, end in png_chunks(data):
        content = data[start:end]
        if kind == b"IHDR":
            content = content[:9] + b"\x00" + content[10:]
        if kind in (b"IHDR", b"IDAT", b"IEND"):
            kept.append(struct.pack(">I", len(content)) + kind + content)
            kept.append(struct.pack(">I", zlib.crc32(kind + content)))
    return b"".join(kept)
