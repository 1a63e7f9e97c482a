"""Write BigTIFFs of any size with little memory: tiles or plain strips, and a scene for the picture and its label."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

DEFLATE, PLAIN = 8, 1
ASCII, SHORT, LONG, LONG8 = 2, 3, 4, 16
_LETTERS = {ASCII: "B", SHORT: "H", LONG: "I", LONG8: "Q"}
CLASSES = 5

Lines = Callable[[int, int], NDArray[Any]]
"""Returns the rows of a picture from one to another, (H,W,C)."""


def write_tiff(path: Path, size: tuple[int, int], lines: Lines, tile: int = 256, compression: int = DEFLATE) -> None:
    """Write a picture in tiles."""
    height, width = size
    first = lines(0, 1)
    samples, offsets, counts = first.shape[2], list[int](), list[int]()
    with path.open("wb") as file:
        file.write(bytes(16))
        for top in range(0, height, tile):
            strip = np.zeros((tile, -(-width // tile) * tile, samples), first.dtype)
            found = lines(top, min(top + tile, height))
            strip[: len(found), :width] = found
            for left in range(0, width, tile):
                data = np.ascontiguousarray(strip[:, left : left + tile]).tobytes()
                block = zlib.compress(data, 1) if compression == DEFLATE else data
                offsets.append(file.tell())
                counts.append(len(block))
                file.write(block)
        entries = {
            256: (LONG, [width]),
            257: (LONG, [height]),
            258: (SHORT, [8 * first.itemsize] * samples),
            259: (SHORT, [compression]),
            262: (SHORT, [2 if samples == 3 else 1]),
            277: (SHORT, [samples]),
            322: (LONG, [tile]),
            323: (LONG, [tile]),
            324: (LONG8, offsets),
            325: (LONG8, counts),
        }
        directory = directory_bytes(file, entries)
        start = file.tell()
        file.write(directory)
        file.seek(0)
        file.write(struct.pack("<2sHHHQ", b"II", 43, 8, 0, start))


def directory_bytes(file: BinaryIO, entries: dict[int, tuple[int, list[int]]]) -> bytes:
    """Write what is too long for a directory, and return the directory, which names no other behind it."""
    fields = []
    for tag, (kind, numbers) in entries.items():
        data = struct.pack(f"<{len(numbers)}{_LETTERS[kind]}", *numbers)
        if len(data) > 8:
            position = file.tell()
            file.write(data)
            data = struct.pack("<Q", position)
        fields.append(struct.pack("<HHQ", tag, kind, len(numbers)) + data.ljust(8, b"\0"))
    return struct.pack("<Q", len(fields)) + b"".join(fields) + bytes(8)


def picture_lines(size: tuple[int, int], seed: int = 0) -> Lines:
    """Return the lines of a picture: waves of colours, and noise that compresses as badly as a photograph's."""
    noise = np.random.default_rng(seed).integers(0, 12, (512, size[1], 3), np.uint8)
    columns = np.arange(size[1], dtype=np.float32) / 997

    def lines(top: int, bottom: int) -> NDArray[np.uint8]:
        rows = np.arange(top, bottom, dtype=np.float32)[:, None] / 1009
        wave = (110 + 100 * np.sin(columns + 3 * np.sin(rows))).astype(np.uint8)
        found: NDArray[np.uint8] = wave[..., None] + noise[np.arange(top, bottom) % 512]
        return found

    return lines


def label_lines(size: tuple[int, int]) -> Lines:
    """Return the lines of its label: regions of a few classes."""
    columns = np.arange(size[1])

    def lines(top: int, bottom: int) -> NDArray[np.uint8]:
        rows = np.arange(top, bottom)[:, None]
        return ((rows // 701 + columns // 503 + (rows + columns) // 1511) % CLASSES).astype(np.uint8)[..., None]

    return lines


def make_giant(
    raw: Path, size: tuple[int, int], name: str = "giant", compression: int = DEFLATE, picture: bool = True
) -> None:
    """Write a pair of picture and label below a folder, or the label alone."""
    for folder in ("images", "labels"):
        (raw / folder).mkdir(parents=True, exist_ok=True)
    if picture:
        write_tiff(raw / "images" / f"{name}.tif", size, picture_lines(size), compression=compression)
    write_tiff(raw / "labels" / f"{name}.tif", size, label_lines(size))
