"""Targets of fuzzing for picture files: each type, as an image, as a label and as bands."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable
from io import BytesIO

import cv2
import numpy as np

from drills.band_files import DEFLATE, array_file, blocks_tiff
from drills.damaged_pictures import group_4
from drills.fuzz_target import Target
from packer.decoding.bands import Bands, read_bands
from packer.decoding.decode import decode_image, decode_label
from packer.decoding.file_types import read_header
from packer.decoding.header import Header
from packer.decoding.rules import ImageRules
from packer.errors import BadPair

MOST_PIXELS = 1 << 20
ENCODERS: dict[str, tuple[tuple[str, tuple[int, ...]], ...]] = {
    "png": ((".png", ()),),
    "jpeg": ((".jpg", ()), (".jpg", (cv2.IMWRITE_JPEG_PROGRESSIVE, 1))),
    "tiff": tuple(
        (".tif", (cv2.IMWRITE_TIFF_COMPRESSION, kind, cv2.IMWRITE_TIFF_ROWSPERSTRIP, 8)) for kind in (1, 5, 7, 8, 32773)
    ),
    "bmp": ((".bmp", ()),),
    "webp": ((".webp", (cv2.IMWRITE_WEBP_QUALITY, 101)), (".webp", (cv2.IMWRITE_WEBP_QUALITY, 90))),
}

ARRAYS = "array"
"""The target of `.npy` files as pictures."""


def pictures() -> Iterable[Target]:
    """Yield a target for each type of files."""
    return map(_pictures, (*ENCODERS, ARRAYS))


def _pictures(kind: str) -> Target:
    """Return the target of a picture type: its header alone, and decoded as an image and as a label."""
    rules = ImageRules(max_pixels=MOST_PIXELS, alpha="drop", image_range=(0.0, 255.0))
    bare = ImageRules(max_pixels=MOST_PIXELS, alpha="drop")
    readings: tuple[Callable[[bytes], object], ...] = (
        lambda data: read_header(BytesIO(data), MOST_PIXELS),
        lambda data: decode_image(data, rules),
        lambda data: decode_label(data, as_index=True, max_pixels=MOST_PIXELS),
        lambda data: decode_label(data, as_index=False, max_pixels=MOST_PIXELS),
        lambda data: read_bands(data, Bands(), bare),
        lambda data: read_bands(data, Bands((3, 1)), bare),
    )

    def parse(data: bytes) -> None:
        data = sealed_png(data) if kind == "png" else data
        for reading in readings:
            try:
                found = reading(data)
            except BadPair:
                continue
            assert not isinstance(found, Header) or 0 < found.size[0] * found.size[1] <= MOST_PIXELS

    return Target(kind, tuple(seeds(kind)), parse)


def seeds(kind: str) -> Iterable[bytes]:
    dice = np.random.default_rng(0)
    colours = dice.integers(0, 256, (7, 9, 3), np.uint8)
    if kind == ARRAYS:
        for dtype, bands in (("|u1", (3,)), (">u2", ()), ("<i8", ()), ("<f4", (12,)), ("?", (1,))):
            yield array_file(dice.integers(0, 99, (7, 9, *bands)).astype(dtype))
        yield array_file(np.asfortranarray(dice.integers(0, 99, (7, 9, 4)).astype("<f2")), (2, 0))
        return
    for suffix, options in ENCODERS[kind]:
        for pixels in (colours, colours[..., 0], np.dstack([colours, colours[..., 0]])):
            ok, data = cv2.imencode(suffix, pixels, options)
            assert ok
            yield data.tobytes()
    if kind == "tiff":
        numbers = dice.integers(0, 99, (7, 9, 5))
        for dtype, planar, tile, compression, predictor in (
            ("<u2", False, None, 1, 1),
            ("<i2", True, None, DEFLATE, 2),
            ("<f4", True, (16, 16), DEFLATE, 3),
            ("<f2", False, None, DEFLATE, 3),
            ("<u4", False, (16, 16), 1, 1),
        ):
            yield blocks_tiff(
                numbers.astype(dtype), planar=planar, tile=tile, rows=3, compression=compression, predictor=predictor
            )
        yield from map(group_4, (colours[..., 0] > 99, np.tile(colours[..., 1] > 99, (9, 9))))
    if kind == "png":
        raster = b"".join(b"\0" + row.tobytes() for row in colours[..., 0] % 4)
        chunks = (
            (b"IHDR", struct.pack(">IIBBBBB", 9, 7, 8, 3, 0, 0, 0)),
            (b"PLTE", colours[:4, 0].tobytes()),
            (b"tRNS", b"\xff\x80"),
            (b"eXIf", b"II*\0\x08\0\0\0\x01\0" + struct.pack("<HHIHH", 0x0112, 3, 1, 6, 0)),
            (b"IDAT", zlib.compress(raster)),
            (b"IEND", b""),
        )
        yield b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(c)) + k + c + bytes(4) for k, c in chunks)


def sealed_png(data: bytes) -> bytes:
    """Make the checksums of all chunks fit. Otherwise they would stop every change."""
    sealed, start = bytearray(data), 8
    while start + 12 <= len(data):
        end = start + 8 + struct.unpack_from(">I", data, start)[0]
        if end + 4 > len(data):
            break
        struct.pack_into(">I", sealed, end, zlib.crc32(data[start + 4 : end]))
        start = end + 4
    return bytes(sealed)
