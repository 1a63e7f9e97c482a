"""Windows of 512x512 of rows of 1024x2048 that are stored as JPEG: how much of a row has to be decoded.

    tools/run bench.jpeg_windows PHOTOGRAPHS [--rows 12] [--rounds 7]

PHOTOGRAPHS is that of bench.jpeg_peers. One thread decodes the same random windows in each way: out of whole rows; only
the lines, or lines and columns, by libjpeg-turbo's partial decoding, for which a few lines of C are compiled (cc and
libjpeg's headers); out of tiles; and out of rows with restart markers, as readers do. Each way must give the pixels of
the whole row of the same file.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import simplejpeg
from program import TOOLS, parser
from scenes.mosaics import SIZE, Mosaics
from scenes.street import Pixels
from tables import aligned, spread

from readers.formats.jpeg_parts import decode_part

CROP, QUALITY, TILE, WINDOWS = 512, 95, 256, 60
HEIGHT, WIDTH = SIZE
Way = Callable[[int, int, int], Pixels]
"""`way(row, top, left)` returns a window."""


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("photographs", type=Path)
    asked.add_argument("--rows", type=int, default=12)
    asked.add_argument("--rounds", type=int, default=7)
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        ways = _ways(options, Path(temporary))
        dice = np.random.default_rng(1)
        ends = options.rows, HEIGHT - CROP + 1, WIDTH - CROP + 1
        windows = [tuple(dice.integers(ends).tolist()) for _ in range(WINDOWS)]
        _prove(ways, windows)
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(options.rounds):
            for name, (_, _, way) in ways.items():
                started = time.perf_counter()
                for window in windows:
                    way(*window)
                times[name].append((time.perf_counter() - started) / WINDOWS * 1e3)
        print(*aligned(list(_table(ways, times))), sep="\n")


def _ways(options: Namespace, folder: Path) -> dict[str, tuple[int, list[Pixels], Way]]:
    """Return for each way the bytes that are stored, the rows that a decoder makes of them, and the way."""
    mosaics = Mosaics(folder, options.rows)
    mosaics.make(options.photographs)
    rows = [mosaics[row][0] for row in range(options.rows)]
    files = [_encode(row) for row in rows]
    tiles = [[_encode(row[tile]) for tile in _tiles()] for row in rows]
    marked = {blocks: [_encode(row, blocks) for row in rows] for blocks in (WIDTH // 8, TILE // 8)}
    decoded = [simplejpeg.decode_jpeg(file) for file in files]
    part = partial(_by_library, files, _compiled(folder))
    found: dict[str, tuple[list[bytes], list[Pixels], Way]] = {
        "whole row": (files, decoded, partial(_of_row, files)),
        "lines, libjpeg": (files, decoded, partial(part, 0)),
        "lines and columns, libjpeg": (files, decoded, partial(part, CROP)),
        f"tiles of {TILE}": (
            [b"".join(each) for each in tiles],
            [_joined(each) for each in tiles],
            partial(_of_tiles, tiles),
        ),
    }
    for blocks, name in zip(marked, ("line of blocks", f"{TILE} pixels"), strict=True):
        these = [simplejpeg.decode_jpeg(file) for file in marked[blocks]]
        found[f"markers, each {name}"] = marked[blocks], these, partial(_of_markers, marked[blocks])
        found[f"whole row, markers each {name}"] = marked[blocks], these, partial(_of_row, marked[blocks])
    return {name: (sum(map(len, stored)), same, way) for name, (stored, same, way) in found.items()}


def _encode(pixels: Pixels, blocks: int = 0) -> bytes:
    """Return a JPEG file, with a restart marker after so many blocks."""
    options = (
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,
        cv2.IMWRITE_JPEG_RST_INTERVAL,
        blocks,
    )
    _, file = cv2.imencode(".jpg", pixels[..., ::-1].copy(), (cv2.IMWRITE_JPEG_QUALITY, QUALITY, *options))
    return file.tobytes()


def _tiles() -> list[tuple[slice, slice]]:
    corners = ((top, left) for top in range(0, HEIGHT, TILE) for left in range(0, WIDTH, TILE))
    return [(slice(top, top + TILE), slice(left, left + TILE)) for top, left in corners]


def _joined(tiles: list[bytes]) -> Pixels:
    out = np.empty((*SIZE, 3), np.uint8)
    for tile, file in zip(_tiles(), tiles, strict=True):
        out[tile] = simplejpeg.decode_jpeg(file)
    return out


def _compiled(folder: Path) -> Any:
    library = folder / "jpeg_windows.so"
    source = TOOLS / "bench" / "jpeg_windows.c"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ljpeg"], check=True)
    return ctypes.CDLL(str(library)).decode_window


_MEMORY = np.empty(HEIGHT * WIDTH * 3, np.uint8)
"""Decoders write here: new memory would be taken from the system for each window."""


def _decoded(file: bytes, height: int, width: int) -> Pixels:
    pixels = _MEMORY[: height * width * 3].reshape(height, width, 3)
    simplejpeg.decode_jpeg(file, "RGB", buffer=pixels)
    return pixels


def _of_row(files: list[bytes], row: int, top: int, left: int) -> Pixels:
    return _decoded(files[row], HEIGHT, WIDTH)[top : top + CROP, left : left + CROP].copy()


def _by_library(files: list[bytes], decode: Any, width: int, row: int, top: int, left: int) -> Pixels:
    file, columns = files[row], (ctypes.c_uint * 2)()
    out = ctypes.c_void_p(_MEMORY.ctypes.data)
    decode(file, ctypes.c_ulong(len(file)), top, left, CROP, width, out, columns)
    first, count = columns
    lines = _MEMORY[: CROP * count * 3].reshape(CROP, count, 3)
    return lines[:, left - first : left - first + CROP].copy()


def _of_tiles(files: list[list[bytes]], row: int, top: int, left: int) -> Pixels:
    out = np.empty((CROP, CROP, 3), np.uint8)
    for (lines, columns), file in zip(_tiles(), files[row], strict=True):
        down, right = lines.start - top, columns.start - left
        if -TILE < down < CROP and -TILE < right < CROP:
            pixels = _decoded(file, TILE, TILE)[max(0, -down) : CROP - down, max(0, -right) : CROP - right]
            out[max(0, down) : down + TILE, max(0, right) : right + TILE] = pixels
    return out


def _of_markers(files: list[bytes], row: int, top: int, left: int) -> Pixels:
    """Return a window as readers do."""
    window = slice(top, top + CROP), slice(left, left + CROP)
    planes = decode_part(np.frombuffer(files[row], np.uint8), (3, HEIGHT, WIDTH), window)
    assert planes is not None
    return planes.transpose(1, 2, 0).copy()


def _prove(ways: dict[str, tuple[int, list[Pixels], Way]], windows: list[Any]) -> None:
    for name, (_, rows, way) in ways.items():
        for row, top, left in windows:
            if not np.array_equal(way(row, top, left), rows[row][top : top + CROP, left : left + CROP]):
                raise SystemExit(f"{name}: other pixels in row {row} at {top}, {left}")


def _table(ways: dict[str, Any], times: dict[str, list[float]]) -> Iterator[tuple[str, ...]]:
    whole = times["whole row"]
    pixels = len(ways["whole row"][1]) * HEIGHT * WIDTH
    yield "", "ms a window", "faster than whole rows", "bytes a pixel"
    for name, mine in times.items():
        ratios = [other / each for each, other in zip(mine, whole, strict=True)]
        yield name, spread(mine, ".2f"), spread(ratios, ".2f"), f"{ways[name][0] / pixels:.3f}"


if __name__ == "__main__":
    main()
