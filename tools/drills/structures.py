"""Changes of shard files that know the format: several numbers that belong together change together.

A change may be anywhere in the metadata of a file, and checksums inside a file fit afterwards.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator

from readers.formats.flatbuffer import Table

Change = Callable[[bytearray, random.Random], None]
NUMBERS = (
    *(0, 1, 2, 3, 7, 8, 63, 64, 127, 128, 255, 256, 4095, 4096, 65_535),
    *(2**shift + more for shift in (16, 24, 31, 32, 40, 45, 47, 48, 62, 63, 64) for more in (-1, 0, 1)),
    *(-1, -2, -8, -4096, -(2**31), -(2**45), -(2**63)),
)


def _put(data: bytearray, at: int, value: int, size: int = 8) -> None:
    """Write a number, cut to its size."""
    if 0 <= at <= len(data) - size:
        data[at : at + size] = (value % 2 ** (8 * size)).to_bytes(size, "little")


def _number(data: bytes | bytearray, at: int, size: int, dice: random.Random) -> int:
    """Return an edge case, or the number at this position changed a little."""
    if dice.random() < 0.6:
        return dice.choice(NUMBERS)
    old = int.from_bytes(data[at : at + size], "little")
    return dice.choice(
        (old + 1, old - 1, old * 2, old // 2, old + 8, old - 8, old ^ 1 << dice.randrange(8 * size), -old)
    )


def _any_word(data: bytearray, start: int, stop: int, dice: random.Random) -> None:
    """Change one number of 1 to 8 bytes, at a multiple of its size."""
    size = dice.choice((1, 2, 4, 8))
    at = dice.randrange(start, max(start + 1, stop)) // size * size
    _put(data, at, _number(data, at, size, dice), size)


# --- Arrow ---


def _arrow_batches(data: bytes) -> Iterator[tuple[int, Table]]:
    """Yield the position and the table of the metadata of each record batch of an intact file."""
    length = struct.unpack_from("<i", data, len(data) - 10)[0]
    footer = Table.root(memoryview(data)[len(data) - 10 - length : len(data) - 10])
    for start, metadata, _ in footer.structs(3, struct.Struct("<qi4xq")):
        yield start + 8, Table.root(memoryview(data)[start + 8 : start + metadata]).table(2)


def change_arrow(data: bytearray, dice: random.Random) -> None:
    """Change a field node and a buffer together, or the numbers of a batch, the footer or any metadata."""
    whole = bytes(data)
    length = struct.unpack_from("<i", whole, len(whole) - 10)[0]
    batches = list(_arrow_batches(whole))
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        start, batch = dice.choice(batches)
        nodes, buffers = batch.span(1, 16), batch.span(2, 16)
        node, buffer = (
            start + nodes[0] + 16 * dice.randrange(nodes[1]),
            start + buffers[0] + 16 * dice.randrange(buffers[1]),
        )
        match dice.randrange(6):
            case 0 | 1:  # what one node and one buffer say
                for at in (node, node + 8, buffer, buffer + 8):
                    if dice.random() < 0.6:
                        _put(data, at, _number(whole, at, 8, dice))
            case 2:  # nulls with a validity
                _put(
                    data,
                    node,
                    dice.choice(NUMBERS) if dice.random() < 0.5 else int.from_bytes(whole[node : node + 8], "little"),
                )
                _put(data, node + 8, dice.choice((-1, 1, 2, dice.choice(NUMBERS))))
                _put(data, buffer + 8, dice.choice((1, 8, 64, dice.choice(NUMBERS))))
            case 3:
                other = start + buffers[0] + 16 * dice.randrange(buffers[1])
                data[buffer : buffer + 16], data[other : other + 16] = (
                    whole[other : other + 16],
                    whole[buffer : buffer + 16],
                )
            case 4:
                _any_word(data, start, start + buffers[0] + 16 * buffers[1], dice)
            case _:
                _any_word(data, len(whole) - 10 - length, len(whole), dice)


# --- HDF5 ---


def hdf5_blocks(data: bytes) -> list[tuple[int, int]]:
    """Return where each block with a checksum begins and ends: superblock, object headers and their continuations."""
    blocks = [(0, 44)]
    at = data.find(b"OHDR")
    while at >= 0:
        flags = data[at + 5]
        size_at = at + 6 + 16 * bool(flags & 0x20) + 4 * bool(flags & 0x10)
        width = 1 << (flags & 3)
        end = size_at + width + int.from_bytes(data[size_at : size_at + width], "little")
        if end + 4 <= len(data):
            blocks.append((at, end))
        at = data.find(b"OHDR", at + 4)
    return blocks


def change_hdf5(data: bytearray, dice: random.Random) -> None:
    """Change numbers of the superblock or of an object header, and make the checksum fit."""
    blocks = hdf5_blocks(bytes(data))
    for _ in range(dice.choice((1, 1, 2))):
        start, end = dice.choice(blocks)
        for _ in range(dice.choice((1, 1, 2, 4))):
            at = dice.randrange(start + 4, end)
            size = dice.choice((1, 1, 2, 4, 8))
            if at + size <= end:
                _put(data, at, _number(data, at, size, dice), size)
        struct.pack_into("<I", data, end, lookup3(bytes(data[start:end])))


def lookup3(data: bytes) -> int:
    """Return the checksum of HDF5's metadata: `hashlittle` of Bob Jenkins' lookup3.c."""
    a = b = c = (0xDEADBEEF + len(data)) & 0xFFFFFFFF
    at = 0
    while len(data) - at > 12:
        first, second, third = struct.unpack_from("<III", data, at)
        a, b, c = _mix((a + first) & 0xFFFFFFFF, (b + second) & 0xFFFFFFFF, (c + third) & 0xFFFFFFFF)
        at += 12
    if at == len(data):
        return c
    first, second, third = struct.unpack("<III", data[at:].ljust(12, b"\0"))
    return _final((a + first) & 0xFFFFFFFF, (b + second) & 0xFFFFFFFF, (c + third) & 0xFFFFFFFF)


def _turned(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & 0xFFFFFFFF


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    for bits in (4, 6, 8, 16, 19, 4):
        a = (a - c & 0xFFFFFFFF) ^ _turned(c, bits)
        c = c + b & 0xFFFFFFFF
        a, b, c = b, c, a
    return a, b, c


def _final(a: int, b: int, c: int) -> int:
    for bits in (14, 11, 25, 16, 4, 14, 24):
        c = (c ^ b) - _turned(b, bits) & 0xFFFFFFFF
        a, b, c = b, c, a
    return b


# --- LMDB ---


def change_lmdb(data: bytearray, dice: random.Random) -> None:
    """Change the meta pages, the header, a pointer or a node of a page, or a number of the layout."""
    page = struct.unpack_from("<I", data, 40)[0]
    pages = [at for at in range(0, len(data), page) if struct.unpack_from("<H", data, at + 10)[0] in (1, 2)]
    for _ in range(dice.choice((1, 1, 2, 4))):
        start = dice.choice(pages)
        pointers = range(start + 16, start + min(page, struct.unpack_from("<H", data, start + 12)[0]) - 1, 2)
        pointer = dice.choice(pointers or [start + 16])
        node = start + struct.unpack_from("<H", data, pointer)[0]
        match dice.randrange(5):
            case 0:
                meta = dice.choice((0, page))
                _any_word(data, meta, meta + 152, dice)
            case 1:
                _any_word(data, start, start + 16, dice)
            case 2:
                _put(data, pointer, _number(data, pointer, 2, dice), 2)
            case 3:
                for at in range(node, node + 16, 2):
                    if dice.random() < 0.4:
                        _put(data, at, _number(data, at, 2, dice), 2)
            case _:
                text = data.find(b'{"')
                at = dice.randrange(text, len(data)) if text >= 0 else node
                if 48 <= data[at] <= 57:
                    data[at] = dice.randrange(45, 58)
                else:
                    _any_word(data, node, node + 24, dice)


CHANGES: dict[str, Change] = {"arrow": change_arrow, "hdf5": change_hdf5, "lmdb": change_lmdb}


def changed(storage: str, seed: bytes, dice: random.Random) -> bytes:
    """Return an input of the target of a format: a byte that selects the file, then the file with some changes."""
    data = bytearray(seed[1:])
    CHANGES[storage](data, dice)
    return seed[:1] + bytes(data)
