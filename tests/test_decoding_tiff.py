"""JPEG and CCITT in TIFF, and white as zero: files of several programs are exact, damage is refused.

The files in foreign_tiffs were written by rasterio 1.4.4 (GDAL) and tifffile 2026.3.3. Pillow writes the others.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import scene
from handmade import encoded_as, tiff
from numpy.typing import NDArray
from PIL import Image

from packer.decoding.decode import decode_image, decode_label
from packer.decoding.rules import ImageRules
from packer.decoding.tiff import ccitt
from packer.decoding.tiff.ccitt_codes import MODES, RUNS
from packer.errors import BadPair

FOREIGN = Path(__file__).parent / "foreign_tiffs"
ROWS, COLUMNS = np.indices((40, 56))
MASK = ((ROWS // 5 + COLUMNS // 7) % 3 == 0) | (ROWS > COLUMNS)
"""The mask in foreign_tiffs."""
IMAGE, INDEX = scene(7, 33, 47)
RULES = ImageRules()
T4_OPTIONS, FILL_ORDER = 292, 266
CCITT: list[tuple[str, dict[int, int]]] = [
    ("tiff_ccitt", {}),
    ("tiff_ccitt", {FILL_ORDER: 2}),
    ("group3", {}),
    ("group3", {T4_OPTIONS: 1}),
    ("group3", {T4_OPTIONS: 4}),
    ("group3", {T4_OPTIONS: 5, FILL_ORDER: 2}),
    ("group4", {}),
    ("group4", {FILL_ORDER: 2}),
]
WAYS = pytest.mark.parametrize(("compression", "tags"), CCITT, ids=[f"{name} {tags}" for name, tags in CCITT])


def saved(pixels: NDArray[Any], compression: str, tags: dict[int, int] | None = None) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "TIFF", compression=compression, tiffinfo=tags or {})
    return file.getvalue()


def strip_of(data: bytes) -> tuple[int, int]:
    """Return the offset and the length of the first strip."""
    tags = Image.open(io.BytesIO(data)).tag_v2  # type: ignore[attr-defined]
    return tags[273][0], tags[279][0]


# JPEG


@pytest.mark.parametrize("path", sorted(FOREIGN.glob("*jpeg*")), ids=lambda path: path.stem)
def test_a_tiff_with_jpeg_has_the_pixels_that_pillow_finds(path: Path) -> None:
    pixels = np.asarray(Image.open(path))
    wanted = np.dstack([pixels] * 3) if pixels.ndim == 2 else pixels
    assert np.array_equal(decode_image(path.read_bytes(), RULES), wanted)


def test_pillow_and_opencv_s_tiffs_with_jpeg_are_read() -> None:
    for data in (saved(IMAGE, "jpeg"), encoded_as(".tif", IMAGE, 259, 7), saved(np.tile(IMAGE, (9, 1, 1)), "jpeg")):
        assert np.array_equal(decode_image(data, RULES), np.asarray(Image.open(io.BytesIO(data))))
    for gray in (saved(INDEX * np.uint8(60), "jpeg"), encoded_as(".tif", INDEX * np.uint8(60), 259, 7)):
        assert np.array_equal(decode_image(gray, RULES)[..., 0], np.asarray(Image.open(io.BytesIO(gray))))


def test_a_tiff_with_jpeg_needs_a_threshold_as_a_label() -> None:
    data = saved(INDEX, "jpeg")
    with pytest.raises(BadPair, match="is a TIFF with lossy compression, which changes labels"):
        decode_label(data, as_index=True)
    assert decode_label(data, as_index=True, lossy=True).shape == (33, 47)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (b"\xff\xc0\0\x11\x08\0\x10\0\x10", b"\xff\xc0\0\x11\x08\0\x08\0\x10", "a block of 16x16 .* a JPEG of 8x16"),
        (b"\xff\xc0\0\x11\x08\0\x10\0\x10", b"\xff\xc0\0\x11\x0c\0\x10\0\x10", "12 bits"),
        (b"\xff\xd8\xff\xdb", b"\xff\xd7\xff\xdb", "tables are not JPEG"),
        (b"\xff\xd8\xff\xc0", b"\xff\xd7\xff\xc0", "a block or its tables are not JPEG"),
        (b"\xff\xdb\0\x43", b"\xff\xdb\xff\xff", "is damaged|not a JPEG"),
        (b"\xff\xc4", b"\xff\xe9", "is damaged"),
    ],
)
def test_damaged_jpeg_in_a_tiff_is_refused(before: bytes, after: bytes, message: str) -> None:
    data = (FOREIGN / "gdal_jpeg_ycbcr_tiles.tif").read_bytes()
    assert before in data
    with pytest.raises(BadPair, match=message):
        decode_image(data.replace(before, after, 1), RULES)


def test_a_hole_in_the_jpeg_of_a_tiff_is_refused() -> None:
    data = saved(np.tile(IMAGE, (3, 3, 1)), "jpeg")
    offset, count = strip_of(data)
    for start in range(offset + count // 4, offset + count - 40, 97):
        with pytest.raises(BadPair):
            decode_image(data[:start] + bytes(40) + data[start + 40 :], RULES)


# CCITT


@pytest.mark.parametrize("path", sorted(FOREIGN.glob("*ccitt*")), ids=lambda path: path.stem)
def test_gdal_s_masks_are_read(path: Path) -> None:
    assert np.array_equal(decode_label(path.read_bytes(), as_index=True), MASK)
    assert np.array_equal(decode_image(path.read_bytes(), RULES)[..., 1], np.where(MASK, 255, 0))


@WAYS
def test_masks_of_any_shape_are_read(compression: str, tags: dict[int, int]) -> None:
    dice = np.random.default_rng(3)
    for share in (0.01, 0.1, 0.5):
        for height, width in ((1, 1), (3, 8), (31, 65), (64, 200)):
            mask = dice.random((height, width)) < share
            for pixels in (mask, ~mask):
                assert np.array_equal(decode_label(saved(pixels, compression, tags), as_index=True), pixels)


@pytest.mark.parametrize("colour", [False, True])
def test_runs_of_every_length_are_read(colour: bool) -> None:
    starts = np.arange(2700)[:, None]
    run = (np.arange(3000) >= starts) ^ colour
    for compression in ("group3", "group4"):
        assert np.array_equal(decode_label(saved(run, compression), as_index=True), run)


def test_no_code_begins_another() -> None:
    for table, codes in ((RUNS[0], 104), (RUNS[1], 104), (MODES, 9)):
        assert len({entry for entry in table if entry[0]}) == codes
        assert sum(2 ** (13 - length) for length, _ in set(table) if length) == sum(length > 0 for length, _ in table)


@WAYS
def test_long_strips_are_read_in_parts(compression: str, tags: dict[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ccitt, "_PART", 50)
    mask = np.random.default_rng(3).random((90, 70)) < 0.3
    data = saved(mask, compression, tags)
    assert np.array_equal(decode_label(data, as_index=True), mask)
    offset, count = strip_of(data)
    with pytest.raises(BadPair, match="CCITT"):
        decode_label(data[: offset + count - 40] + b"\xaa" * 40 + data[offset + count :], as_index=True)


@WAYS
def test_a_hole_in_ccitt_is_refused(compression: str, tags: dict[int, int]) -> None:
    data = saved(np.tile(MASK, (4, 4)), compression, tags)
    offset, count = strip_of(data)
    for start in range(offset, offset + count - 8, 7):
        holey = data[:start] + bytes(8) + data[start + 8 :]
        with pytest.raises(BadPair, match=r"is damaged: .*CCITT"):
            decode_label(holey, as_index=True)


def strips(data: bytes, compression: int, **tags: Any) -> bytes:
    """Return a TIFF of one strip with these bytes and 8x16 pixels of one bit."""
    fixed: dict[str, Any] = {"t256": (16,), "t257": (8,), "t258": (1,), "t259": (compression,), "t278": (8,)}
    return tiff(np.frombuffer(data, np.uint8)[None], **{**fixed, "t279": (len(data),), **tags})


def bits(*codes: str) -> bytes:
    text = "".join(codes)
    return int(text.ljust(-(-len(text) // 8) * 8, "0"), 2).to_bytes(-(-len(text) // 8), "big")


END = "000000000001"


@pytest.mark.parametrize(
    ("data", "compression"),
    [
        (bits("1" * 8), 4),
        (bits("1" * 8, END, END), 4),
        (bits("1" * 8) + bytes(9), 4),
        (bits(*[END + "101010"] * 8), 3),
        (bits(*[END + "101010"] * 8, *[END] * 6), 3),
        (bits(*["10101000"] * 8), 2),
    ],
)
def test_a_strip_may_end_with_ends_of_line_or_zeros(data: bytes, compression: int) -> None:
    assert not decode_label(strips(data, compression), as_index=True).any()


@pytest.mark.parametrize(
    ("data", "compression", "message"),
    [
        (bits("1" * 7), 4, "does not fit|cut short"),
        (bits("1" * 8, END, END, "1"), 4, "goes on behind the last row"),
        (bits("1" * 9), 4, "goes on behind the last row"),
        (bits("0001", "1" * 8), 4, "does not fit"),
        (bits("010", "1" * 8), 4, "does not fit"),
        (bits("011", "1" * 8), 4, "does not fit"),
        (bits("0000001111", "1" * 8), 4, "does not fit"),
        (bits(*["1010", "10"] * 8), 3, "does not begin with an end of line"),
        (bits(*[END + "101011"] * 8), 3, "does not fit"),
        (bits(*[END + "00110101" + "0000110111"] * 8), 3, "does not fit"),
        (bits(*["10101001"] * 8), 2, "does not fit"),
    ],
)
def test_ccitt_that_no_writer_writes_is_refused(data: bytes, compression: int, message: str) -> None:
    with pytest.raises(BadPair, match=message):
        decode_label(strips(data, compression), as_index=True)


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ({"t293": (2,)}, "the uncompressed mode of CCITT"),
        ({"t258": (8,)}, "a TIFF with CCITT and 8 bits"),
        ({"t317": (2,)}, "the predictor 2"),
        ({"t279": (5,)}, "does not fit|cut short"),
    ],
)
def test_other_tiffs_with_ccitt_are_refused_by_name(tags: dict[str, Any], message: str) -> None:
    with pytest.raises(BadPair, match=message):
        decode_label(strips(bits("1" * 7, "0" * 40), 4, **tags), as_index=True)


# White is zero


def test_an_image_in_which_white_is_zero_looks_as_other_programs_show_it() -> None:
    for pixels in (INDEX, np.packbits(MASK, axis=1)):
        one_bit: dict[str, Any] = {} if pixels is INDEX else {"t256": (56,), "t258": (1,)}
        data = tiff(pixels, t262=(0,), **one_bit)
        shown = np.asarray(Image.open(io.BytesIO(data)).convert("L"))
        assert np.array_equal(decode_image(data, RULES)[..., 2], shown)
        assert shown.max() == 255


def test_a_label_in_which_white_is_zero_is_refused() -> None:
    """GDAL and tifffile return the numbers in the file, Pillow and OpenCV their opposites."""
    for as_index in (True, False):
        with pytest.raises(BadPair, match=r"white is zero: in labels .* save it with black as zero"):
            decode_label(tiff(INDEX, t262=(0,)), as_index)
