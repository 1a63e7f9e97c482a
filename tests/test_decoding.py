"""Pictures are decoded exactly and upright, or refused with a reason."""

from __future__ import annotations

import struct
from dataclasses import replace
from io import BytesIO
from typing import Any

import cv2
import numpy as np
import pytest
from conftest import COLOURS, NAMES, opencv_rgb, scene
from handmade import chunk, encoded, exif, png
from numpy.typing import NDArray

from packer.decoding import decode
from packer.decoding.decode import decode_label, decoder_identity
from packer.decoding.file_types import read_header
from packer.decoding.rules import ImageRules
from packer.errors import BadPair
from packer.pixels.class_lookup import IGNORE
from packer.pixels.label_codec import LabelCodec
from packer.pixels.label_rules import LabelRules
from readers.contract.classes import ClassTable, SegClass

IMAGE, INDEX = scene(7, 33, 47)
GRAYS = ClassTable((SegClass("black", None, (), ((0, 0, 0),)), SegClass("white", None, (), ((255, 255, 255),))))


def decode_image(data: bytes, **rules: Any) -> NDArray[Any]:
    return decode.decode_image(data, ImageRules(**rules))


def table(ignore: tuple[int, ...] = ()) -> ClassTable:
    colours = [(int(r), int(g), int(b)) for r, g, b in COLOURS]
    classes = [SegClass(name, colour, (), (colour,)) for name, colour in zip(NAMES, colours, strict=True)]
    return ClassTable(tuple(classes), ignore)


def values(*numbers: int, ignore: tuple[int, ...] = ()) -> ClassTable:
    return ClassTable(tuple(SegClass(f"v{number}", None, (number,)) for number in numbers), ignore)


def test_a_colour_png_and_its_gray_twin() -> None:
    assert np.array_equal(decode_image(png(IMAGE.reshape(33, -1), 8, 2)), IMAGE)
    gray = decode_image(png(INDEX, 8, 0))
    assert np.array_equal(gray, np.stack([INDEX] * 3, -1))


@pytest.mark.parametrize("depth", [1, 2, 4, 8])
@pytest.mark.parametrize("colour", [0, 3])
def test_label_values_of_any_depth_gray_or_palette_are_the_numbers_in_the_file(depth: int, colour: int) -> None:
    numbers = np.random.default_rng(depth).integers(0, 2**depth, (9, 16), dtype=np.uint8)
    bits = np.unpackbits(numbers[..., None], axis=-1)[..., 8 - depth :].reshape(9, -1)
    palette = chunk(b"PLTE", bytes(range(255, 255 - 3 * min(85, 2**depth), -1)) + b"\0" * (3 * max(0, 2**depth - 85)))
    data = png(np.packbits(bits, axis=-1), depth, colour, *([palette] if colour == 3 else []))
    assert np.array_equal(decode_label(data, as_index=True), numbers)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_turned_upright_by_their_own_tag(orientation: int) -> None:
    upright = decode_image(png(IMAGE.reshape(33, -1), 8, 2))
    stored = upright  # undo what a viewer would do, step by step
    stored = stored[::-1] if orientation in (3, 4, 7, 8) else stored
    stored = stored[:, ::-1] if orientation in (2, 3, 6, 7) else stored
    stored = np.ascontiguousarray(stored.swapaxes(0, 1) if orientation >= 5 else stored)
    tag = exif(orientation)
    turned = png(stored.reshape(stored.shape[0], -1), 8, 2, chunk(b"eXIf", tag))
    assert np.array_equal(decode_image(turned), upright)
    assert read_header(BytesIO(turned)).size == upright.shape[:2]
    jpeg = encoded(".jpg", stored[..., ::-1])
    block = b"Exif\0\0" + tag
    tagged = jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block + jpeg[2:]
    assert read_header(BytesIO(tagged)).orientation == orientation
    ours = decode_image(tagged)
    assert np.array_equal(ours, opencv_rgb(tagged))
    assert read_header(BytesIO(tagged)).size == ours.shape[:2]


def test_an_opaque_alpha_is_dropped_and_a_real_one_refused() -> None:
    alpha = np.full((33, 47, 1), 255, np.uint8)
    opaque = np.concatenate([IMAGE, alpha], -1)
    assert np.array_equal(decode_image(png(opaque.reshape(33, -1), 8, 6)), IMAGE)
    opaque[3, 4, 3] = 254
    with pytest.raises(BadPair, match="transparent"):
        decode_image(png(opaque.reshape(33, -1), 8, 6))


BOMB = (
    b"\x89PNG\r\n\x1a\n"
    + chunk(b"IHDR", struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0))
    + chunk(b"IDAT", b"")
    + chunk(b"IEND", b"")
)
REFUSED: list[tuple[str, bytes, str]] = [
    ("nothing", b"", "is empty"),
    ("text", b"hello world, no picture", "is not a PNG, JPEG, TIFF, JPEG 2000, BMP, WebP or npy"),
    ("16-bit image", png(np.zeros((2, 12), np.uint8), 16, 2), "16 bits per channel"),
    ("bomb", BOMB, "claims 60000x60000 pixels; 1 to 268435456 are allowed"),
    ("no pixels", png(np.zeros((0, 3), np.uint8), 8, 2), "claims 1x0 pixels"),
    ("wrong checksum", png(INDEX, 8, 0).replace(b"IEND\xaeB`\x82", b"IEND\xaeB`\x83"), "checksum of its chunk 'IEND'"),
    ("odd depth", png(INDEX, 8, 0)[:24] + b"\x03" + png(INDEX, 8, 0)[25:], "3 bits"),
    ("segment without length", b"\xff\xd8\xff\xe2\0\0" + b"\0" * 99, "a segment has no length"),
    ("jpeg without frame", b"\xff\xd8\xff\xd9", "no frame header|within its header"),
]


@pytest.mark.parametrize(("data", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_cannot_be_packed_is_refused_with_the_reason(data: bytes, message: str) -> None:
    with pytest.raises(BadPair, match=message):
        decode_image(data)


def test_unknown_colours_are_named_with_count_and_position() -> None:
    label = COLOURS[INDEX].copy()
    label[5, 8] = label[20, 3] = (1, 2, 3)
    label[30, 40] = (9, 9, 9)
    data = png(label.reshape(33, -1), 8, 2)
    with pytest.raises(BadPair) as caught:
        LabelCodec(table()).decode(data)
    assert "colours in no class (#010203: 2 pixels, first at row 5, column 8; #090909: 1 pixels" in str(caught.value)
    assert "first at row 30, column 40" in str(caught.value)
    ignored = LabelCodec(table(), LabelRules(unknown="ignore")).decode(data)
    assert (ignored == IGNORE).sum() == 3
    assert np.array_equal(ignored[ignored != IGNORE], INDEX[ignored != IGNORE])


def test_unknown_values_are_named_and_ignored_ones_are_not_classes() -> None:
    data = png(INDEX, 8, 0)
    with pytest.raises(BadPair, match=r"a value in no class \(3: \d+ pixels, first at row"):
        LabelCodec(values(0, 1, 2)).decode(data)
    index = LabelCodec(values(0, 1, 2, ignore=(3,))).decode(data)
    assert np.array_equal(index == IGNORE, INDEX == 3)


def test_many_unknown_values_are_cut_to_the_commonest() -> None:
    with pytest.raises(BadPair, match="and 250 more"):
        LabelCodec(values(0)).decode(png(np.arange(256, dtype=np.uint8).reshape(16, 16), 8, 0))


def test_several_values_may_belong_to_one_class() -> None:
    both = ClassTable((SegClass("low", None, (0, 1)), SegClass("high", None, (2, 3))))
    assert np.array_equal(LabelCodec(both).decode(png(INDEX, 8, 0)), INDEX // 2)


def test_gray_labels_of_a_colour_table_are_gray_colours() -> None:
    label = (INDEX % 2 * 255).astype(np.uint8)
    assert np.array_equal(LabelCodec(GRAYS).decode(png(label, 8, 0)), INDEX % 2)


def test_a_table_of_both_reads_numbers_as_values_and_colours_as_colours() -> None:
    both = ClassTable((SegClass("x", (7, 7, 7), (2,), ((7, 7, 7),)), SegClass("y", (2, 2, 2), (7,), ((2, 2, 2),))))
    codec = LabelCodec(both)
    gray = np.full((2, 2), 7, np.uint8)
    assert (codec.decode(png(gray, 8, 0)) == 1).all()
    assert (codec.decode(png(np.repeat(gray, 3, 1), 8, 2)) == 0).all()


def test_the_decoders_are_named_with_their_versions() -> None:
    assert f"opencv {cv2.__version__}" in decoder_identity()
    assert "unknown" not in decoder_identity()


@pytest.mark.parametrize("where", ["RGB, empty", "RGB, wrong length", "palette, before PLTE", "palette, too long"])
def test_a_broken_transparency_never_swaps_red_and_blue(where: str) -> None:
    """libpng drops such a chunk with a warning; OpenCV then returns the channels in a different order."""
    rgb = np.full((4, 4, 3), (200, 100, 50), np.uint8)
    palette, index = chunk(b"PLTE", bytes((200, 100, 50))), np.zeros((4, 4), np.uint8)
    data = {
        "RGB, empty": png(rgb.reshape(4, -1), 8, 2, chunk(b"tRNS", b"")),
        "RGB, wrong length": png(rgb.reshape(4, -1), 8, 2, chunk(b"tRNS", b"\0\1")),
        "palette, before PLTE": png(index, 8, 3, chunk(b"tRNS", b"\xff"), palette),
        "palette, too long": png(index, 8, 3, palette, chunk(b"tRNS", b"\xff" * 9)),
    }[where]
    assert np.array_equal(decode_image(data), rgb)


def test_transparent_pixels_are_refused_in_every_kind_of_png() -> None:
    gray = np.array([[0, 1], [2, 3]], np.uint8)
    palette = chunk(b"PLTE", bytes(range(12)))
    for data in (
        png(gray, 8, 0, chunk(b"tRNS", b"\0\2")),
        png(np.repeat(gray, 3, 1), 8, 2, chunk(b"tRNS", b"\0\2" * 3)),
        png(gray, 8, 3, palette, chunk(b"tRNS", b"\xff\xff\0")),
    ):
        with pytest.raises(BadPair, match="transparent"):
            decode_image(data)
    assert decode_image(png(gray, 8, 0, chunk(b"tRNS", b"\0\7"))).shape == (2, 2, 3)
    assert np.array_equal(decode_label(png(gray, 8, 0, chunk(b"tRNS", b"\0\2")), as_index=True), gray)


def test_an_index_beyond_the_palette_is_refused() -> None:
    data = png(np.full((2, 2), 5, np.uint8), 8, 3, chunk(b"PLTE", bytes(6)))
    with pytest.raises(BadPair, match="uses index 5 of a palette with 2"):
        decode_label(data, as_index=False)
    assert (decode_label(data, as_index=True) == 5).all()


@pytest.mark.parametrize("segment", [b"\xff\xe1", b"\xff\xfe"])
def test_an_end_marker_inside_a_thumbnail_or_comment_does_not_end_a_jpeg(segment: bytes) -> None:
    whole = encoded(".jpg", cv2.GaussianBlur(IMAGE, (0, 0), 3))
    inside = b"Exif\0\0" + whole
    data = whole[:2] + segment + struct.pack(">H", len(inside) + 2) + inside + whole[2:]
    decode_image(data)
    decode_image(data + b"\0" * 100_000)  # a film behind the photo
    for length in range(len(data) - len(whole) + 2, len(data) - 1, 29):
        for tail in (b"", b"\0" * (len(data) - length)):
            with pytest.raises(BadPair):
                decode_image(data[:length] + tail)


def test_orientations_written_another_way_count_as_well() -> None:
    rgb = IMAGE.reshape(33, -1)
    long_tag = b"MM\0*\0\0\0\x08\0\x01" + struct.pack(">HHII", 0x0112, 4, 1, 6) + b"\0\0\0\0"
    for tag in (exif(6), b"Exif\0\0" + exif(6), long_tag):
        assert read_header(BytesIO(png(rgb, 8, 2, chunk(b"eXIf", tag)))).orientation == 6
    plain = png(rgb, 8, 2)
    late = plain[:-12] + chunk(b"eXIf", exif(6)) + plain[-12:]
    assert read_header(BytesIO(late)).orientation == 6
    assert decode_image(late).shape == (47, 33, 3)
    jpeg = encoded(".jpg", IMAGE)
    first, second = (b"Exif\0\0" + exif(value) for value in (6, 1))
    blocks = b"".join(b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block for block in (first, second))
    assert read_header(BytesIO(jpeg[:2] + blocks + jpeg[2:])).orientation == 6


def test_black_and_white_of_one_bit_are_colours_for_a_colour_table() -> None:
    bits = np.random.default_rng(0).integers(0, 2, (4, 16), dtype=np.uint8)
    assert np.array_equal(LabelCodec(GRAYS).decode(png(np.packbits(bits, axis=-1), 1, 0)), bits)


def test_an_ignored_value_wins_over_a_gray_colour() -> None:
    index = LabelCodec(replace(GRAYS, ignored_values=(255,))).decode(png((INDEX % 2 * 255).astype(np.uint8), 8, 0))
    assert np.array_equal(index == IGNORE, INDEX % 2 == 1)


SMOOTH_JPEG = encoded(".jpg", cv2.GaussianBlur(IMAGE, (0, 0), 3))


@pytest.mark.parametrize("parts", [b"\3\1", b"\0\0", b"\1\2"], ids=["part 3 of 1", "part 0 of 0", "part 2 missing"])
def test_a_jpeg_with_a_broken_colour_profile_has_its_pixels(parts: bytes) -> None:
    profile = b"ICC_PROFILE\0" + parts + bytes(50)
    segment = b"\xff\xe2" + struct.pack(">H", len(profile) + 2) + profile
    data = SMOOTH_JPEG[:2] + segment + SMOOTH_JPEG[2:]
    assert np.array_equal(decode_image(data), decode_image(SMOOTH_JPEG))
    for length in range(len(data) - len(SMOOTH_JPEG) + 2, len(data) - 1, 29):
        with pytest.raises(BadPair):
            decode_image(data[:length])


def test_a_jpeg_with_an_unknown_revision_of_jfif_has_its_pixels() -> None:
    revision = SMOOTH_JPEG.index(b"JFIF\0") + 5
    data = SMOOTH_JPEG[:revision] + b"\2\1" + SMOOTH_JPEG[revision + 2 :]
    assert np.array_equal(decode_image(data), decode_image(SMOOTH_JPEG))
    with pytest.raises(BadPair):
        decode_image(data[: len(data) // 2] + b"\xff\xd9")


@pytest.mark.parametrize(
    ("sampling", "message"),
    [
        (0x33, "is a JPEG with a rare chroma subsampling; convert it to PNG"),
        (0x12, "is damaged, or just has bytes that belong to no pixel .*; look at it"),
    ],
)
def test_a_jpeg_that_may_be_whole_gets_words_that_say_so(sampling: int, message: str) -> None:
    data = bytearray(SMOOTH_JPEG)
    data[data.index(b"\xff\xc0") + 11] = sampling
    with pytest.raises(BadPair, match=message):
        decode_image(bytes(data))
