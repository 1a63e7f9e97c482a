"""Files of pictures with many bands and of every type of numbers, which OpenCV and Pillow do not write."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

DEFLATE, PACKBITS = 8, 32773
UNSPECIFIED, ALPHA = 0, 2


def blocks_tiff(
    pixels: NDArray[Any],
    order: Literal["<", ">"] = "<",
    planar: bool = False,
    tile: tuple[int, int] | None = None,
    rows: int = 7,
    compression: int = 1,
    predictor: int = 1,
    photometric: int = 1,
    **tags: Any,
) -> bytes:
    """Return a TIFF (H,W,B) of strips or tiles, of all channels together or each for itself, written by hand."""
    height, width, bands = pixels.shape
    tall, wide = tile or (min(rows, height), width)
    blocks = []
    for some in [slice(n, n + 1) for n in range(bands)] if planar else [slice(0, bands)]:
        for top in range(0, height, tall):
            for left in range(0, width, wide):
                part = pixels[top : top + tall, left : left + wide, some]
                if tile:
                    part = np.pad(part, [(0, tall - part.shape[0]), (0, wide - part.shape[1]), (0, 0)])
                blocks.append(packed(predicted(part, order, predictor), compression))
    starts = np.cumsum([8, *map(len, blocks)]).tolist()
    places = (324, 325) if tile else (273, 279)
    entries: dict[int, tuple[int, ...]] = {
        256: (width,),
        257: (height,),
        258: (8 * pixels.itemsize,) * bands,
        259: (compression,),
        262: (photometric,),
        277: (bands,),
        284: (1 + planar,),
        317: (predictor,),
        339: ({"u": 1, "i": 2, "f": 3}[pixels.dtype.kind],) * bands,
        places[0]: tuple(starts[:-1]),
        places[1]: tuple(map(len, blocks)),
        **({322: (wide,), 323: (tall,)} if tile else {278: (tall,)}),
        **({338: (UNSPECIFIED,) * extra} if (extra := bands - (3 if photometric == 2 else 1)) else {}),
        **{int(name[1:]): numbers for name, numbers in tags.items()},
    }
    return tiff_of(order, blocks, entries)


def tiff_of(order: str, blocks: Sequence[bytes], entries: Mapping[int, Sequence[int]]) -> bytes:
    """Return a TIFF whose blocks of pixels begin at byte 8, and then its tags, all of them 32 bits."""
    end = 8 + sum(map(len, blocks))
    directory, beyond, offset = b"", b"", end + 2 + 12 * len(entries) + 4
    for tag, numbers in sorted(entries.items()):
        content = struct.pack(f"{order}{len(numbers)}I", *numbers)
        inline = content if len(content) <= 4 else struct.pack(order + "I", offset + len(beyond))
        beyond += content if len(content) > 4 else b""
        directory += struct.pack(order + "HHI", tag, 4, len(numbers)) + inline
    start = {"<": b"II", ">": b"MM"}[order] + struct.pack(order + "HI", 42, end)
    return start + b"".join(blocks) + struct.pack(order + "H", len(entries)) + directory + bytes(4) + beyond


def predicted(part: NDArray[Any], order: str, predictor: int) -> bytes:
    if predictor == 3:
        size = part.itemsize
        numbers = part.astype(part.dtype.newbyteorder(">")).reshape(len(part), -1).view(np.uint8)
        planes = numbers.reshape(len(part), -1, size).swapaxes(1, 2).reshape(len(part), -1, part.shape[2])
        planes[:, 1:] -= planes[:, :-1].copy()
        return planes.tobytes()
    if predictor == 2:
        part = part.copy()
        part[:, 1:] -= part[:, :-1].copy()
    return part.astype(part.dtype.newbyteorder(order)).tobytes()  # type: ignore[arg-type]


def packed(raw: bytes, compression: int) -> bytes:
    if compression == PACKBITS:
        return b"".join(bytes([len(raw[i : i + 128]) - 1]) + raw[i : i + 128] for i in range(0, len(raw), 128))
    return zlib.compress(raw) if compression == DEFLATE else raw


def array_file(pixels: NDArray[Any], version: tuple[int, int] = (1, 0)) -> bytes:
    """Return an array in the bytes of a `.npy` file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, pixels, version, allow_pickle=False)
    return file.getvalue()
