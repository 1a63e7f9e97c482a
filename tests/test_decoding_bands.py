"""Pictures of 1 to 512 bands and of every type as they are stored: TIFF, npy, PNG, JPEG, WebP, BMP and arrays."""

from __future__ import annotations

import io
import json
import struct
from typing import Any, Literal

import cv2
import numpy as np
import pytest
from conftest import scene
from drills.band_files import ALPHA, DEFLATE, PACKBITS, array_file, blocks_tiff
from handmade import encoded_as, png, tiff
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from packer.decoding.band_choice import BandChoice, band_choice
from packer.decoding.bands import Bands, check_finite, read_bands
from packer.decoding.decode import decode_image, decode_label, header_of
from packer.decoding.file_types import read_header
from packer.decoding.rules import ImageRules
from packer.decoding.tiff.directory import directories
from packer.errors import BadPair
from readers.contract.json_entry import Entry

RULES, DROP = ImageRules(), ImageRules(alpha="drop")
DTYPES = ("|u1", "<u2", "<i2", "<f2", "<f4")
ALL = Bands()


def noise(shape: tuple[int, ...], dtype: str, seed: int = 0) -> NDArray[Any]:
    dice = np.random.default_rng(seed)
    if dtype[1] == "f":
        return (dice.standard_normal(shape) * 999).astype(dtype)
    limits = np.iinfo(dtype)
    return dice.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)


# TIFF


@given(
    st.integers(1, 30),
    st.integers(1, 40),
    st.integers(1, 16),
    st.sampled_from(DTYPES),
    st.sampled_from("<>"),
    st.booleans(),
    st.sampled_from([None, (16, 16), (16, 32)]),
    st.sampled_from([(1, 1), (DEFLATE, 1), (DEFLATE, 0), (PACKBITS, 1)]),
)
def test_every_pixel_of_every_band_of_a_tiff_is_exact(
    height: int,
    width: int,
    bands: int,
    dtype: str,
    order: Literal["<", ">"],
    planar: bool,
    tile: tuple[int, int] | None,
    way: tuple[int, int],
) -> None:
    pixels = noise((height, width, bands), dtype, height)
    compression, predictor = way
    predictor = predictor or (3 if dtype[1] == "f" else 2)
    data = blocks_tiff(pixels, order, planar, tile, compression=compression, predictor=predictor)
    found = read_bands(data, ALL, RULES)
    assert (found.dtype, found.shape) == (pixels.dtype, pixels.shape)
    assert np.array_equal(found, pixels)
    header = header_of(data)
    assert (header.dtype, len(ALL.names(header)), header.size) == (dtype, bands, (height, width))


def test_separate_planes_and_tiles_of_bytes_are_an_image_too() -> None:
    image, _ = scene(3, 20, 30)
    for planar, tile in ((True, None), (False, (16, 16))):
        data = blocks_tiff(image, planar=planar, tile=tile, photometric=2)
        assert np.array_equal(decode_image(data, RULES), image)


@pytest.mark.parametrize("dtype", ["|i1", "<u4", "<i4", "<f8"])
def test_other_types_are_read_as_labels_or_with_a_range_and_not_as_pictures(dtype: str) -> None:
    numbers = np.arange(20, dtype=dtype).reshape(4, 5, 1)
    for data in (blocks_tiff(numbers), array_file(numbers)):
        with pytest.raises(BadPair, match=f"has .* numbers of {8 * numbers.itemsize} bits; a picture is stored in"):
            read_bands(data, ALL, RULES)
        ranged = read_bands(data, ALL, ImageRules(image_range=(0, 19)))
        assert np.array_equal(ranged, numbers.astype("f4") / np.float32(19))
        assert np.array_equal(decode_image(data, ImageRules(image_range=(0, 19)))[..., 1], ranged[..., 0])
        if dtype[1] == "f":
            with pytest.raises(BadPair, match="floating-point numbers; labels must be integers"):
                decode_label(data, as_index=True)
        else:
            label = decode_label(data, as_index=True)
            assert label.dtype == np.uint8
            assert np.array_equal(label, numbers[..., 0])


def test_a_label_out_of_range_is_refused() -> None:
    for number in (-1, 65536):
        label = np.zeros((4, 5, 1), "<i4")
        label[1, 2] = number
        for data in (blocks_tiff(label), array_file(label), array_file(label[..., 0].astype("<i8"))):
            with pytest.raises(BadPair, match=rf"has the number {number} at \(1, 2\); class numbers are 0 to 65535"):
                decode_label(data, as_index=True)


BAD_TIFFS: dict[str, tuple[dict[str, Any], str]] = {
    "too many": ({"t277": (2000,), "t258": (16,), "t339": (1,), "t338": (0,)}, "2000 channels; 1 to 1024 are possible"),
    "declared": ({"t338": (0, 0)}, "is a TIFF with 5 channels, 1 of them colours, but it declares 2 others"),
    "depths": ({"t258": (8, 16, 16, 16, 16)}, "tag BitsPerSample"),
    "types": ({"t339": (1, 2, 1, 1, 1)}, "tag SampleFormat"),
    "12 bits": ({"t258": (12,) * 5}, "numbers with 12 bits; only"),
    "complex": ({"t339": (6,) * 5}, "unknown numbers with 16 bits"),
    "planes": ({"t284": (3,)}, "PlanarConfiguration 3"),
    "planes missing": ({"t284": (2,)}, "is damaged: it has 3 blocks and needs 15"),
    "huge": ({"t256": (100_000,), "t257": (100_000,)}, "claims 100000x100000 pixels"),
    "many numbers": ({"t256": (20_000,), "t257": (12_000,)}, "20000x12000 pixels of 5 channels, which count as 1.25"),
    "one more row": ({"t257": (22,)}, "is damaged: it has 3 blocks and needs 4"),
    "one row more": ({"t257": (21,)}, "the block at row 14, column 0 is cut short"),
    "white": ({"t262": (0,)}, "white is zero, with more than 8 bits or channels"),
    "zstd": (
        {"t259": (34887,)},
        "compressed by LERC; save it with the same numbers: gdal_translate -co COMPRESS=DEFLATE",
    ),
    "unknown": ({"t259": (60000,)}, "compressed by method 60000; save it with the same numbers"),
    "beyond": ({"t273": (8, 8, 1 << 30)}, "the block at row 14, column 0 is cut short"),
    "predictor": ({"t317": (2,)}, "predictor 2, which does not fit"),
    "jpeg": ({"t259": (7,)}, "JPEG and 5 channels of 16 bits"),
}


@pytest.mark.parametrize("case", BAD_TIFFS)
def test_lying_and_truncated_tiffs_are_refused(case: str) -> None:
    tags, message = BAD_TIFFS[case]
    pixels = noise((20, 31, 5), "<u2")
    assert np.array_equal(read_bands(blocks_tiff(pixels), ALL, RULES), pixels)
    with pytest.raises(BadPair, match=message):
        read_bands(blocks_tiff(pixels, **tags), ALL, RULES)


def with_pages(data: bytes, *kinds: int, order: str = "<", loops: bool = False) -> bytes:
    """Add a page for each number of the tag NewSubfileType; the last leads back to the first if it `loops`."""
    (first,) = struct.unpack_from(order + "I", data, 4)
    link = first + 2 + 12 * struct.unpack_from(order + "H", data, first)[0]
    found = bytearray(data)
    for kind in kinds:
        struct.pack_into(order + "I", found, link, len(found))
        found += struct.pack(order + "HHHII", 1, 254, 4, 1, kind) + bytes(4)
        link = len(found) - 4
    if loops:
        struct.pack_into(order + "I", found, link, len(data))
    return bytes(found)


@pytest.mark.parametrize("order", ["<", ">"])
def test_smaller_copies_in_a_tiff_do_not_count(order: Literal["<", ">"]) -> None:
    pixels = noise((20, 31, 5), "<u2")
    data = blocks_tiff(pixels, order, tile=(16, 16))
    for kinds in ((1,), (1, 1, 1)):
        assert np.array_equal(read_bands(with_pages(data, *kinds, order=order), ALL, RULES), pixels)


def test_smaller_copies_of_a_page_have_an_end() -> None:
    data = blocks_tiff(noise((20, 31, 5), "<u2"))
    assert len(list(directories(io.BytesIO(with_pages(data, *[1] * 40, 0, *[1] * 40))))) == 2
    with pytest.raises(BadPair, match="list of pages has no end"):
        list(directories(io.BytesIO(with_pages(data, *[1] * 41))))


def test_a_range_of_whole_numbers_is_the_same_rule() -> None:
    rules = ImageRules(image_range=(0, 1))
    read = ImageRules.from_json(Entry(rules.to_json(), "here", []))
    assert json.dumps(read.to_json()) == json.dumps(rules.to_json())


def test_other_pages_of_a_tiff_are_refused() -> None:
    data = blocks_tiff(noise((20, 31, 5), "<u2"))
    for kinds in ((4,), (5,), (1, 4)):
        with pytest.raises(BadPair, match=r"transparency mask as a page .*: gdal_translate -mask none FILE OUT.tif"):
            read_bands(with_pages(data, *kinds), ALL, RULES)
    for kinds in ((0,), (2,), (1, 0)):
        with pytest.raises(BadPair, match="several pages"):
            read_bands(with_pages(data, *kinds), ALL, RULES)
    for endless in (with_pages(data, 1, 1, loops=True), with_pages(data, *[1] * 50)):
        with pytest.raises(BadPair, match="is damaged: its list of pages has no end"):
            read_bands(endless, ALL, RULES)
    with pytest.raises(BadPair, match="ends within its header"):
        read_bands(with_pages(data, 1)[:-9], ALL, RULES)


def test_a_picture_of_many_bands_is_refused_as_an_image_or_a_label() -> None:
    for data in (blocks_tiff(noise((4, 5, 12), "|u1")), array_file(noise((4, 5, 12), "|u1"))):
        with pytest.raises(BadPair, match=r"has 12 bands of 8 bits, which .* not call gray or RGB; --bands all"):
            decode_image(data, RULES)
        with pytest.raises(BadPair, match="has 12 bands; a label has one, or colours"):
            decode_label(data, as_index=True)
    assert str(header_of(blocks_tiff(noise((4, 5, 12), "<i2")))) == "TIFF 12 bands, 16 bits, signed"


# npy


@given(
    st.integers(1, 20),
    st.integers(1, 20),
    st.sampled_from([(), (1,), (2,), (3,), (4,), (12,), (16,)]),
    st.sampled_from((*DTYPES, ">u2", ">i2", ">f2", ">f4")),
    st.booleans(),
    st.sampled_from([(1, 0), (2, 0), (3, 0)]),
)
def test_every_number_of_an_array_in_a_file_is_exact(
    height: int, width: int, bands: tuple[int, ...], dtype: str, is_fortran: bool, version: tuple[int, int]
) -> None:
    pixels = noise((height, width, *bands), dtype.replace(">", "<"), height).astype(dtype)
    data = array_file(np.asfortranarray(pixels) if is_fortran else pixels, version)
    found = read_bands(data, ALL, RULES)
    assert found.dtype == pixels.dtype.newbyteorder("=")
    assert found.shape == (height, width, *(bands or (1,)))
    assert np.array_equal(found.reshape(pixels.shape), pixels)


def test_an_array_in_a_file_is_an_image_or_a_label_too() -> None:
    image, index = scene(3, 20, 30)
    assert np.array_equal(decode_image(array_file(image), RULES), image)
    assert np.array_equal(decode_image(array_file(index), RULES), np.dstack([index] * 3))
    for label in (index, index.astype("<i8"), index.astype(">u2"), index > 0):
        assert np.array_equal(decode_label(array_file(label), as_index=True), label)
    assert np.array_equal(decode_image(array_file(index > 0), RULES)[..., 0], np.where(index > 0, 255, 0))


GOOD = array_file(noise((4, 5, 12), "<u2"))
CUT = GOOD.index(b"\n")
BAD_NPY: dict[str, tuple[bytes, str]] = {
    "cut short": (GOOD[:-1], "is cut short"),
    "longer": (GOOD + b"\0", "is damaged: 1 bytes follow the array"),
    "no header": (GOOD[:40], "ends within its header"),
    "no length": (GOOD[:8], "ends within its header"),
    "version": (GOOD[:6] + b"\4\0" + GOOD[8:], "unknown version 4.0"),
    "long header": (
        GOOD[:6] + b"\2\0" + struct.pack("<I", 1 << 31) + GOOD[10:],
        "a header of 2147483648 bytes; at most",
    ),
    "code": (GOOD.replace(b"(4, 5, 12)", b"exit(1234)"), "a header that is damaged"),
    "negative": (GOOD.replace(b"(4, 5, 12)", b"(4,-5, 12)"), "a header that is damaged"),
    "three keys": (GOOD.replace(b"'fortran_order'", b"'descr'        "), "a header that is damaged"),
    "objects": (array_file(np.zeros((2, 2), "<u2")).replace(b"<u2", b"|O8"), "type '|O8'; expected plain numbers"),
    "texts": (array_file(np.zeros((2, 2), "S4")), "has the dtype bytes32; expected whole numbers"),
    "complex": (array_file(np.zeros((2, 2), "<c8")), "has the dtype complex64; expected whole numbers"),
    "records": (array_file(np.zeros((2, 2), [("a", "<u2")])), "of a type that is not plain numbers"),
    "no such type": (GOOD.replace(b"<u2", b"<f1"), "unknown type '<f1'"),
    "huge": (GOOD.replace(b"(4, 5, 12)", b"(9999999999, 99999)"), "a header that is damaged|is cut short|claims"),
    "a line": (array_file(noise((7,), "<u2")), r"has the shape \(7,\); expected"),
    "no pixels": (array_file(noise((0, 5), "<u2")), "claims 5x0 pixels"),
    "bands first": (array_file(noise((12, 40, 50), "<u2")), r"Bands come last: np.moveaxis\(array, 0, -1\)"),
    "no bands": (array_file(noise((4, 5, 0), "<u2")), "with 1 to 512 bands"),
    "a volume": (array_file(noise((20, 30, 40), "<u2")), r"\(20, 30, 40\), and any side of it may be the bands: more"),
    "a cube": (array_file(noise((20, 20, 20), "<u2")), "and any side of it may be the bands"),
    "a side of 600": (array_file(noise((3, 700, 600), "<u2")), r"Bands come last: np.moveaxis\(array, 0, -1\)"),
    "many bands first": (array_file(noise((40, 20, 20), "<u2")), r"Bands come last: np.moveaxis\(array, 0, -1\)"),
    "as many bands as lines": (array_file(noise((40, 60, 40), "<u2")), "and any side of it may be the bands"),
}


@pytest.mark.parametrize("case", BAD_NPY)
def test_lying_and_truncated_arrays_are_refused(case: str) -> None:
    data, message = BAD_NPY[case]
    for read in (lambda: read_header(io.BytesIO(data)), lambda: read_bands(data, ALL, RULES)):
        with pytest.raises(BadPair, match=message.replace("'|", r"'\|")):
            read()


def test_a_header_that_claims_much_takes_no_memory() -> None:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (16000, 16000, 4), }"
    data = b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header
    with pytest.raises(BadPair, match="is cut short"):
        read_header(io.BytesIO(data))
    with pytest.raises(BadPair, match=r"claims|is cut short"):
        read_bands(data.replace(b"16000, 16000", b"99999, 99999"), ALL, RULES)


# PNG, JPEG, WebP, BMP


@pytest.mark.parametrize("dtype", ["|u1", "<u2"])
@pytest.mark.parametrize(("bands", "colour"), [(1, 0), (2, 4), (3, 2), (4, 6)])
def test_png_has_its_bands_alpha_included(dtype: str, bands: int, colour: int) -> None:
    pixels = noise((9, 11, bands), dtype)
    for opaque in (False, True):
        if opaque and bands in (2, 4):
            pixels[..., -1] = np.iinfo(dtype).max
        rows = pixels.astype(dtype.replace("<", ">")).reshape(9, -1).view(np.uint8)
        found = read_bands(png(rows, 8 * pixels.itemsize, colour), ALL, RULES)
        assert found.dtype == pixels.dtype
        assert np.array_equal(found, pixels)


def test_jpeg_webp_and_bmp_have_their_bands() -> None:
    image, index = scene(3, 20, 30)
    rgba = np.dstack([image, index + np.uint8(1)])
    for suffix, options, pixels in (
        (".jpg", (), image),
        (".jpg", (), index),
        (".bmp", (), image),
        (".bmp", (), index),
        (".webp", (cv2.IMWRITE_WEBP_QUALITY, 101), image),
        (".webp", (cv2.IMWRITE_WEBP_QUALITY, 101), rgba),
        (".webp", (cv2.IMWRITE_WEBP_QUALITY, 90), image),
    ):
        data = encoded_as(suffix, pixels, *options)
        found = read_bands(data, ALL, RULES)
        is_gray = pixels.ndim == 2 and suffix != ".bmp"  # OpenCV gives a BMP of gray a palette
        assert found.shape == (20, 30, 1 if is_gray else pixels.shape[2] if pixels.ndim == 3 else 3)
        assert len(ALL.names(header_of(data))) == found.shape[2]
        if suffix in (".bmp", ".webp") and options != (cv2.IMWRITE_WEBP_QUALITY, 90):
            assert np.array_equal(found, np.dstack([pixels] * 3) if pixels.ndim == 2 else pixels)


# Bands


def test_bands_are_chosen_and_ordered() -> None:
    pixels = noise((4, 5, 12), "<u2")
    data = blocks_tiff(pixels, planar=True)
    bands = Bands(band_choice([4, 3, 2]))
    assert np.array_equal(read_bands(data, bands, RULES), pixels[..., [3, 2, 1]])
    assert bands.names(header_of(data)) == ("band 4", "band 3", "band 2")
    assert bands == Bands(band_choice("4, 3,2")) == Bands(band_choice("[4,3,2]")) == Bands(band_choice(bands.chosen))
    assert np.array_equal(read_bands(pixels, Bands(band_choice("12")), RULES), pixels[..., 11:])
    with pytest.raises(BadPair, match="has 12 bands, and no band 13"):
        read_bands(data, Bands((1, 13)), RULES)
    for name in ("gray", "rgb"):
        with pytest.raises(BadPair, match=f"has 12 bands, which are not {name}; choose them by their numbers or names"):
            read_bands(data, Bands(name), RULES)


def test_a_few_of_more_than_512_bands_are_chosen() -> None:
    pixels = noise((4, 5, 600), "|u1")
    data = blocks_tiff(pixels)
    assert np.array_equal(read_bands(data, Bands(band_choice([600, 1])), RULES), pixels[..., [599, 0]])
    with pytest.raises(BadPair, match="has 600 bands; at most 512 are packed, so choose some"):
        read_bands(data, ALL, RULES)
    with pytest.raises(BadPair, match="band 16, … and 584 more, and no band B12"):
        Bands(("B12",)).names(header_of(data))


@pytest.mark.parametrize("shape", [(30, 40, 29), (9, 9, 200), (300, 280, 240)])
def test_many_bands_of_an_array_come_last(shape: tuple[int, ...]) -> None:
    pixels = noise(shape, "<u2")
    assert np.array_equal(read_bands(array_file(pixels), ALL, RULES), pixels)


@pytest.mark.parametrize(
    "given", ["", "1;2", [], [0], [1, 1], [-1], [True], [1.0], list(range(1, 514)), None, 3, "1,,2"]
)
def test_bands_that_cannot_be_chosen_are_refused(given: object) -> None:
    with pytest.raises(ValueError, match="expected all, gray, rgb, or numbers from 1 on"):
        band_choice(given)


def test_gray_is_one_band_and_rgb_three() -> None:
    image, index = scene(3, 20, 30)
    gray, rgb = Bands(band_choice("gray")), Bands(band_choice("rgb"))
    for same in (index, np.dstack([index] * 3)):
        data = encoded_as(".png", same)
        assert np.array_equal(read_bands(data, gray, RULES)[..., 0], index)
        assert np.array_equal(read_bands(data, rgb, RULES), np.dstack([index] * 3))
        assert gray.names(header_of(data)) == ("gray",)
        assert rgb.names(header_of(data)) == ("red", "green", "blue")
    assert np.array_equal(read_bands(encoded_as(".png", image), rgb, RULES), image)
    with pytest.raises(BadPair, match=r"has colours, first at row .*; use the bands rgb, or one by its number"):
        read_bands(encoded_as(".png", image), gray, RULES)


def test_transparent_colours_are_refused_unless_alpha_is_a_band_or_dropped() -> None:
    image, index = scene(3, 20, 30)
    rgba = np.dstack([image, np.full_like(index, 255)])
    opaque = encoded_as(".png", rgba)
    rgba[3, 4, 3] = 7
    data = encoded_as(".png", rgba)
    assert ALL.names(header_of(data)) == ("red", "green", "blue", "alpha")
    assert np.array_equal(read_bands(data, ALL, RULES), rgba)
    assert np.array_equal(read_bands(data, Bands(band_choice([4, 1])), RULES), rgba[..., [3, 0]])
    assert np.array_equal(read_bands(data, Bands(band_choice("rgb")), DROP), image)
    assert np.array_equal(read_bands(opaque, Bands(band_choice("rgb")), RULES), image)
    with pytest.raises(BadPair, match=r"has transparent pixels, .*--alpha drop"):
        read_bands(data, Bands(band_choice("rgb")), RULES)


def test_colours_of_a_tiff_keep_their_names_and_the_others_get_numbers() -> None:
    pixels = noise((4, 5, 5), "<u2")
    header = header_of(blocks_tiff(pixels, photometric=2))
    assert ALL.names(header) == ("red", "green", "blue", "band 4", "band 5")
    assert ALL.names(header_of(tiff(noise((4, 5, 4), "<u2"), t338=(ALPHA,)))) == ("red", "green", "blue", "alpha")
    floats = noise((4, 5, 4), "<f4")
    assert ALL.names(header_of(tiff(floats, t338=(ALPHA,)))) == ("red", "green", "blue", "band 4")
    assert np.array_equal(read_bands(tiff(floats, t338=(ALPHA,)), ALL, RULES), floats)


def test_every_band_is_turned_upright() -> None:
    pixels = noise((4, 5, 12), "<u2")
    assert np.array_equal(read_bands(blocks_tiff(pixels, t274=(6,)), ALL, RULES), np.rot90(pixels, -1))


@pytest.mark.parametrize("dtype", ["<u2", "<i2", "<f2", "<f4"])
def test_a_range_scales_every_band(dtype: str) -> None:
    pixels = noise((4, 5, 12), dtype)
    found = read_bands(pixels, ALL, ImageRules(image_range=(-100, 900)))
    expected = np.clip((pixels.astype("f4") + np.float32(100)) / np.float32(1000), 0, 1)
    assert found.dtype == np.float32
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["<f2", "<f4"])
def test_numbers_that_are_not_finite_are_refused(dtype: str, number: float) -> None:
    pixels = noise((4, 5, 3), dtype)
    pixels[2, 3, 1] = number
    for data in (array_file(pixels), tiff(pixels), pixels):
        with pytest.raises(BadPair, match=rf"has the number {number} at row 2, column 3 of its stored band 2"):
            read_bands(data, ALL, RULES)
    check_finite(noise((4, 5, 3), dtype))


@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("bands", ["all", "gray", "rgb", (1,)])
def test_gray_of_few_bits_has_the_numbers_of_the_file(bits: int, bands: BandChoice) -> None:
    """They were stored times 255, 85 or 17, so that all but 0 lay above a range such as 0..15."""
    most = 2**bits - 1
    numbers = np.arange(64, dtype=np.uint8).reshape(4, 16) % 2**bits
    single = np.unpackbits(numbers[..., None], axis=-1)[..., 8 - bits :].reshape(4, -1)
    packed = np.packbits(single, axis=-1)
    tags: dict[str, Any] = {"t256": (16,), "t257": (4,), "t258": (bits,), "t278": (4,)}
    for data in (png(packed, bits, 0), tiff(packed, **tags), tiff(np.invert(packed), **tags, t262=(0,))):
        assert (read_bands(data, Bands(bands), RULES) == numbers[..., None]).all()
        ranged = read_bands(data, Bands(bands), ImageRules((0, most)))
        assert np.array_equal(ranged[..., 0], numbers.astype(np.float32) / np.float32(most))
