"""Numbers that parsers get wrong, and ways to put them into a file."""

from __future__ import annotations

import random

NUMBERS = (
    *(0, 1, 2, 3, 7, 8, 63, 64, 127, 128, 255, 256, 4095, 4096, 65_535),
    *(2**shift + more for shift in (16, 24, 31, 32, 40, 45, 47, 48, 62, 63, 64) for more in (-1, 0, 1)),
    *(-1, -2, -8, -4096, -(2**31), -(2**45), -(2**63)),
)


def put(data: bytearray, at: int, value: int, size: int = 8) -> None:
    """Write a number, cut to its size."""
    if 0 <= at <= len(data) - size:
        data[at : at + size] = (value % 2 ** (8 * size)).to_bytes(size, "little")


def number(data: bytes | bytearray, at: int, size: int, dice: random.Random) -> int:
    """Return an edge case, or the number at this position changed a little."""
    if dice.random() < 0.6:
        return dice.choice(NUMBERS)
    old = int.from_bytes(data[at : at + size], "little")
    return dice.choice(
        (old + 1, old - 1, old * 2, old // 2, old + 8, old - 8, old ^ 1 << dice.randrange(8 * size), -old)
    )


def any_word(data: bytearray, start: int, stop: int, dice: random.Random) -> None:
    """Change one number of 1 to 8 bytes, at a multiple of its size."""
    size = dice.choice((1, 2, 4, 8))
    at = dice.randrange(start, max(start + 1, stop)) // size * size
    put(data, at, number(data, at, size, dice), size)
