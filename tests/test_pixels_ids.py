"""Fields of ids: every number of every file is stored as it is, and any other number is refused with its position."""

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

from packer.decoding.decode import header_of
from packer.errors import BadPair
from packer.pixels.id_codec import IdCodec, id_dtype
from packer.pixels.number_rules import ADE20K, ID_CODECS, INDEX, PANOPTIC, IdRules
from packer.pixels.resize import Geometry
from packer.recipe.source import PackedPixels
from readers.contract.fields import Field
from readers.contract.kinds import IDS
from readers.contract.kinds import INDEX as FORM

DTYPES = ("|b1", "|u1", "<u2", "<u4", "<u8", "|i1", "<i2", "<i4", "<i8")
STORED = ("<u2", "<u4")


def field(dtype: str, geometry: Geometry) -> Field:
    return Field("instance", IDS, FORM, dtype, geometry.size or (None, None))


def some_ids(size: tuple[int, int], dtype: str, stored: str, seed: int) -> NDArray[Any]:
    """Return ids over the whole range that both types have, the largest among them."""
    most = 1 if dtype == "|b1" else min(int(np.iinfo(dtype).max), int(np.iinfo(stored).max))
    ids = np.random.default_rng(seed).integers(0, most, size, np.uint64, endpoint=True)
    ids[0, 0] = most
    return ids.astype(dtype)


@given(SIZES, st.sampled_from(DTYPES), st.sampled_from(STORED), GEOMETRIES, st.data())
def test_every_id_is_stored_as_it_is(
    size: tuple[int, int], dtype: str, stored: str, geometry: Geometry, data: st.DataObject
) -> None:
    ids = some_ids(size, dtype, stored, sum(size))
    file = data.draw(st.sampled_from([*files_of(ids).values(), PackedPixels(ids.astype(stored))]))
    for origin, row in rows_of(field(stored, geometry), IdRules(), geometry, file):
        assert np.array_equal(row, sampled(ids.astype(stored), geometry, origin, 0))


@given(SIZES, st.sampled_from((PANOPTIC, ADE20K)), st.sampled_from(("png", "tiff", "array")), GEOMETRIES)
def test_ids_in_colours_are_stored_as_they_are(
    size: tuple[int, int], codec: str, kind: str, geometry: Geometry
) -> None:
    colours = np.random.default_rng(sum(size)).integers(0, 256, (*size, 3), np.uint8)
    data = {"png": encoded_as(".png", colours), "tiff": tiff(colours), "array": colours}[kind]
    red, green, blue = np.moveaxis(colours.astype(np.uint32), -1, 0)
    ids = (blue if codec == ADE20K else red + 256 * green + 65536 * blue).astype("<u4")
    for origin, row in rows_of(field("<u4", geometry), IdRules(codec), geometry, data):
        assert np.array_equal(row, sampled(ids, geometry, origin, 0))


def test_a_palette_gives_its_indices_or_its_colours() -> None:
    rows = np.array([[0, 1, 2], [2, 2, 1]], np.uint8)
    data = png(rows, 8, 3, chunk(b"PLTE", bytes([0, 0, 0, 1, 2, 3, 9, 8, 7])))
    assert np.array_equal(IdCodec(IdRules(), "<u2").read(data), rows)
    panoptic = np.array([0, 1 + 256 * 2 + 65536 * 3, 9 + 256 * 8 + 65536 * 7])
    assert np.array_equal(IdCodec(IdRules(PANOPTIC), "<u4").read(data), panoptic[rows])


def test_an_opaque_alpha_is_no_number() -> None:
    ids = np.arange(6, dtype=np.uint8).reshape(2, 3)
    assert np.array_equal(IdCodec(IdRules(), "<u2").read(tiff(np.dstack([ids, ids * 0 + 255]))), ids)


def test_a_turned_file_is_upright() -> None:
    ids = np.arange(6, dtype=np.uint16).reshape(2, 3)
    assert np.array_equal(IdCodec(IdRules(), "<u2").read(tiff(ids, t274=(6,))), np.rot90(ids, -1))


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("number", [-1, 65_536, 2**32, 2**63 - 1])
def test_an_id_over_the_type_is_named_with_its_place(stored: str, number: int) -> None:
    most = int(np.iinfo(stored).max)
    ids = np.zeros((4, 5), np.int64)
    ids[2, 3] = number
    codec = IdCodec(IdRules(), stored)
    for data in (ids, array_file(ids)):
        if 0 <= number <= most:
            assert codec.read(data)[2, 3] == number
            continue
        with pytest.raises(BadPair, match=f"has the number {number} at row 2, column 3; ids are 0 to {most} if they"):
            codec.read(data)


def test_a_row_of_a_pack_with_larger_ids_is_refused() -> None:
    kind = kind_of(field("<u2", Geometry((2, 2))), IdRules(), Geometry((2, 2)))
    with pytest.raises(BadPair, match="has the number 70000 at row 0, column 0; ids are 0 to 65535"):
        kind.decode(PackedPixels(np.full((2, 2), 70_000, np.uint32)))


GRAY = np.arange(20, dtype=np.uint8).reshape(4, 5)
RGB = np.repeat(GRAY[..., None], 3, axis=2)
REFUSED: dict[str, tuple[bytes | NDArray[Any], tuple[str, ...], str]] = {
    "JPEG": (encoded_as(".jpg", GRAY), ID_CODECS, "is a JPEG with lossy compression, which changes ids; use PNG"),
    "float": (blocks_tiff(GRAY[..., None].astype("<f4")), (INDEX,), "has floating-point numbers; ids must be whole"),
    "white": (tiff(GRAY, t262=(0,)), (INDEX,), "is a TIFF in which white is zero: in ids"),
    "colours": (encoded_as(".png", RGB), (INDEX,), "has 3 channels; an id is the number of a gray pixel. Ids in"),
    "bands": (blocks_tiff(np.dstack([RGB, RGB])), ID_CODECS, "6 (channels; an id is|bands, 8 bits; ids by the codec)"),
    "gray": (
        encoded_as(".png", GRAY),
        (PANOPTIC, ADE20K),
        "has the type PNG gray, 8 bits; ids by the codec",
    ),
    "16 bits": (
        encoded_as(".png", RGB.astype("<u2")),
        (PANOPTIC, ADE20K),
        "has the type PNG RGB, 16 bits; ids by",
    ),
    "signed": (RGB.astype("|i1"), (PANOPTIC, ADE20K), "has the type array RGB, 8 bits, signed; ids by the codec"),
    "transparent": (tiff(np.dstack([GRAY, GRAY])), (INDEX,), "has transparent pixels, whose numbers may not count"),
    "see-through": (encoded_as(".png", np.dstack([RGB, GRAY])), (PANOPTIC, ADE20K), "has transparent pixels, whose"),
    "marked": (png(GRAY, 8, 0, chunk(b"tRNS", b"\0\7")), (INDEX,), "has transparent pixels, whose numbers may not"),
    "damaged": (encoded_as(".png", RGB)[:-20], (PANOPTIC, ADE20K), "ends within its header"),
    "empty": (b"", ID_CODECS, "is empty"),
    "huge": (np.zeros((11, 10), np.uint8), (INDEX,), "has 10x11 pixels; 1 to 100 are allowed"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_holds_no_ids_is_refused(name: str) -> None:
    data, codecs, words = REFUSED[name]
    for codec in codecs:
        with pytest.raises(BadPair, match=words):
            IdCodec(IdRules(codec), "<u4", 100).read(data)


def test_the_smallest_type_for_every_id_of_a_file() -> None:
    expected = {"|b1": "<u2", "|u1": "<u2", "<u2": "<u2", "<i2": "<u2", "<u4": "<u4", "<i4": "<u4", "<i8": "<u4"}
    for dtype, stored in expected.items():
        assert id_dtype(header_of(np.zeros((2, 2), dtype)), IdRules()) == stored
    header = header_of(encoded_as(".png", RGB))
    assert [id_dtype(header, IdRules(codec)) for codec in (PANOPTIC, ADE20K)] == ["<u4", "<u2"]
