"""Changes of HDF5 shards that know the format: messages of object headers, and numbers that belong together."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from drills.edge_numbers import any_word, number, put
from readers.formats.hdf5_checksum import lookup3

SUPERBLOCK = 44
NIL, DATASPACE, DATATYPE, LINK, LAYOUT, CONTINUATION = 0x00, 0x01, 0x03, 0x06, 0x08, 0x10


class Block(NamedTuple):
    """Bytes with a checksum at `end`. Messages begin at `begin`."""

    start: int
    begin: int
    end: int


class Message(NamedTuple):
    """A message of an object header: where it begins, and its content."""

    kind: int
    at: int
    body: int
    size: int


class Structure(NamedTuple):
    """The blocks and messages of an intact file."""

    blocks: list[Block]
    messages: list[Message]

    def of(self, kind: int, within: Block | None = None) -> list[Message]:
        """Return the messages of a type, in the whole file or in one block."""
        inside = [m for m in self.messages if within is None or within.begin <= m.at < within.end]
        return [message for message in inside if message.kind == kind]


@cache
def structure(data: bytes) -> Structure:
    """Return the superblock and the object headers, with all messages."""
    blocks, messages = [Block(0, SUPERBLOCK, SUPERBLOCK)], list[Message]()
    at = data.find(b"OHDR")
    while at >= 0:
        if data[at + 4] == 2:
            blocks.append(_header(data, at))
        at = data.find(b"OHDR", at + 4)
    for block in blocks:
        at = block.begin
        while at + 4 <= block.end:
            kind, size = struct.unpack_from("<BH", data, at)
            messages.append(Message(kind, at, at + 4, size))
            at += 4 + size
    return Structure(blocks, messages)


def _header(data: bytes | bytearray, start: int) -> Block:
    flags = data[start + 5]
    size_at = start + 6 + 16 * bool(flags & 0x20) + 4 * bool(flags & 0x10)
    begin = size_at + (1 << (flags & 3))
    return Block(start, begin, begin + int.from_bytes(data[size_at:begin], "little"))


def change_hdf5(data: bytearray, dice: random.Random) -> None:
    """Change blocks, messages and numbers that belong together, and make the checksums fit."""
    whole = bytes(data)
    found = structure(whole)
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        dice.choice(CHANGES)(data, found, dice)
    fit_checksums(data, whole)


def fit_checksums(data: bytearray, whole: bytes) -> None:
    """Make the checksums fit of all blocks that differ from the whole file, also of headers of another length."""
    for start, _, end in structure(whole).blocks:
        if data[start:end] != whole[start:end]:
            now = _header(data, start).end if data[start : start + 4] == b"OHDR" and start + 32 < len(data) else end
            end = now if now + 4 <= len(data) else end
            put(data, end, lookup3(bytes(data[start:end])), 4)


def _any_number(data: bytearray, found: Structure, dice: random.Random) -> None:
    block = dice.choice(found.blocks)
    any_word(data, block.start, block.end, dice)


def _head(data: bytearray, found: Structure, dice: random.Random) -> None:
    """Change type, size or flags of a message."""
    at = dice.choice(found.messages).at
    offset, size = dice.choice(((0, 1), (1, 2), (3, 1)))
    put(data, at + offset, dice.choice((dice.randrange(32), number(data, at + offset, size, dice))), size)


def _body(data: bytearray, found: Structure, dice: random.Random) -> None:
    """Change one or more numbers of a message."""
    message = dice.choice(found.messages)
    for _ in range(dice.choice((1, 1, 2, 3))):
        size = dice.choice((1, 2, 4, 8))
        start = dice.choice((0, 2, 4))
        at = message.body + start + dice.randrange(max(1, message.size - start)) // size * size
        put(data, at, number(data, at, size, dice), size)


def _shape(data: bytearray, found: Structure, dice: random.Random) -> None:
    """Change a side of a data set, and mostly the greatest side and the number of bytes with it."""
    space = dice.choice(found.of(DATASPACE))
    block = next(block for block in found.blocks if block.begin <= space.at < block.end)
    rank = (space.size - 4) // 16
    at = space.body + 4 + 8 * dice.randrange(rank)
    old = int.from_bytes(data[at : at + 8], "little")
    side = number(data, at, 8, dice)
    put(data, at, side)
    if dice.random() < 0.7:
        put(data, at + 8 * rank, side)
    for layout in found.of(LAYOUT, block) if dice.random() < 0.7 else ():
        length = int.from_bytes(data[layout.body + 10 : layout.body + 18], "little")
        put(data, layout.body + 10, length * side // max(1, old))
    for kind in found.of(DATATYPE, block) if dice.random() < 0.2 else ():
        put(data, kind.body + 4, number(data, kind.body + 4, 4, dice), 4)


def _position(data: bytearray, found: Structure, dice: random.Random) -> None:
    """Move the numbers of a data set, and sometimes change their length with it."""
    layout, other = (dice.choice(found.of(LAYOUT)).body for _ in range(2))
    near = int.from_bytes(data[other + 2 : other + 10], "little") + dice.choice((-8, -1, 0, 1, 8))
    put(data, layout + 2, dice.choice((near, len(data), number(data, layout + 2, 8, dice))))
    if dice.random() < 0.4:
        put(data, layout + 10, number(data, layout + 10, 8, dice))


def _link(data: bytearray, found: Structure, dice: random.Random) -> None:
    """Make a link lead to another block, or give it the name of another one."""
    link, other = (dice.choice(found.of(LINK)) for _ in range(2))
    if dice.random() < 0.3 and link.size == other.size:
        data[link.body : link.body + link.size - 8] = data[other.body : other.body + other.size - 8]
    else:
        put(data, link.body + link.size - 8, dice.choice(found.blocks).start + dice.choice((0, 0, 0, 4)))


def _continue(data: bytearray, found: Structure, dice: random.Random) -> None:
    """Make a header go on in some block, such as itself, in the place of a message."""
    message = dice.choice([m for m in found.messages if m.size >= 16])
    block = dice.choice(found.blocks)
    struct.pack_into("<BHB", data, message.at, CONTINUATION, 16, 0)
    put(data, message.body, block.start + dice.choice((0, 0, 4)))
    put(data, message.body + 8, dice.choice((block.end + 4 - block.start, number(data, message.body + 8, 8, dice))))
    if message.size >= 20:
        struct.pack_into("<BHB", data, message.body + 16, NIL, message.size - 20, 0)
    if dice.random() < 0.5:
        data[block.start : block.start + 4] = b"OCHK"


def _copy(data: bytearray, found: Structure, dice: random.Random) -> None:
    """Write a message over another one that is as long."""
    source = dice.choice(found.messages)
    target = dice.choice([m for m in found.messages if m.size == source.size])
    data[target.at : target.body + source.size] = data[source.at : source.body + source.size]


CHANGES: tuple[Callable[[bytearray, Structure, random.Random], None], ...] = (
    *(_any_number, _head, _body, _shape),
    *(_position, _link, _continue, _copy),
)
