"""A PNG with more pixel data than its size needs is refused, with and without the kernel."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest
from conftest import scene
from handmade import chunk

from packer.decoding import plain_png
from packer.decoding.decode import decode_image, decode_label
from packer.decoding.rules import ImageRules
from packer.errors import BadPair

INDEX = scene(7, 33, 47)[1]
LINES = b"".join(b"\0" + row.tobytes() for row in INDEX)
MORE = "holds more pixel data than a picture of its size"
STARTS = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))
"""The first row and column of the passes of Adam7, and their steps."""


def picture(
    stream: bytes, height: int = 33, width: int = 47, depth: int = 8, colour: int = 0, passes: int = 0
) -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, passes))
    parts = [chunk(b"IDAT", stream[start : start + 4096]) for start in range(0, len(stream), 4096)]
    return b"".join([b"\x89PNG\r\n\x1a\n", head, *parts, chunk(b"IEND", b"")])


@pytest.fixture(params=[True, False], ids=["kernel", "no kernel"], autouse=True)
def _with_or_without_kernel(request: pytest.FixtureRequest) -> Iterator[None]:
    kernel = plain_png.KERNEL if request.param else None
    with mock.patch.object(plain_png, "KERNEL", kernel):
        yield


@pytest.mark.parametrize("behind", [b"\0", LINES, bytes(1 << 20)])
def test_a_png_with_more_pixels_than_its_size_needs_is_refused(behind: bytes) -> None:
    assert np.array_equal(decode_label(picture(zlib.compress(LINES)), as_index=True), INDEX)
    for stream in (zlib.compress(LINES + behind), zlib.compress(LINES) + behind):
        with pytest.raises(BadPair, match=MORE):
            decode_label(picture(stream), as_index=True)


def test_fifty_mebibytes_too_much_take_no_memory() -> None:
    data = picture(zlib.compress(LINES + bytes(50 << 20)))
    tracemalloc.start()
    try:
        with pytest.raises(BadPair, match=MORE):
            decode_label(data, as_index=True)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_pictures_of_every_depth_and_order_have_their_length() -> None:
    for depth, colour, channels in ((1, 0, 1), (4, 0, 1), (8, 2, 3), (16, 0, 1), (16, 6, 4)):
        for height, width in ((1, 1), (1, 9), (2, 3), (5, 4), (8, 8), (9, 13)):
            grid = np.zeros((height, width))
            for passes in (0, 1):
                parts = [grid[y::down, x::right] for y, x, down, right in STARTS] if passes else [grid]
                rows = [(len(part), (part.shape[1] * depth * channels + 7) // 8) for part in parts if part.size]
                lines = bytes(sum(count * (1 + row) for count, row in rows))
                rules = ImageRules((0, 65535), "drop")
                whole = picture(zlib.compress(lines), height, width, depth, colour, passes)
                assert decode_image(whole, rules).shape == (height, width, 3)
                for stream in (zlib.compress(lines + b"\0"), zlib.compress(lines) + b"\0"):
                    with pytest.raises(BadPair, match=MORE):
                        decode_image(picture(stream, height, width, depth, colour, passes), rules)
                with pytest.raises(BadPair):
                    decode_image(picture(zlib.compress(lines[:-1]), height, width, depth, colour, passes), rules)
