"""Changes of shard files that know the format: several numbers that belong together change together.

A change may be anywhere in the metadata of a file, and checksums inside a file fit afterwards.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator

from drills.edge_numbers import NUMBERS, any_word, number, put
from drills.hdf5_structure import change_hdf5
from readers.formats.flatbuffer import Table

Change = Callable[[bytearray, random.Random], None]


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
                        put(data, at, number(whole, at, 8, dice))
            case 2:  # nulls with a validity
                put(
                    data,
                    node,
                    dice.choice(NUMBERS) if dice.random() < 0.5 else int.from_bytes(whole[node : node + 8], "little"),
                )
                put(data, node + 8, dice.choice((-1, 1, 2, dice.choice(NUMBERS))))
                put(data, buffer + 8, dice.choice((1, 8, 64, dice.choice(NUMBERS))))
            case 3:
                other = start + buffers[0] + 16 * dice.randrange(buffers[1])
                data[buffer : buffer + 16], data[other : other + 16] = (
                    whole[other : other + 16],
                    whole[buffer : buffer + 16],
                )
            case 4:
                any_word(data, start, start + buffers[0] + 16 * buffers[1], dice)
            case _:
                any_word(data, len(whole) - 10 - length, len(whole), dice)


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
                any_word(data, meta, meta + 152, dice)
            case 1:
                any_word(data, start, start + 16, dice)
            case 2:
                put(data, pointer, number(data, pointer, 2, dice), 2)
            case 3:
                for at in range(node, node + 16, 2):
                    if dice.random() < 0.4:
                        put(data, at, number(data, at, 2, dice), 2)
            case _:
                text = data.find(b'{"')
                at = dice.randrange(text, len(data)) if text >= 0 else node
                if 48 <= data[at] <= 57:
                    data[at] = dice.randrange(45, 58)
                else:
                    any_word(data, node, node + 24, dice)


CHANGES: dict[str, Change] = {"arrow": change_arrow, "hdf5": change_hdf5, "lmdb": change_lmdb}


def changed(storage: str, seed: bytes, dice: random.Random) -> bytes:
    """Return an input of the target of a format: a byte that selects the file, then the file with some changes."""
    data = bytearray(seed[1:])
    CHANGES[storage](data, dice)
    return seed[:1] + bytes(data)
