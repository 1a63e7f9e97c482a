"""Write slides as scanners do, with little memory: pages of JPEG tiles, each smaller than the one before."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from io import BufferedWriter
from pathlib import Path

import numpy as np
import simplejpeg

from scenes.giant_tiff import ASCII, LONG, LONG8, SHORT, Lines, directory_bytes

JPEG, YCBCR = 7, 6
TILE, THUMBNAIL = 256, 64


def write_slide(
    path: Path, size: tuple[int, int], lines: Lines, factors: Sequence[int] = (1, 4, 16), aperio: bool = True
) -> None:
    """Write a picture and smaller ones of it, of which the sides are divided by `factors`.

    An Aperio SVS has a thumbnail behind its first page. Without it the file is a tiled TIFF with a pyramid.
    """
    height, width = size
    about = f"Aperio Image Library v11.2.1 \r\n{width}x{height} ({TILE}x{TILE}) JPEG/RGB Q=90|AppMag = 20|MPP = 0.5"
    pages = [(factor, TILE) for factor in factors]
    if aperio:
        pages.insert(1, (-(-max(size) // THUMBNAIL), 0))
    with path.open("wb") as file:
        file.write(struct.pack("<2sHHHQ", b"II", 43, 8, 0, 16))
        file.seek(16)
        link = 8
        for number, (factor, tile) in enumerate(pages):
            sides = (height // factor, width // factor)
            text = about.encode() + b"\0" if aperio else b""
            link = _write_page(file, link, sides, _reduced(lines, factor), tile, text, not aperio and number > 0)


def _reduced(lines: Lines, factor: int) -> Lines:
    return lambda top, bottom: lines(top * factor, bottom * factor)[::factor, ::factor]


def _write_page(
    file: BufferedWriter, link: int, size: tuple[int, int], lines: Lines, tile: int, about: bytes, is_reduced: bool
) -> int:
    """Write a page, and its position to `link`. Return where that of the next one belongs. A page without tiles is one
    strip."""
    height, width = size
    offsets, counts, step = list[int](), list[int](), tile or height
    for top in range(0, height, step):
        found = lines(top, min(top + step, height))[:, :width]
        across = -(-width // tile) * tile if tile else width
        strip = np.zeros((step, across, 3), np.uint8)
        strip[: len(found), :width] = found
        for left in range(0, width, tile or width):
            part = np.ascontiguousarray(strip[:, left : left + (tile or width)])
            data = simplejpeg.encode_jpeg(part, quality=90, colorsubsampling="444")
            offsets.append(file.tell())
            counts.append(len(data))
            file.write(data)
    entries = {
        254: (LONG, [int(is_reduced)]),
        256: (LONG, [width]),
        257: (LONG, [height]),
        258: (SHORT, [8, 8, 8]),
        259: (SHORT, [JPEG]),
        262: (SHORT, [YCBCR]),
        **({270: (ASCII, list(about))} if about else {}),
        277: (SHORT, [3]),
        **({} if tile else {273: (LONG8, offsets), 278: (LONG, [height]), 279: (LONG8, counts)}),
        **({322: (LONG, [tile]), 323: (LONG, [tile]), 324: (LONG8, offsets), 325: (LONG8, counts)} if tile else {}),
        530: (SHORT, [1, 1]),
    }
    fields = directory_bytes(file, entries)
    start = file.tell()
    file.write(fields)
    following = file.tell() - 8
    file.seek(link)
    file.write(struct.pack("<Q", start))
    file.seek(0, 2)
    return following
