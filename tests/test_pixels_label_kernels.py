"""Labels have the same classes, counts and refusals with and without the kernels."""

from __future__ import annotations

import subprocess
from typing import Any
from unittest import mock

import numpy as np
import pytest
from handmade import chunk, encoded_as, png
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from program import command

from packer.decoding.decode import read_label
from packer.errors import BadPair, UsageError
from packer.pixels import class_picture, stored_label
from packer.pixels.choices import FITS
from packer.pixels.class_picture import ClassPicture
from packer.pixels.label_codec import LabelCodec
from packer.pixels.label_rules import LabelRules
from packer.pixels.resize import Geometry
from readers.contract.classes import ClassTable, Colour, SegClass

pytestmark = pytest.mark.skipif(class_picture.KERNEL is None, reason="the kernels are turned off or not compiled")

GRAY, RGB, PALETTE, GRAY_ALPHA, RGB_ALPHA = 0, 2, 3, 4, 6
CHANNELS = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGB_ALPHA: 4}
TONES = (0, 1, 2, 128, 255)
"""Few values for numbers and channels, so that pictures and tables share some."""
tones = st.sampled_from(TONES)


@st.composite
def tables(draw: st.DrawFn) -> ClassTable:
    """Classes with values, colours (some with an alpha), or both; a part of the pixels may be ignored."""
    has_values, has_colours = draw(st.sampled_from([(True, False), (False, True), (True, True)]))
    values = draw(st.permutations((0, 1, 2, 7, 128, 255))) if has_values else []
    drawn = draw(st.lists(st.tuples(tones, tones, tones) | st.tuples(tones, tones, tones, tones), min_size=1))
    colours: list[Colour] = list({(*colour, 255)[:4]: colour for colour in drawn}.values()) if has_colours else []
    count = draw(st.integers(1, 3))
    classes = tuple(
        SegClass(f"class {number}", None, tuple(values[number:-1:count]), tuple(colours[number::count]))
        for number in range(count)
    )
    return ClassTable(classes, ignored_values=tuple(values[-1:]))


@st.composite
def label_files(draw: st.DrawFn) -> bytes:
    """A PNG of any colour type of up to 8 bits, turned or not, with few numbers or colours in runs."""
    colour = draw(st.sampled_from(sorted(CHANNELS)))
    depth = draw(st.sampled_from([1, 2, 4, 8])) if CHANNELS[colour] == 1 else 8
    height, width = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    dice = np.random.default_rng(draw(st.integers(0, 999)))
    palette = dice.choice(TONES, (int(dice.integers(1, 6)), CHANNELS[colour]))
    numbers = np.repeat(dice.integers(0, len(palette), (height, width)), 8, axis=1)
    pixels = palette[numbers].astype(np.uint8)
    if depth < 8:
        bits = np.unpackbits(pixels.reshape(height, -1, 1), axis=2)[..., 8 - depth :]
        rows = np.packbits(bits.reshape(height, -1), axis=1)
    else:
        rows = pixels.reshape(height, -1)
    extra = []
    if colour == PALETTE:
        size = draw(st.sampled_from([2, 3, 256]))
        extra.append(chunk(b"PLTE", dice.choice(TONES, (size, 3)).astype(np.uint8).tobytes()))
    if draw(st.booleans()):
        extra.append(chunk(b"tRNS", dice.choice(TONES, draw(st.sampled_from([1, 2, 6]))).astype(np.uint8).tobytes()))
    if draw(st.booleans()):
        turn = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0" + bytes([draw(st.integers(1, 8))]) + bytes(7)
        extra.append(chunk(b"eXIf", turn))
    return png(rows, depth, colour, *extra)


RULES = (
    *(LabelRules("auto", unknown) for unknown in ("error", "ignore")),
    *(LabelRules("index", unknown) for unknown in ("error", "ignore")),
    *(LabelRules("colour", unknown) for unknown in ("error", "ignore", "nearest")),
    *(LabelRules("binary", unknown) for unknown in ("error", "ignore")),
    LabelRules("binary", threshold=128),
    LabelRules("ade20k"),
    LabelRules("instance", divisor=1000),
    LabelRules("instance", divisor=256),
)


def read(codec: LabelCodec, data: bytes) -> Any:
    try:
        return codec.read(data)
    except BadPair as bad:
        return str(bad)


@given(tables(), st.sampled_from(RULES), label_files())
def test_every_codec_reads_the_same(table: ClassTable, rules: LabelRules, data: bytes) -> None:
    try:
        codec = LabelCodec(table, rules)
    except UsageError:  # rules and table that do not fit are refused before any label is read
        return
    ours = read(codec, data)
    with mock.patch.object(class_picture, "KERNEL", None):
        expected = read(codec, data)
    if isinstance(expected, str):
        assert ours == expected
    else:
        assert expected.classes is None
        assert np.array_equal(ours.index(), expected.index())


@pytest.mark.parametrize("colours", [255, 256, 257, 5000])
def test_more_colours_than_numbers_are_read_one_by_one(colours: int) -> None:
    codes = np.arange(colours) * 977
    pixels = np.stack([codes >> 16 & 255, codes >> 8 & 255, codes & 255], -1).astype(np.uint8)
    picture = np.ascontiguousarray(np.stack([pixels, pixels[::-1]]))
    codec = LabelCodec(ClassTable((SegClass("all", colours=((0, 0, 0),)),)), LabelRules("colour", "nearest"))
    found = codec.read(encoded_as(".png", picture))
    assert (found.classes is None) == (colours > 256)
    assert not found.index().any()


def test_a_label_is_judged_once_for_each_number() -> None:
    sizes = []
    label = read_label(png(np.arange(60, dtype=np.uint8).reshape(6, 10) % 5, 8, 0))

    def judge(label: Any) -> Any:
        sizes.append(label.stored.numbers.shape)
        return label.stored.numbers.astype(np.uint16)

    class_picture.classify(label, judge)
    assert sizes == [(1, 5)]


@st.composite
def geometries(draw: st.DrawFn) -> Geometry:
    fit = draw(st.sampled_from(FITS))
    size = None if fit == "native" else (draw(st.integers(1, 40)), draw(st.integers(1, 40)))
    if size is None or fit != "tile":
        return Geometry(size, fit)
    return Geometry(
        size, fit, overlap=draw(st.integers(0, min(size) - 1)), edge=draw(st.sampled_from(["pad", "shift"]))
    )


@given(geometries(), st.data())
def test_the_stored_label_and_its_counts_are_the_same(geometry: Geometry, data: st.DataObject) -> None:
    height, width = data.draw(st.integers(1, 100)), data.draw(st.integers(1, 100))
    dice = np.random.default_rng(data.draw(st.integers(0, 999)))
    classes = data.draw(st.sampled_from([1, 7, 255]))
    table = dice.choice([*range(min(classes, 9)), classes - 1, 0xFFFF], 256).astype(np.uint16)
    numbers = np.repeat(dice.integers(0, 256, (height, width)), int(dice.integers(1, 9)), axis=1)[:, :width]
    picture = ClassPicture(numbers.astype(np.uint8), table)
    dtype = "uint8" if data.draw(st.booleans()) else "uint16"
    for origin in geometry.origins(picture.shape):
        size = geometry.size or picture.shape
        ours, expected = np.full((size[0], size[1] + 3), 77, dtype), np.empty(size, dtype)
        counts = stored_label.store(picture, geometry, origin, classes, ours[:, :-3])
        with mock.patch.object(stored_label, "KERNEL", None):
            assert counts == stored_label.store(picture, geometry, origin, classes, expected)
        assert np.array_equal(ours[:, :-3], expected)
        assert (ours[:, -3:] == 77).all()


PIXELS = np.zeros((2, 6), np.uint8)
LINES = np.zeros(2, np.int64)
SHORT = LINES.astype(np.int32)
TABLE, COUNTS = np.zeros(256, np.uint8), np.zeros(256, np.int64)


@pytest.mark.parametrize(
    ("function", "arguments", "words"),
    [
        ("numbers", (PIXELS, np.zeros(255, np.uint8)), "expected 256 bytes"),
        ("numbers", (PIXELS[:, ::2], np.zeros(256, np.uint8)), "pixels: expected 2 axes"),
        ("colours", (PIXELS, np.zeros((2, 3), np.uint8), np.zeros(768, np.uint8)), "not as large"),
        ("colours", (PIXELS, np.zeros((1, 2), np.uint8), np.zeros(768, np.uint8)), "not as large"),
        ("colours", (PIXELS[:, :5], np.zeros((2, 1), np.uint8), np.zeros(768, np.uint8)), "not as large"),
        ("colours", (PIXELS, np.zeros((2, 2), np.uint8), np.zeros(767, np.uint8)), "no room"),
        ("sample", (PIXELS, TABLE, LINES, LINES, np.zeros((2, 3), np.uint8), COUNTS), "not one pixel"),
        ("sample", (PIXELS, TABLE, LINES + 2, LINES, np.zeros((2, 2), np.uint8), COUNTS), "not one pixel"),
        ("sample", (PIXELS, TABLE, LINES, LINES - 1, np.zeros((2, 2), np.uint8), COUNTS), "not one pixel"),
        ("sample", (PIXELS, TABLE[1:], LINES, LINES, np.zeros((2, 2), np.uint8), COUNTS), "expected 256 numbers"),
        ("sample", (PIXELS, TABLE, LINES, LINES, np.zeros((2, 2), np.uint8), COUNTS[1:]), "expected 256 numbers"),
        (
            "sample",
            (PIXELS, TABLE, SHORT, LINES, np.zeros((2, 2), np.uint8), COUNTS),
            "rows: expected",
        ),
    ],
)
def test_bad_arguments_are_refused(function: str, arguments: tuple[NDArray[Any], ...], words: str) -> None:
    kernel = stored_label.KERNEL if function == "sample" else class_picture.KERNEL
    with pytest.raises(ValueError, match=words):
        getattr(kernel, function)(*arguments)


def test_the_bench_has_a_line_for_each_kind_of_file() -> None:
    done = subprocess.run(
        command("bench.png_files", "--rounds", 1, "--size", "96x72"), capture_output=True, text=True, check=True
    )
    assert len(done.stdout.splitlines()) == 9
