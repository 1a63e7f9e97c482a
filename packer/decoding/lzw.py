"""LZW as TIFF has it, strictly: a code that cannot be is damage."""

from __future__ import annotations

from packer.errors import BadPair

CLEAR, END = 256, 257
_BYTES = [bytes((value,)) for value in range(256)] + [b"", b""]


def unpack_lzw(block: bytes, size: int) -> bytes:
    """At most about `size` bytes; fewer where the block ends before."""
    raw, table, previous = bytearray(), list(_BYTES), b""
    bits, held, width = 0, 0, 9
    for byte in block:
        bits, held = (bits << 8 | byte) & 0xFFFFFF, held + 8
        if held < width:
            continue
        held -= width
        code = bits >> held & (1 << width) - 1
        if code == CLEAR:
            table, previous, width = list(_BYTES), b"", 9
            continue
        if code == END or len(raw) >= size:
            break
        if code < len(table):
            word = table[code]
        elif code == len(table) and previous:
            word = previous + previous[:1]
        else:
            raise BadPair("is damaged: its LZW has a code that is not known yet")
        raw += word
        if previous:
            table.append(previous + word[:1])
            width = min(12, (len(table) + 1).bit_length())
        previous = word
    return bytes(raw)
