"""Encode rows: the bytes that are stored of a row whose field has an encoding."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair
from packer.pixels.jpeg_rules import JpegRules
from packer.pixels.kept_file import why_encoded
from packer.pixels.tile_table import TileTable
from readers.contract.fields import JPEG, RAW, ZSTD, Field
from readers.contract.receipt import MOST_PSNR
from readers.contract.tile_grid import index_of
from readers.formats.jpeg_parts import BLOCK
from readers.formats.tiled_rows import grid_of
from readers.formats.unpack import unpack_bytes

LEVEL = 1
"""The fastest level with full frames. Labels nearly vanish at this one."""
MOST_SIDE = 65500
"""The most pixels of a side that libjpeg writes."""
EQUAL = MOST_PSNR
"""The PSNR of a picture that comes back unchanged: the PSNR of any other is lower."""
JPEG_TOOL, MARKERS = "jpeg rows by opencv", "restart markers in jpeg rows"
"""The rules of JPEG files, and the rules of rows that are one file each."""
LEAST_MARKED = 1 << 16
"""Rows of fewer pixels have no restart markers: crops of them gain little, and markers cost more there."""
NEAR, LEAST_STRETCH = 32, 16
"""The blocks between two markers, about and at least."""
_MINE = threading.local()
"""The compressor of this thread; threads must not share one."""


class Encoded(NamedTuple):
    """The bytes that are stored of a row, a strip or a tile. If they lose something, also what is read from them."""

    stored: bytes
    numbers: NDArray[Any] | None = None
    squares: int = 0
    """The sum of the squared differences between what was stored and what is read."""
    why: str = ""
    """The reason why a file that was to be kept is not stored unchanged, if any."""


def encode(field: Field, jpeg: JpegRules | None, numbers: NDArray[Any], file: bytes) -> Encoded:
    """Return what is stored of a row: the same bytes wherever the versions of `tools_of_encodings` are the same.

    `file` is what the row was read from, empty if that is not a file.
    """
    why = why_encoded(field, file, numbers) if jpeg is not None and jpeg.keep else None
    if why == "":
        return Encoded(file)
    encoded = _in_tiles(field, jpeg, numbers) if field.is_tiled else _unit(field, jpeg, numbers)
    return encoded._replace(why=why or "")


def encode_strip(field: Field, jpeg: JpegRules | None, strip: NDArray[Any], table: TileTable) -> Encoded:
    """Return the bytes of the tiles of the next strip of a row, which follow those before it, and add their ends to
    `table`. The row begins with the table.

    A strip is as high as a tile, and as wide as the row. The last one has what is left.
    """
    lossy = np.empty_like(strip) if field.is_jpeg else None
    stored, squares = list[bytes](), 0
    for area in grid_of(field, strip.shape).areas:
        tile = _unit(field, jpeg, np.ascontiguousarray(strip[index_of(area)]))
        stored += [table.gap(), tile.stored]
        table.add(len(tile.stored))
        squares += tile.squares
        if lossy is not None:
            lossy[index_of(area)] = tile.numbers
    return Encoded(b"".join(stored), lossy, squares)


def psnr(squares: int, count: int) -> int:
    """Return the peak signal-to-noise ratio of this count of numbers of 8 bits, in hundredths of a decibel."""
    return EQUAL if squares == 0 else min(EQUAL, round(1000 * math.log10(255**2 * count / squares)))


def _in_tiles(field: Field, jpeg: JpegRules | None, numbers: NDArray[Any]) -> Encoded:
    """Return a row in tiles."""
    grid = grid_of(field, numbers.shape)
    table, axis = TileTable(grid.count), numbers.ndim - len(grid.sides)
    cuts = (index_of((strip, *grid.whole[1:])) for strip in grid.strips)
    strips = [encode_strip(field, jpeg, numbers[cut], table) for cut in cuts]
    decoded = np.concatenate([strip.numbers for strip in strips], axis) if field.is_jpeg else None
    stored = b"".join([table.to_bytes(), *(strip.stored for strip in strips)])
    return Encoded(stored, decoded, sum(strip.squares for strip in strips))


def _unit(field: Field, jpeg: JpegRules | None, numbers: NDArray[Any]) -> Encoded:
    """Return what is stored of a row without tiles, or of a tile."""
    if field.unit_encoding == RAW:
        return Encoded(numbers.tobytes())
    if field.unit_encoding == ZSTD:
        return Encoded(_frame(numbers))
    assert jpeg is not None, "planned fields have no other encoding"
    stored = _jpeg(numbers, jpeg.quality, 0 if field.is_tiled else blocks_of_stretch(*numbers.shape[1:]))
    decoded = np.empty_like(numbers)
    unpack_bytes(JPEG, np.frombuffer(stored, np.uint8), decoded)
    squares = round(cv2.norm(numbers.reshape(-1), decoded.reshape(-1), cv2.NORM_L2SQR))
    return Encoded(stored, decoded, squares)


def tools_of_encodings(fields: Sequence[Field]) -> tuple[str, ...]:
    """Return the versions of what encodes these fields. The version of OpenCV is among the decoders."""
    encodings = {field.unit_encoding for field in fields}
    tools = [JPEG_TOOL] if JPEG in encodings else []
    tools += [MARKERS] if any(field.encoding == JPEG for field in fields) else []
    if ZSTD in encodings:
        import zstandard

        tools.append(f"zstd {'.'.join(map(str, zstandard.ZSTD_VERSION))} level {LEVEL}")
    return tuple(tools)


def _frame(numbers: NDArray[Any]) -> bytes:
    """Return a frame of Zstandard."""
    import zstandard

    if not hasattr(_MINE, "zstd"):
        _MINE.zstd = zstandard.ZstdCompressor(level=LEVEL, write_checksum=False, write_content_size=True)
    frame: bytes = _MINE.zstd.compress(numbers)
    return frame


def blocks_of_stretch(height: int, width: int) -> int:
    """Return after how many blocks a JPEG row of this size has a restart marker; 0 if it has none.

    A stretch never goes on in the next line of blocks, so readers can decode any rectangle of them.
    """
    if height * width < LEAST_MARKED:
        return 0
    across = -(-width // BLOCK)
    sizes = [blocks for blocks in range(LEAST_STRETCH, across) if across % blocks == 0]
    return min([*sizes, across], key=lambda blocks: abs(blocks - NEAR))


def _jpeg(numbers: NDArray[np.uint8], quality: int, interval: int) -> bytes:
    """Return a JPEG file without chroma subsampling, with a restart marker after this number of blocks.

    OpenCV writes it: below a quality of 96 simplejpeg rounds in a fast and rough way, for as many bytes.
    """
    height, width = numbers.shape[1:]
    if max(height, width) > MOST_SIDE:
        raise BadPair(f"has {height}x{width} pixels; a JPEG file has at most {MOST_SIDE} a side")
    options = [cv2.IMWRITE_JPEG_QUALITY, quality]
    options += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444]
    options += [cv2.IMWRITE_JPEG_RST_INTERVAL, interval]
    pixels = cv2.merge(list(numbers[::-1]))  # OpenCV takes blue, green, red
    return cv2.imencode(".jpg", pixels, options)[1].tobytes()
