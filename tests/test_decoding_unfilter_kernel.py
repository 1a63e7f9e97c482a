"""A plain PNG has the same pixels with and without the kernel; any other is judged by OpenCV, in the same words."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import cv2
import numpy as np
import pytest
from conftest import scene
from drills.png_cases import random_png
from handmade import chunk, encoded_as
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from packer.decoding import opencv, plain_png
from packer.decoding.decode import decode_image, decode_label
from packer.decoding.rules import ImageRules
from packer.errors import BadPair

pytestmark = pytest.mark.skipif(plain_png.KERNEL is None, reason="the kernels are turned off or not compiled")

IMAGE, INDEX = scene(7, 33, 47)
HEAD = struct.pack(">IIBBBBB", 47, 33, 8, 2, 0, 0, 0)
RULES = ImageRules(alpha="drop", image_range=(0, 255))


def picture(head: bytes, *stream: bytes, end: bytes = b"") -> bytes:
    parts = [chunk(b"IHDR", head), *(chunk(b"IDAT", part) for part in stream), chunk(b"IEND", end)]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def readings(data: bytes) -> list[Any]:
    """Return what the file is as an image and as a label, or why it is refused."""
    found: list[Any] = []
    for read in (
        lambda: decode_image(data, RULES),
        lambda: decode_label(data, as_index=True),
        lambda: decode_label(data, as_index=False),
    ):
        try:
            found.append(read())
        except BadPair as bad:
            found.append(str(bad))
    return found


def same(data: bytes) -> bool:
    """Return whether the kernel and OpenCV make the same of a file."""
    with mock.patch.object(plain_png, "KERNEL", None):
        expected = readings(data)
    return all(
        type(our) is type(other) and (our == other if isinstance(our, str) else np.array_equal(our, other))
        for our, other in zip(readings(data), expected, strict=True)
    )


@contextmanager
def without_opencv() -> Iterator[None]:
    with mock.patch.object(opencv, "decode", side_effect=AssertionError("OpenCV decoded it")):
        yield


@given(st.integers(0, 2**32))
def test_any_png_is_the_same_with_and_without_the_kernel(seed: int) -> None:
    assert same(random_png(np.random.default_rng(seed)))


@given(st.integers(0, 2**32))
def test_any_damaged_png_is_judged_by_the_same_words(seed: int) -> None:
    assert same(random_png(np.random.default_rng(seed), damaged=True))


@pytest.mark.parametrize("filters", [cv2.IMWRITE_PNG_FILTER_NONE << step for step in range(5)])
@pytest.mark.parametrize("pixels", [INDEX, IMAGE, np.dstack([IMAGE, INDEX])], ids=["gray", "RGB", "RGBA"])
def test_plain_pngs_need_no_opencv(pixels: NDArray[np.uint8], filters: int) -> None:
    data = encoded_as(".png", pixels, cv2.IMWRITE_PNG_FILTER, filters)
    with without_opencv():
        assert np.array_equal(decode_image(data, ImageRules(alpha="drop"))[..., 0], np.atleast_3d(pixels)[..., 0])


RASTER = b"".join(b"\0" + row.tobytes() for row in IMAGE)
TWICE = (RASTER[: 142 * 16] * 3)[: len(RASTER)]
"""Its second half refers back by 2272 bytes, more than some windows have."""


def with_window(stream: bytes, size: int) -> bytes:
    """Claim a window of 256 << size bytes in the first two bytes of a stream."""
    first = 8 | size << 4
    return bytes([first, -(first << 8) % 31]) + stream[2:]


STREAM = zlib.compress(RASTER)
NOT_PLAIN = {
    **{f"window {256 << size}": picture(HEAD, with_window(zlib.compress(TWICE, 9), size)) for size in range(5)},
    "wrong length of IHDR": picture(HEAD + b"\0", STREAM),
    "unknown compression": picture(HEAD[:10] + b"\1" + HEAD[11:], STREAM),
    "unknown filters": picture(HEAD[:11] + b"\1" + HEAD[12:], STREAM),
    "interlaced": picture(HEAD[:12] + b"\1", STREAM),
    "a byte too few": picture(HEAD, zlib.compress(RASTER[:-1])),
    "wrong checksum": picture(HEAD, STREAM[:-1] + bytes([STREAM[-1] ^ 1])),
    "no stream": picture(HEAD, b""),
    "a filter that no PNG has": picture(HEAD, zlib.compress(b"\5" + RASTER[1:])),
    "longer than libpng allows": picture(
        struct.pack(">IIBBBBB", 1_000_001, 1, 8, 0, 0, 0, 0), zlib.compress(bytes(1_000_002))
    ),
}


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_what_is_not_plain_is_left_to_opencv(name: str) -> None:
    data = NOT_PLAIN[name]
    assert same(data)
    with without_opencv(), pytest.raises(AssertionError, match="OpenCV decoded it"):
        decode_image(data, RULES)


def test_a_long_stream_is_left_to_opencv(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inflated as a whole it would take as much memory again as the picture."""
    data = picture(HEAD, STREAM)
    monkeypatch.setattr(plain_png, "MOST_BYTES", len(RASTER))
    with without_opencv():
        decode_image(data, RULES)
    monkeypatch.setattr(plain_png, "MOST_BYTES", len(RASTER) - 1)
    with without_opencv(), pytest.raises(AssertionError, match="OpenCV decoded it"):
        decode_image(data, RULES)


OUT = np.zeros((2, 6), np.uint8)


@pytest.mark.parametrize(
    ("stream", "out", "depth", "pixel", "words"),
    [
        (bytes(13), OUT, 8, 3, "not the length"),
        (bytes(15), OUT, 8, 3, "not the length"),
        (bytes(21), OUT, 8, 3, "not the length"),
        (bytes(14), OUT, 8, 4, "not the length"),
        (bytes(14), OUT, 4, 1, "not the length"),
        (bytes(14), OUT, 8, 5, "no PNG"),
        (bytes(14), OUT, 8, 0, "no PNG"),
        (bytes(8), OUT, 4, 2, "no PNG"),
        (bytes(14), OUT, 3, 1, "no PNG"),
        (bytes(14), OUT, 0, 1, "no PNG"),
        (bytes(14), OUT[:, ::2], 8, 1, "out: expected 2 axes"),
        (bytes(14), OUT[0], 8, 1, "out: expected 2 axes"),
        (np.zeros(14, np.uint16), OUT, 8, 3, "stream: expected 1 axes"),
    ],
)
def test_bad_arguments_are_refused(stream: Any, out: NDArray[np.uint8], depth: int, pixel: int, words: str) -> None:
    assert plain_png.KERNEL is not None
    with pytest.raises(ValueError, match=words):
        plain_png.KERNEL.unfilter(stream, out, depth, pixel)
