"""Pictures written byte by byte, so that a test knows every pixel and every wrong header field."""

from __future__ import annotations

import struct
import zlib
from typing import Any, Literal

import cv2
import numpy as np
from drills.band_files import tiff_of
from numpy.typing import NDArray


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(rows: NDArray[Any], depth: int, colour: int, *extra: bytes) -> bytes:
    """Return a PNG of rows of packed bytes, of any depth and colour type, without OpenCV."""
    height = len(rows)
    width = rows.shape[1] * 8 // depth // {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    raster = b"".join(b"\0" + row.tobytes() for row in rows)
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(extra) + chunk(b"IDAT", zlib.compress(raster)) + chunk(b"IEND", b"")


def encoded(suffix: str, pixels: NDArray[Any]) -> bytes:
    ok, data = cv2.imencode(suffix, pixels)
    assert ok
    return data.tobytes()


def exif(orientation: int) -> bytes:
    return b"II*\0\x08\0\0\0\x01\0" + struct.pack("<HHIHH", 0x0112, 3, 1, orientation, 0) + b"\0\0\0\0"


def encoded_as(suffix: str, pixels: NDArray[Any], *options: int) -> bytes:
    """Encode RGB(A) or gray pixels with OpenCV."""
    if pixels.ndim == 3:
        pixels = np.ascontiguousarray(pixels[..., [2, 1, 0, 3][: pixels.shape[2]]])
    ok, data = cv2.imencode(suffix, pixels, options)
    assert ok
    return data.tobytes()


def tiff(pixels: NDArray[Any], order: Literal["<", ">"] = "<", rows: int | None = None, **tags: Any) -> bytes:
    """Return a TIFF of uncompressed strips of `rows` rows. `tags` replaces or adds tags by number: `t259=(5,)`."""
    height, width, samples = (*pixels.shape, 1)[:3]
    rows = rows or height
    stored = pixels.astype(pixels.dtype.newbyteorder(order))
    strips = [stored[top : top + rows].tobytes() for top in range(0, height, rows)]
    starts = np.cumsum([8, *map(len, strips)]).tolist()
    entries: dict[int, tuple[int, ...]] = {
        256: (width,),
        257: (height,),
        258: (8 * stored.itemsize,) * samples,
        259: (1,),
        262: (2 if samples >= 3 else 1,),
        273: tuple(starts[:-1]),
        277: (samples,),
        278: (rows,),
        279: tuple(map(len, strips)),
        339: ({"u": 1, "i": 2, "f": 3}[stored.dtype.kind],) * samples,
        **({338: (2,)} if samples in (2, 4) else {}),
        **{int(name[1:]): numbers for name, numbers in tags.items()},
    }
    return tiff_of(order, strips, entries)


def bmp(
    rows: NDArray[np.uint8], width: int, bits: int, palette: bytes = b"", upward: bool = True, **lies: int
) -> bytes:
    """Return a BMP of rows of packed bytes, the top row first. `lies` replaces header fields."""
    lines = [row.tobytes() + b"\0" * (-len(row) % 4) for row in (rows[::-1] if upward else rows)]
    offset = 14 + 40 + len(palette)
    height = len(rows) if upward else -len(rows)
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, lies.get("kind", 0), 0, 0, 0, len(palette) // 4, 0)
    return b"BM" + struct.pack("<IHHI", offset + sum(map(len, lines)), 0, 0, offset) + info + palette + b"".join(lines)


def bmp_with_alpha(pixels: NDArray[np.uint8]) -> bytes:
    """Return a 32-bit BMP whose header holds the masks of red, green, blue and alpha."""
    height, width = pixels.shape[:2]
    info = struct.pack("<IiiHHIIiiII", 56, width, height, 1, 32, 3, 0, 0, 0, 0, 0)
    masks = struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    rows = np.ascontiguousarray(pixels[::-1][..., [2, 1, 0, 3]]).tobytes()
    return b"BM" + struct.pack("<IHHI", 70 + len(rows), 0, 0, 70) + info + masks + rows


def webp_chunks(*chunks: tuple[bytes, bytes]) -> bytes:
    """Return a WebP of these chunks."""
    body = b"".join(
        kind + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2) for kind, content in chunks
    )
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WEBP" + body


def jpeg_with(data: bytes, *segments: bytes) -> bytes:
    """Return the JPEG with APP1 segments before all other segments."""
    blocks = b"".join(b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment for segment in segments)
    return data[:2] + blocks + data[2:]
