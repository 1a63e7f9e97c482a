"""Parts of JPEG rows have the pixels of the whole row, whatever the file. Only what a part touches is decoded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import simplejpeg
from conftest import pack
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from packer.pixels import encode as encode_module
from packer.pixels.encode import blocks_of_stretch, encode, tools_of_encodings
from packer.pixels.jpeg_rules import JpegRules
from readers import DamagedError, open_dataset
from readers.contract.fields import JPEG, Field, picture_field
from readers.contract.tile_grid import Area
from readers.formats import jpeg_parts
from readers.formats.jpeg_parts import decode_part
from readers.formats.tiled_rows import unpack_part
from readers.formats.unpack import decode_jpeg

Pixels = NDArray[np.uint8]
FULL, HALF = cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420
sides = st.integers(1, 70)


def scene(height: int, width: int, bands: int = 3) -> Pixels:
    """Return smooth colours with some noise."""
    lines, columns = np.mgrid[:height, :width]
    pixels = np.stack([lines * (2 + band) + columns * (3 - band) for band in range(bands)], 2)
    return (pixels + np.random.default_rng(1).integers(0, 30, pixels.shape)).astype(np.uint8)


def jpeg(pixels: Pixels, interval: int, *options: int) -> Pixels:
    """Return a JPEG file with a restart marker after so many blocks."""
    options = cv2.IMWRITE_JPEG_RST_INTERVAL, interval, *(options or (cv2.IMWRITE_JPEG_SAMPLING_FACTOR, FULL))
    return np.frombuffer(cv2.imencode(".jpg", pixels, options)[1].tobytes(), np.uint8)


def whole(file: Pixels, shape: tuple[int, ...]) -> Pixels:
    pixels = decode_jpeg(file, shape)
    assert pixels is not None
    return pixels.transpose(2, 0, 1).copy()


@given(
    st.tuples(sides, sides), st.sampled_from([1, 3]), st.integers(0, 20), st.booleans(), st.integers(0, 1), st.data()
)
def test_any_part_is_that_of_the_whole_row(
    size: tuple[int, int], bands: int, interval: int, is_full: bool, progressive: int, data: st.DataObject
) -> None:
    options = cv2.IMWRITE_JPEG_SAMPLING_FACTOR, FULL if is_full else HALF
    file = jpeg(scene(*size, bands), interval, *options, cv2.IMWRITE_JPEG_PROGRESSIVE, progressive)
    starts = [data.draw(st.integers(0, side)) for side in size]
    lines, columns = (slice(at, data.draw(st.integers(at, side))) for at, side in zip(starts, size, strict=True))
    expected = whole(file, (bands, *size))[:, lines, columns]
    found = decode_part(file, (bands, *size), (lines, columns))
    assert found is not None
    assert np.array_equal(found, expected)


def decoded(monkeypatch: pytest.MonkeyPatch, file: Pixels, shape: tuple[int, ...], part: Area) -> list[Any]:
    """Return the shapes that are decoded for a part, and check its pixels."""
    shapes: list[Any] = []

    def decode(stored: Pixels, shape: tuple[int, ...]) -> Pixels | None:
        shapes.append(shape)
        return decode_jpeg(stored, shape)

    expected = whole(file, shape)[:, part[0], part[1]]
    monkeypatch.setattr(jpeg_parts, "decode_jpeg", decode)
    found = decode_part(file, shape, part)
    assert found is not None
    assert np.array_equal(found, expected)
    return shapes


INSIDE = slice(17, 30), slice(70, 90)


@pytest.mark.parametrize(
    ("interval", "bands", "expected"),
    [(4, 3, (16, 32)), (4, 1, (16, 32)), (16, 3, (16, 122)), (32, 3, (16, 122)), (5, 3, (50, 122)), (0, 3, (50, 122))],
)
def test_only_the_stretches_that_a_part_touches_are_decoded(
    monkeypatch: pytest.MonkeyPatch, interval: int, bands: int, expected: tuple[int, int]
) -> None:
    file = jpeg(scene(50, 122, bands), interval)
    assert decoded(monkeypatch, file, (bands, 50, 122), INSIDE) == [(bands, *expected)]


@pytest.mark.parametrize(
    "options",
    [
        (cv2.IMWRITE_JPEG_SAMPLING_FACTOR, HALF),
        (cv2.IMWRITE_JPEG_SAMPLING_FACTOR, FULL, cv2.IMWRITE_JPEG_PROGRESSIVE, 1),
    ],
)
def test_other_files_are_decoded_as_a_whole(monkeypatch: pytest.MonkeyPatch, options: tuple[int, ...]) -> None:
    assert decoded(monkeypatch, jpeg(scene(50, 122), 4, *options), (3, 50, 122), INSIDE) == [(3, 50, 122)]


def changes() -> dict[str, Pixels]:
    """Return a file with stretches of 4 blocks, each time changed in another way."""
    file = jpeg(scene(50, 122), 4)
    marks = np.flatnonzero((file[:-1] == 0xFF) & (file[1:] & 0xF8 == 0xD0))
    extra, lost, other, numbered = (file.copy() for _ in range(4))
    extra[marks[3] + 9 : marks[3] + 11] = 0xFF, 0xD3
    lost[marks[5]] = 0
    other[marks[5] + 1] ^= 1
    numbered[marks[0] + 9 : marks[0] + 19] = 0xFF
    head = file.tobytes().index(b"\xff\xdd")
    twice = np.concatenate([file[:head], file[head : head + 6], file[head:]])
    return {
        "an extra marker": extra,
        "a lost marker": lost,
        "a marker of another number": other,
        "padding": numbered,
        "two intervals": twice,
        "cut": file[:-40],
        "without its end": np.append(file[:-2], [np.uint8(0)] * 2),
        "only a header": file[:head],
        "nothing": file[:0],
    }


@pytest.mark.parametrize("kind", changes())
def test_a_changed_file_gives_what_the_whole_row_gives(kind: str) -> None:
    file, shape = changes()[kind], (3, 50, 122)
    pixels = decode_jpeg(file, shape)
    expected = None if pixels is None else pixels.transpose(2, 0, 1)[:, :20, :40].copy()
    found = decode_part(file, shape, (slice(0, 20), slice(0, 40)))
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert np.array_equal(found, expected)


def test_a_file_of_another_size_is_refused() -> None:
    file, part = jpeg(scene(50, 122), 4), (slice(0, 8), slice(0, 8))
    for shape in ((3, 58, 122), (3, 50, 130), (1, 50, 122)):
        assert decode_part(file, shape, part) is None


def field_of(height: int, width: int, encoding: str = JPEG) -> Field:
    tile = (64, 64) if encoding != JPEG else None
    return replace(picture_field("image", "|u1", (height, width)), encoding=encoding, tile=tile)


def test_rows_have_markers_that_change_no_pixel(monkeypatch: pytest.MonkeyPatch) -> None:
    field, numbers = field_of(260, 500), np.ascontiguousarray(scene(260, 500).transpose(2, 0, 1))
    marked = encode(field, JpegRules(95), numbers, b"")
    monkeypatch.setattr(encode_module, "LEAST_MARKED", 1 << 30)
    plain = encode(field, JpegRules(95), numbers, b"")
    assert marked.numbers is not None
    assert plain.numbers is not None
    assert (marked.stored.count(b"\xff\xdd"), plain.stored.count(b"\xff\xdd")) == (1, 0)
    assert marked.stored.count(b"\xff\xd0") == -(-(33 * 3 - 1) // 8)
    assert np.array_equal(marked.numbers, plain.numbers)
    assert len(marked.stored) < 1.01 * len(plain.stored)


@pytest.mark.parametrize(
    ("size", "blocks"),
    [
        ((1024, 2048), 32),
        ((1080, 1920), 30),
        ((512, 512), 32),
        ((375, 500), 21),
        ((2000, 376), 47),  # a prime: a marker after each line
        ((2000, 96), 12),
        ((8, 65500), 23),
        ((224, 224), 0),
    ],
)
def test_a_stretch_is_a_part_of_a_line_of_blocks(size: tuple[int, int], blocks: int) -> None:
    assert blocks_of_stretch(*size) == blocks


def test_the_recipe_of_rows_that_are_a_file_each_names_their_markers() -> None:
    rows, tiles = (tools_of_encodings([field_of(512, 512, encoding)]) for encoding in (JPEG, "tiles-jpeg"))
    assert set(rows) - set(tiles) == {"restart markers in jpeg rows"}


def test_damage_is_named_where_a_part_touches_it() -> None:
    field = field_of(256, 512)
    numbers = np.ascontiguousarray(scene(256, 512).transpose(2, 0, 1))
    row = encode(field, JpegRules(95), numbers, b"")
    stored, out = np.frombuffer(bytearray(row.stored), np.uint8), np.empty((3, 40, 40), np.uint8)
    stored[-60:-4] = 0
    unpack_part(field, stored, numbers.shape, (slice(0, 40), slice(0, 40)), out)
    assert row.numbers is not None
    assert np.array_equal(out, row.numbers[:, :40, :40])
    with pytest.raises(DamagedError, match="its 'image' is not stored as jpeg of 3x256x512 numbers"):
        unpack_part(field, stored, numbers.shape, (slice(216, 256), slice(472, 512)), out)


def test_crops_of_a_pack_are_those_of_its_rows(tmp_path: Path, storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("images", "labels"):
        (tmp_path / "in" / name).mkdir(parents=True)
    for number, bands in enumerate((3, 3, 1)):
        cv2.imwrite(str(tmp_path / f"in/images/{number}.png"), scene(256 + number, 300, bands))
        cv2.imwrite(str(tmp_path / f"in/labels/{number}.png"), np.zeros((256 + number, 300), np.uint8))
    options = "--size", "native", "--classes", "3", "--labels", "index", "--encode", "image=jpeg"
    out = pack(tmp_path / "in", tmp_path / "out", "--format", storage, *options)
    data = open_dataset(out, "all")
    rows = {data.key(row): data[row][0] for row in range(len(data))}
    monkeypatch.delattr("readers.formats.unpack.decode_jpeg")  # no crop unpacks the row
    for row in range(len(data)):
        window, _ = data.window(row, (30, 50), (64, 64))
        assert np.array_equal(window, rows[data.key(row)][:, 30:94, 50:114])
        outside, _ = data.window(row, (230, 280), (64, 64))
        assert np.array_equal(outside[:, :26, :20], rows[data.key(row)][:, 230:256, 280:])


def test_a_subsampling_without_a_name_is_refused() -> None:
    """The fuzzer made its first byte: simplejpeg raises a KeyError for 4:4:1."""
    file = bytearray(simplejpeg.encode_jpeg(np.zeros((16, 16, 3), np.uint8), colorsubsampling="444"))
    assert decode_jpeg(np.frombuffer(bytes(file), np.uint8), (3, 16, 16)) is not None
    file[file.index(b"\xff\xc0") + 11] = 0x14  # the sides of the blocks of the first component
    assert decode_jpeg(np.frombuffer(bytes(file), np.uint8), (3, 16, 16)) is None
