"""Fields of overlapping classes: from a file for each, bits or bands, every pixel is in the classes that it is in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drills.band_files import array_file, blocks_tiff
from handmade import chunk, encoded_as, png, tiff
from hypothesis import given
from hypothesis import strategies as st
from number_kinds import GEOMETRIES, SIZES, files_of, kind_of, rows_of, sampled
from numpy.typing import NDArray

from packer.decoding.decode import decode_image
from packer.decoding.rules import ImageRules
from packer.errors import BadPair
from packer.pixels.multilabel_codec import MultilabelCodec
from packer.pixels.number_rules import MultilabelRules
from packer.pixels.resize import Geometry
from packer.recipe.source import PackedPixels
from readers.contract.bits import pack_bits, unpack_bits
from readers.contract.classes import ClassTable, SegClass
from readers.contract.fields import Field
from readers.contract.kinds import BITS, MULTILABEL, PLANES, planes_of

FILES, ONE_FILE = MultilabelRules(), MultilabelRules(one_file=True)
FORMS = st.sampled_from((PLANES, BITS))
NUMBERS = st.sampled_from(("|b1", "|u1", "<u2", "<u4", "|i1", "<i4"))


def table(classes: int) -> ClassTable:
    return ClassTable(tuple(SegClass(f"part{number}") for number in range(classes)))


def field(classes: int, form: str, geometry: Geometry) -> Field:
    size = geometry.size or (None, None)
    return Field("parts", MULTILABEL, form, "|u1", (*planes_of(form, classes), *size), classes=table(classes))


def some_planes(classes: int, size: tuple[int, int]) -> NDArray[np.uint8]:
    return np.random.default_rng(classes).integers(0, 2, (classes, *size), np.uint8)


def check_rows(planes: NDArray[np.uint8], form: str, rules: MultilabelRules, geometry: Geometry, data: Any) -> None:
    for origin, row in rows_of(field(len(planes), form, geometry), rules, geometry, data):
        found = unpack_bits(row, len(planes)) if form == BITS else row
        assert np.array_equal(found, sampled(planes, geometry, origin, 0))


@given(st.integers(1, 20), SIZES, FORMS, GEOMETRIES, st.data())
def test_a_file_for_each_class(
    classes: int, size: tuple[int, int], form: str, geometry: Geometry, data: st.DataObject
) -> None:
    planes, files = some_planes(classes, size), list[bytes | NDArray[Any]]()
    planes[:, 0, 0] = 1
    for plane in planes:
        dtype = data.draw(NUMBERS)
        inside = 1 if dtype == "|b1" else data.draw(st.integers(1, np.iinfo(dtype).max))
        files.append(
            data.draw(st.sampled_from(list(files_of(plane.astype(dtype) * np.dtype(dtype).type(inside)).values())))
        )
    absent = data.draw(st.sets(st.integers(1, classes), max_size=classes - 1))
    for number in absent:
        planes[number - 1], files[number - 1] = 0, b""
    check_rows(planes, form, FILES, geometry, tuple(files))


@given(st.integers(1, 20), SIZES, FORMS, GEOMETRIES, st.data())
def test_a_bit_for_each_class(
    classes: int, size: tuple[int, int], form: str, geometry: Geometry, data: st.DataObject
) -> None:
    planes = some_planes(classes, size)
    types = {"|b1": 1, "|i1": 7, "|u1": 8, "<i2": 15, "<u2": 16, "<i4": 31, "<u4": 32, "<i8": 63, "<u8": 64}
    dtype = data.draw(st.sampled_from([dtype for dtype, bits in types.items() if bits >= classes]))
    numbers = sum(plane.astype("<u8") << np.uint64(number) for number, plane in enumerate(planes)).astype(dtype)
    check_rows(planes, form, ONE_FILE, geometry, data.draw(st.sampled_from(list(files_of(numbers).values()))))


@given(st.integers(2, 16), SIZES, FORMS, GEOMETRIES, NUMBERS, st.data())
def test_a_band_for_each_class(
    classes: int, size: tuple[int, int], form: str, geometry: Geometry, dtype: str, data: st.DataObject
) -> None:
    planes = some_planes(classes, size)
    inside = 1 if dtype == "|b1" else int(np.iinfo(dtype).max)
    bands = np.moveaxis(planes, 0, -1).astype(dtype) * np.dtype(dtype).type(inside)
    files: list[Any] = [bands, array_file(bands)]
    if dtype != "|b1":
        files.append(blocks_tiff(bands, planar=True))
    if dtype == "|u1" and classes in (3, 4):
        files.append(encoded_as(".png", bands))
    check_rows(planes, form, ONE_FILE, geometry, data.draw(st.sampled_from(files)))


@given(st.integers(1, 20), SIZES, FORMS, FORMS, GEOMETRIES)
def test_rows_of_a_pack_in_either_form(
    classes: int, size: tuple[int, int], given_form: str, form: str, geometry: Geometry
) -> None:
    planes = some_planes(classes, size)
    pixels = PackedPixels(pack_bits(planes) if given_form == BITS else planes)
    check_rows(planes, form, FILES, geometry, pixels)


def test_many_classes_as_truth_values() -> None:
    """Numbers may have 512 bands."""
    planes = some_planes(600, (4, 30))
    bands = np.moveaxis(planes, 0, -1)
    for data in (bands.astype(bool), array_file(bands.astype(bool)), blocks_tiff(bands)):
        assert np.array_equal(MultilabelCodec(ONE_FILE, table(600)).read(data), pack_bits(planes))
    with pytest.raises(BadPair, match="with 1 to 512 bands"):
        MultilabelCodec(ONE_FILE, table(600)).read(bands)
    with pytest.raises(BadPair, match="has 600 bands of 1 bit, which its header"):
        decode_image(bands.astype(bool), ImageRules())


def masks(*inside: tuple[int, int, int]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return indices of a palette, and the colour of each pixel by these colours."""
    index = np.array([[0, 1, 1], [0, 0, 1]], np.uint8)
    return index, np.array(inside, np.uint8)[index]


def test_masks_in_colours() -> None:
    codec = MultilabelCodec(FILES, table(1))
    for colour in ((255, 255, 255), (200, 0, 0), (0, 0, 1)):
        index, colours = masks((0, 0, 0), colour)
        palette = png(index, 8, 3, chunk(b"PLTE", bytes((0, 0, 0, *colour))))
        for data in (encoded_as(".png", colours), palette, tiff(np.dstack([colours, index * 0 + 255]))):
            assert np.array_equal(codec.read((data,))[0], index)


def test_a_turned_file_is_upright() -> None:
    index, _ = masks((0, 0, 0), (1, 1, 1))
    data = tiff(index, t274=(6,))
    for rules, given_data in ((FILES, (data,)), (ONE_FILE, data)):
        assert np.array_equal(MultilabelCodec(rules, table(1)).read(given_data)[0], np.rot90(index, -1))


def test_an_inverted_palette_is_refused() -> None:
    index, _ = masks((0, 0, 0), (0, 0, 0))
    for colours in (bytes([255] * 3 + [0] * 3), bytes(6)):
        data = png(index, 8, 3, chunk(b"PLTE", colours))
        words = r"class part0: can be read in two ways: at row 0, column \d the palette's index is \d and its colour #"
        with pytest.raises(BadPair, match=words):
            MultilabelCodec(FILES, table(1)).read((data,))


GRAY = np.arange(20, dtype=np.uint8).reshape(4, 5)
MASK = np.asarray(GRAY % 2, np.uint8)
BANDS = np.repeat(MASK[..., None], 3, axis=2)
ODD = np.where(np.arange(20).reshape(4, 5) == 13, 128, 255).astype(np.uint8)
REFUSED_FILES: dict[str, tuple[bytes | NDArray[Any], str]] = {
    "JPEG": (encoded_as(".jpg", MASK), "is a JPEG with lossy compression, which changes labels; use PNG"),
    "float": (MASK.astype("<f4"), "has floating-point numbers; labels must be whole numbers"),
    "white": (tiff(MASK, t262=(0,)), "is a TIFF in which white is zero: in labels some programs"),
    "edges": (encoded_as(".png", ODD), "has the number 128 at row 2, column 3, and the number 255; besides 0 the file"),
    "colours": (np.dstack([ODD, MASK, MASK]), "has the colour #.* at row 0, column 0, and the colour #ff0101; besides"),
    "bands": (np.dstack([BANDS, BANDS]), "has the type array 6 bands, 8 bits; the file of a class is gray, or"),
    "16 bits": (encoded_as(".png", BANDS.astype("<u2")), "has the type PNG RGB, 16 bits; the file of a class is"),
    "transparent": (np.dstack([BANDS, MASK]), "has transparent pixels, whose numbers may not count"),
    "size": (MASK[:3], r"is 3x5, the file of class part0 is 4x5 \(height x width\); they must have the same size"),
    "damaged": (encoded_as(".png", MASK)[:-20], "ends within its header"),
    "huge": (np.zeros((11, 10), np.uint8), "has 10x11 pixels; 1 to 100 are allowed"),
}


@pytest.mark.parametrize("name", REFUSED_FILES)
def test_a_file_that_is_not_a_mask_is_refused_by_its_class(name: str) -> None:
    data, words = REFUSED_FILES[name]
    codec = MultilabelCodec(FILES, table(3), 100)
    assert codec.read((MASK, b"", b"")).shape == (1, 4, 5)
    with pytest.raises(BadPair, match=f"class part2: {words}"):
        codec.read((MASK, b"", data))


def test_a_row_without_any_file_is_refused() -> None:
    with pytest.raises(BadPair, match="has no file of any class"):
        MultilabelCodec(FILES, table(2)).read((b"", b""))


REFUSED: dict[str, tuple[int, bytes | NDArray[Any], str]] = {
    "JPEG": (3, encoded_as(".jpg", BANDS), "is a JPEG with lossy compression, which changes labels; use PNG"),
    "bits": (
        5,
        np.where(MASK == 1, 32, 1).astype("u1"),
        "has the number 32 at row 0, column 1; the bits of 5 classes are",
    ),
    "negative": (5, np.full((4, 5), -1), "has the number -1 at row 0, column 0; the bits of 5 classes are 0 to 31"),
    "8 bits": (9, GRAY, "has 8 bits for each pixel, and there are 9 classes"),
    "sign": (8, GRAY.astype("i1"), "has 7 bits for each pixel, and there are 8 classes"),
    "bands": (
        4,
        BANDS,
        "has 3 channels, and there are 4 classes; a file of overlapping classes has a channel for each",
    ),
    "alpha": (3, np.dstack([BANDS, MASK]), "has 4 channels, and there are 3 classes"),
    "edges": (3, np.dstack([MASK, MASK, ODD]), "band 3, class part2: has the number 128 at row 2, column 3, and the"),
    "marked": (5, png(GRAY, 8, 0, chunk(b"tRNS", b"\0\7")), "has transparent pixels, whose numbers may not count"),
    "float": (5, MASK.astype("<f4"), "has floating-point numbers; labels must be whole numbers"),
    "empty": (5, b"", "is empty"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_does_not_hold_all_classes_is_refused(name: str) -> None:
    classes, data, words = REFUSED[name]
    with pytest.raises(BadPair, match=words):
        MultilabelCodec(ONE_FILE, table(classes)).read(data)


@pytest.mark.parametrize("planes", [np.full((2, 3, 3), 3, np.uint8), np.full((1, 3, 3), 4, np.uint8)])
def test_a_row_of_a_pack_with_other_bits_is_refused(planes: NDArray[np.uint8]) -> None:
    geometry = Geometry((3, 3))
    with pytest.raises(BadPair, match="has numbers in its parts that are in none of 2 classes"):
        kind_of(field(2, BITS, geometry), FILES, geometry).decode(PackedPixels(planes))
