"""LZW of TIFF is unpacked as the textbook does it, code by code, and damage is refused at the same code."""

from __future__ import annotations

import io
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from packer.decoding.decode import decode_image, decode_label
from packer.decoding.rules import ImageRules
from packer.decoding.tiff import lzw
from packer.decoding.tiff.lzw import CLEAR, END, unpack_lzw
from packer.errors import BadPair

RNG = np.random.default_rng(13)
NOISE = RNG.integers(0, 256, (61, 67, 3), np.uint8)
STRIPES = np.repeat(np.arange(40, dtype=np.uint8), 977).reshape(40, 977)
FLAT = np.zeros((300, 401), np.uint8)
PICTURES = pytest.mark.parametrize(
    "pixels", [NOISE, STRIPES, FLAT, FLAT[:1, :1]], ids=["noise", "stripes", "flat", "1x1"]
)


def textbook_lzw(block: bytes, size: int) -> bytes:
    """Unpack bit by bit, with a table of words; a tenth as fast as the decoder."""
    literals = [bytes((value,)) for value in range(256)] + [b"", b""]
    raw, table, previous, bits, held, width = b"", list(literals), b"", 0, 0, 9
    for byte in block:
        bits, held = (bits << 8 | byte) & 0xFFFFFF, held + 8
        if held < width:
            continue
        held -= width
        code = bits >> held & (1 << width) - 1
        if code == CLEAR:
            table, previous, width = list(literals), b"", 9
            continue
        if code == END or len(raw) >= size:
            break
        if code > len(table) or (code == len(table) and not previous):
            raise BadPair("is damaged: its LZW has a code that is not known yet")
        word = table[code] if code < len(table) else previous + previous[:1]
        raw += word
        if previous:
            table.append(previous + word[:1])
            width = min(12, (len(table) + 1).bit_length())
        previous = word
    return raw


def lzw_strip(pixels: NDArray[np.uint8]) -> tuple[bytes, int]:
    """Return the first strip of a TIFF with these pixels, and its unpacked size."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "TIFF", compression="tiff_lzw")
    tags = Image.open(file).tag_v2  # type: ignore[attr-defined]
    offset, count, rows = tags[273][0], tags[279][0], min(tags[278], len(pixels))
    return file.getvalue()[offset : offset + count], pixels[:rows].size


def unpacked(unpack: object, block: bytes, size: int) -> bytes | str:
    """Return the first `size` bytes, or why there are fewer."""
    assert callable(unpack)
    try:
        raw: bytes = unpack(block, size)
    except BadPair as bad:
        return str(bad)
    return raw[:size] if len(raw) >= size else "short"


@PICTURES
def test_a_tiff_with_lzw_is_decoded_exactly(pixels: NDArray[np.uint8]) -> None:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "TIFF", compression="tiff_lzw")
    data = file.getvalue()
    decoded = decode_image(data, ImageRules()) if pixels.ndim == 3 else decode_label(data, as_index=True)
    assert np.array_equal(decoded, pixels)


@PICTURES
@pytest.mark.parametrize("damage", ["bit", "cut", "hole", "random"])
def test_damaged_lzw_ends_as_the_textbook_says(pixels: NDArray[np.uint8], damage: str) -> None:
    whole, size = lzw_strip(pixels)
    for _ in range(40):
        block, index = bytearray(whole), int(RNG.integers(len(whole)))
        if damage == "bit":
            block[index] ^= 1 << int(RNG.integers(8))
        elif damage == "cut":
            del block[index:]
        elif damage == "hole":
            block[index : index + 20] = bytes(len(block[index : index + 20]))
        else:
            block = bytearray(RNG.bytes(index))
        assert unpacked(unpack_lzw, bytes(block), size) == unpacked(textbook_lzw, bytes(block), size)


def test_lzw_that_never_clears_its_table_is_refused() -> None:
    """The table is full after 3,838 codes; TIFF demands a CLEAR there, and libtiff refuses a file without it, too."""
    codes = [CLEAR, *[65] * 6000, END]
    widths = [9, *(min(12, (258 + index).bit_length()) for index in range(6001))]
    bits = "".join(f"{code:0{width}b}" for code, width in zip(codes, widths, strict=True))
    block = int(bits.ljust(-(-len(bits) // 8) * 8, "0"), 2).to_bytes(-(-len(bits) // 8), "big")
    assert unpack_lzw(block, 4000)[:4000] == b"A" * 4000
    assert len(unpack_lzw(block, 6000)) < 6000


@given(st.binary(max_size=400), st.integers(0, 3000), st.booleans())
def test_the_kernel_unpacks_what_python_unpacks(block: bytes, size: int, clears: bool) -> None:
    """A random stream meets an unknown code soon; one of low codes goes on."""
    if clears:
        block = bytes(byte & 0x7F for byte in block)
    unpacks = []
    for module in (lzw.KERNEL, None):
        with mock.patch.object(lzw, "KERNEL", module):
            unpacks.append(unpacked(lambda *asked: unpack_lzw(*asked)[:size], block, size))
    assert unpacks[0] == unpacks[1]


@pytest.mark.skipif(lzw.KERNEL is None, reason="the kernels are turned off or not compiled")
def test_the_kernel_refuses_buffers_that_do_not_fit() -> None:
    assert lzw.KERNEL is not None
    both = bytearray(20)
    for block, out in (
        (b"", b"read only"),
        ("text", bytearray(9)),
        (both, memoryview(both)[5:]),
        (b"", np.zeros((3, 3), np.uint8)),
        (b"", np.zeros(9, np.uint16)),
        (b"", np.zeros(9, np.uint8)[::2]),
    ):
        with pytest.raises((ValueError, TypeError, BufferError)):
            lzw.KERNEL.unpack(block, out)
    assert lzw.KERNEL.unpack(b"", bytearray()) == 0
