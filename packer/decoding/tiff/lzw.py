"""Unpack LZW as TIFF has it. A code that is not in the table yet is damage.

No library here is known to refuse all damage. libtiff under OpenCV fills damaged strips in silence when it reads 8
bits. Read as 16 bits, it refused what this module refuses, but OpenCV does not document that, and a strip with an odd
number of bytes has no such form. Without the kernel a photograph of 512x512 takes 60 ms.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from packer.errors import BadPair
from readers.contract.kernels import kernel

CLEAR, END, FIRST_FREE = 256, 257, 258
UNKNOWN_CODE = "is damaged: its LZW has a code that is not known yet"
_MOST_CODES = 4096 + 1024 - FIRST_FREE
"""Codes from one CLEAR to the next. The table is full after 3,838; like libtiff, allow 1,024 more."""
_WIDTHS = np.array([min(12, (FIRST_FREE + index).bit_length()) for index in range(_MOST_CODES)])
"""Bits of each code after a CLEAR: they depend on the number of codes alone, so codes can be split without a table."""
_ENDS = np.cumsum(_WIDTHS)
_STARTS = _ENDS - _WIDTHS


KERNEL = kernel("packer.decoding.tiff.lzw_kernel")


def unpack_lzw(block: bytes, size: int) -> bytes:
    """Return at least `size` bytes, or fewer if the block ends before."""
    if KERNEL is not None:
        unpacked = bytearray(size)
        done = KERNEL.unpack(block, unpacked)
        if done < 0:
            raise BadPair(UNKNOWN_CODE)
        return bytes(memoryview(unpacked)[:done])
    raw, start = bytearray(), 0
    while len(raw) < size:
        codes, start = _split(block, start)
        is_last = not len(codes) or codes[-1] != CLEAR
        codes = codes[:-1] if len(codes) and codes[-1] in (CLEAR, END) else codes
        too_early = np.flatnonzero(codes >= FIRST_FREE + np.arange(len(codes)))
        _unpack(codes[: too_early[0]] if len(too_early) else codes, raw)
        if len(too_early) and len(raw) < size:
            raise BadPair(UNKNOWN_CODE)
        if is_last or len(too_early):
            break
    return bytes(raw)


def _split(block: bytes, start: int) -> tuple[NDArray[np.int64], int]:
    """Return the codes from bit `start` up to and with the next CLEAR or END, and the bit behind them."""
    first = start >> 3
    part = np.frombuffer(block[first : first + (_MOST_CODES * 12 >> 3) + 1] + b"\0\0", np.uint8).astype(np.int64)
    three_bytes = part[:-2] << 16 | part[1:-1] << 8 | part[2:]
    start -= 8 * first
    count = int(np.searchsorted(_ENDS, 8 * len(three_bytes) - start, "right"))
    bits, widths = _STARTS[:count] + start, _WIDTHS[:count]
    codes = three_bytes[bits >> 3] >> 24 - (bits & 7) - widths & (1 << widths) - 1
    ends = np.flatnonzero(codes >> 1 == CLEAR >> 1)
    count = int(ends[0]) + 1 if len(ends) else count
    return codes[:count], 8 * first + start + (int(_ENDS[count - 1]) if count else 0)


def _unpack(codes: NDArray[np.int64], raw: bytearray) -> None:
    """Append the words of codes whose table was just cleared.

    Each code but the first adds a word to the table: the word before it and one byte more. In the output, that byte
    follows the word. So a table of where words begin is enough.
    """
    starts: list[int] = []
    for code in codes.tolist():
        start = len(raw)
        starts.append(start)
        if code < CLEAR:
            raw.append(code)
            continue
        begin, last = starts[code - FIRST_FREE], starts[code - FIRST_FREE + 1]
        raw += raw[begin : last + 1]
        if last == start:  # the byte behind the word is this word's own first
            raw.append(raw[begin])
