"""Find the strips or tiles of a TIFF, and turn each into pixels. Each must be in the file and have all its pixels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from packer.decoding.bits import unpack_bits
from packer.decoding.header import FileBytes, Pixels
from packer.decoding.tiff.colours import DIFFERENCES, PLANES
from packer.decoding.tiff.compressions import UNPACKERS
from packer.decoding.tiff.directory import (
    BITS,
    COMPRESSION,
    HEIGHT,
    PLANAR,
    PREDICTOR,
    SAMPLES,
    SEPARATE,
    STRIP_BYTES,
    STRIP_OFFSETS,
    STRIP_ROWS,
    TILE_BYTES,
    TILE_HEIGHT,
    TILE_OFFSETS,
    TILE_WIDTH,
    WIDTH,
    Directory,
)
from packer.decoding.tiff.shape import TiffShape
from packer.errors import BadPair


@dataclass(frozen=True)
class Block:
    """A strip or tile: its upper left corner, the channels it has, what it holds, and its bytes in the file."""

    top: int
    left: int
    channels: slice
    shape: TiffShape
    offset: int
    count: int


class Decoder:
    """Turns the blocks of a file into their pixels."""

    def __init__(self, tiff: Directory, data: FileBytes) -> None:
        self._tiff, self._data = tiff, data
        self._unpack = UNPACKERS[tiff.one(COMPRESSION)](tiff)

    def pixels(self, block: Block) -> Pixels:
        """Return the pixels of a block, (rows, columns, samples). A tile may reach beyond the picture."""
        end = block.offset + block.count
        raw = self._unpack(self._data[block.offset : end], block.shape) if end <= len(self._data) else b""
        if len(raw) < block.shape.size:
            raise cut_short(block)
        return _pixels(self._tiff, raw, block.shape)


def cut_short(block: Block) -> BadPair:
    """Return the refusal of a block that has too few bytes."""
    return BadPair(f"is damaged: the block at row {block.top}, column {block.left} is cut short")


def blocks_of(tiff: Directory) -> Iterator[Block]:
    """Yield the blocks of a file in their order."""
    height, width, samples, bits = (tiff.one(tag) for tag in (HEIGHT, WIDTH, SAMPLES, BITS))
    is_tiled = TILE_OFFSETS in tiff.numbers
    tall, wide = (
        (tiff.one(TILE_HEIGHT), tiff.one(TILE_WIDTH)) if is_tiled else (min(tiff.one(STRIP_ROWS), height), width)
    )
    if not 0 < tall * wide <= 4 * max(height * width, 1 << 20):
        raise BadPair(f"is damaged: its blocks are {tall}x{wide}")
    separate = samples if tiff.one(PLANAR) == SEPARATE else 1
    samples //= separate
    names = (TILE_OFFSETS, TILE_BYTES) if is_tiled else (STRIP_OFFSETS, STRIP_BYTES)
    offsets, counts = (tiff.numbers.get(name, ()) for name in names)
    needed = separate * -(-height // tall) * -(-width // wide)
    if not needed == len(offsets) == len(counts):
        raise BadPair(f"is damaged: it has {len(offsets)} blocks and needs {needed}")
    places = product(range(separate), range(0, height, tall), range(0, width, wide))
    for (plane, top, left), offset, count in zip(places, offsets, counts, strict=True):
        rows = tall if is_tiled else min(tall, height - top)
        yield Block(top, left, slice(plane, plane + samples), TiffShape(rows, wide, samples, bits, tall), offset, count)


def _pixels(tiff: Directory, raw: bytes, shape: TiffShape) -> Pixels:
    """Return the numbers in the bytes of a block, without their predictor."""
    if tiff.one(PREDICTOR) == PLANES:
        return _from_planes(raw, shape)
    if shape.bits < 8:
        packed = np.frombuffer(raw, np.uint8, shape.size).reshape(shape.rows, shape.row_bytes)
        return unpack_bits(packed, shape.bits, shape.columns)[..., None]
    stored = np.dtype(tiff.order + tiff.dtype)
    numbers = np.frombuffer(raw, stored, shape.size // stored.itemsize)
    numbers = numbers.reshape(shape.rows, shape.columns, shape.samples)
    if tiff.one(PREDICTOR) == DIFFERENCES:
        return np.cumsum(numbers, axis=1, dtype=tiff.dtype)
    return numbers


def _from_planes(raw: bytes, shape: TiffShape) -> Pixels:
    """Undo predictor 3: a plane for each of the bytes of a float, the highest first, as differences in a row."""
    rows, columns, samples, size = shape.rows, shape.columns, shape.samples, shape.item_bytes
    differences = np.frombuffer(raw, np.uint8, shape.size).reshape(rows, size * columns, samples)
    planes = np.cumsum(differences, axis=1, dtype=np.uint8).reshape(rows, size, columns * samples)
    return np.ascontiguousarray(planes.swapaxes(1, 2)).view(f">f{size}").reshape(rows, columns, samples)
