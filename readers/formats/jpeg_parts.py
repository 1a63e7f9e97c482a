"""Parts of JPEG rows: of a file with restart markers only the stretches that a part touches are decoded.

The codes between two markers stand alone. Those that are needed become a file of their own, behind the header of the
row. This gives the pixels of the whole row only without chroma subsampling: subsampled colours are blended with the
colours of their neighbours. Any other file is decoded as a whole.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from readers.contract.tile_grid import Area, TileGrid, common, index_of, shape_of
from readers.formats.unpack import decode_jpeg

BLOCK = 8
"""The sides of a block, which is the unit of codes without chroma subsampling."""
START, END = b"\xff\xd8", b"\xff\xd9"
BASELINE, EXTENDED, SCAN, INTERVAL, RESTART = 0xC0, 0xC1, 0xDA, 0xDD, 0xD0
REPEATED = {0xC4, 0xDB, 0xFE, *range(0xE0, 0xF0)}
"""Tables, comments and what applications add: a file may have several of each."""
KNOWN = {BASELINE, EXTENDED, SCAN, INTERVAL, *REPEATED}
ONE_BLOCK = 0x11
"""The sampling of a component that has one block in each unit."""
ALL_BITS = bytes((0, 63, 0))
"""The end of the header of a scan that has all frequencies with all their bits."""
AT_ONCE = 1 << 18
"""The bytes in which markers are searched at once: a damaged row could have millions."""


class Head(NamedTuple):
    """The header of a file whose stretches stand alone."""

    size: int
    """The position of the height and the width."""
    scan: int
    """The position of the first stretch."""
    grid: TileGrid
    """The stretches as tiles of the row."""


def decode_part(stored: NDArray[np.uint8], shape: tuple[int, ...], part: Area) -> NDArray[np.uint8] | None:
    """Return a part of the row of this shape (bands, H, W) in a JPEG file, a view of memory of this thread. None if the
    file has another shape, or what is decoded of it is damaged."""
    if 0 in shape_of(part):
        return np.empty((shape[0], *shape_of(part)), np.uint8)
    head = _head(stored, shape)
    starts = None if head is None else _starts(stored, head)
    if head is not None and starts is not None:
        lines, columns, area = _touched(head.grid, part)
        file = _smaller_file(stored, head, starts[lines[:, None] * head.grid.counts[1] + columns], area)
        pixels = decode_jpeg(file, (shape[0], *shape_of(area)))
        if pixels is not None:
            return pixels.transpose(2, 0, 1)[common(part, area)[1]]
    pixels = decode_jpeg(stored, shape)
    return None if pixels is None else pixels.transpose(2, 0, 1)[index_of(part)]


def _touched(grid: TileGrid, part: Area) -> tuple[NDArray[np.int64], NDArray[np.int64], Area]:
    """Return the lines of stretches that a part touches, the columns with the one after them, and the part of the row
    that these stretches are."""
    along = zip(part, grid.tile, grid.sides, strict=True)
    ends = [(cut.start // step, -(-cut.stop // step), step, side) for cut, step, side in along]
    (top, bottom, *_), (left, right, *_) = ends
    area = tuple(slice(first * step, min(side, stop * step)) for first, stop, step, side in ends)
    return np.arange(top, bottom), np.arange(left, right + 1), area


def _smaller_file(stored: NDArray[np.uint8], head: Head, starts: NDArray[np.int64], area: Area) -> NDArray[np.uint8]:
    """Return a file of some stretches, which are this part of the row. Each line of `starts` has the starts of those
    in a line, and the end of the last one, behind its marker."""
    data = stored.data
    spans = (data[first:stop] for first, stop in starts[:, [0, -1]].tolist())
    file = np.frombuffer(bytearray().join([data[: head.scan], *spans]), np.uint8)
    ends = head.scan + np.diff(starts).cumsum()
    file[ends - 1] = _numbers(len(ends))
    file[-1] = END[1]
    file[head.size : head.size + 4] = np.array(shape_of(area), ">u2").view(np.uint8)
    return file


def _starts(stored: NDArray[np.uint8], head: Head) -> NDArray[np.int64] | None:
    """Return where each stretch begins, and where the last one ends. Each ends with its marker. None if there are not
    as many as there must be."""
    most, marks = head.grid.count - 1, np.empty(0, np.int64)
    for begin in range(head.scan, len(stored) - 1, AT_ONCE):
        codes = stored[begin : begin + AT_ONCE + 1]
        positions = np.flatnonzero(codes[:-1] == 0xFF) + 1
        marks = np.append(marks, positions[codes[positions] & 0xF8 == RESTART] + begin)
        if len(marks) > most:
            return None
    if len(marks) < most or (stored[marks] != _numbers(most)).any():
        return None
    return np.concatenate([[head.scan], marks + 1, [len(stored)]])


def _numbers(count: int) -> NDArray[np.uint8]:
    """Return the last bytes of this number of restart markers: they are counted from 0 to 7, and again from 0."""
    return (RESTART + np.arange(count) % 8).astype(np.uint8)


def _head(stored: NDArray[np.uint8], shape: tuple[int, ...]) -> Head | None:
    """Return the header of a row of this shape. None if its stretches do not stand alone, or the file is damaged."""
    data, at, segments = stored.data, len(START), dict[int, tuple[int, bytes]]()
    if bytes(data[:at]) != START or bytes(data[-len(END) :]) != END:
        return None
    while SCAN not in segments:
        if at + 4 > len(data):
            return None
        mark, marker, length = struct.unpack_from(">BBH", data, at)
        if mark != 0xFF or length < 2 or marker not in KNOWN or (marker in segments and marker not in REPEATED):
            return None
        segments[marker] = at + 4, bytes(data[at + 4 : at + 2 + length])
        at += 2 + length
    frame = segments.get(BASELINE) or segments.get(EXTENDED)
    if frame is None or INTERVAL not in segments or at + len(END) > len(data):
        return None
    sides = _sides(shape, *(content for _, content in (frame, segments[SCAN], segments[INTERVAL])))
    return None if sides is None else Head(frame[0] + 1, at, TileGrid(shape[1:], sides))


def _sides(shape: tuple[int, ...], frame: bytes, scan: bytes, interval: bytes) -> tuple[int, int] | None:
    """Return the sides of a stretch. None if the file has another shape, several scans or subsampled colours, or a
    stretch is not a part of a line of blocks, or whole lines."""
    bands, height, width = shape
    if [len(frame), len(scan), len(interval)] != [6 + 3 * bands, 4 + 2 * bands, 2]:
        return None
    if struct.unpack(">BHHB", frame[:6]) != (8, height, width, bands) or set(frame[7::3]) != {ONE_BLOCK}:
        return None
    blocks, across = int.from_bytes(interval, "big"), -(-width // BLOCK)
    if scan[0] != bands or scan[-3:] != ALL_BITS or blocks == 0:
        return None
    if across % blocks == 0:
        return BLOCK, BLOCK * blocks
    return (BLOCK * (blocks // across), BLOCK * across) if blocks % across == 0 else None
