"""PNGs of every kind with random bytes and filters, and damaged ones whose chunks have the right checksums."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

KINDS = tuple(
    (colour, depth)
    for colour, depths in ((0, (1, 2, 4, 8, 16)), (2, (8, 16)), (3, (1, 2, 4, 8)), (4, (8, 16)), (6, (8, 16)))
    for depth in depths
)
"""Each colour type of the standard with each depth that it allows."""
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
FILTERS = 5
RARELY = 0.1


def random_png(dice: np.random.Generator, most_side: int = 100, damaged: bool = False) -> bytes:
    """Return a picture of any size, kind, filters, palette and window, in one chunk IDAT or several."""
    return next(random_pngs(dice, 1, most_side, damaged))


def random_pngs(dice: np.random.Generator, count: int, most_side: int, damaged: bool) -> Iterator[bytes]:
    """Yield pictures that are made of the same lines, each with damage of its own."""
    colour, depth = KINDS[dice.integers(len(KINDS))]
    height, width = dice.integers(1, most_side + 1, 2).tolist()
    lines = dice.integers(0, int(dice.choice([2, 4, 256])), (height, 1 + (width * CHANNELS[colour] * depth + 7) // 8))
    lines[:, 0] = dice.integers(0, FILTERS, height if dice.random() < 0.5 else 1)
    for _ in range(count):
        yield _file(dice, (width, height, depth, colour), lines.astype(np.uint8).tobytes(), damaged)


def _file(dice: np.random.Generator, head: tuple[int, int, int, int], raster: bytes, damaged: bool) -> bytes:
    methods = [0, 0, 0]
    if damaged and dice.random() < RARELY:
        methods[dice.integers(3)] = 1
    if damaged and dice.random() < 0.5:
        raster = _damaged(raster, dice)
    packer = zlib.compressobj(int(dice.integers(10)), zlib.DEFLATED, int(dice.choice([9, 12, 15])))
    stream = packer.compress(raster) + packer.flush()
    if damaged and dice.random() < 0.5:
        stream = _damaged(stream, dice)
    parts = [(b"IHDR", struct.pack(">IIBBBBB", *head, *methods))]
    if head[3] == 3:
        parts.append((b"PLTE", dice.bytes(3 * int(dice.integers(1, 257)))))
    if dice.random() < RARELY:
        parts.append((b"tRNS", dice.bytes(int(dice.integers(0, 9)))))
    cuts = [0, *sorted(dice.integers(0, len(stream) + 1, dice.integers(3)).tolist()), len(stream)]
    parts += [(b"IDAT", stream[start:end]) for start, end in pairwise(cuts)]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in (*parts, (b"IEND", b"")))


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _damaged(data: bytes, dice: np.random.Generator) -> bytes:
    """Cut the bytes, change one, remove one, or add some."""
    place = int(dice.integers(len(data) + 1))
    return (
        data[:place],
        data[:place] + dice.bytes(1) + data[place + 1 :],
        data[:place] + data[place + 1 :],
        data + dice.bytes(int(dice.integers(1, 9))),
    )[dice.integers(4)]
