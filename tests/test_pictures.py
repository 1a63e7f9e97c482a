"""Rows as pictures: every kind of field, overlays, texts from strangers, sheets of any size, half blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from any_pack import FIELDS, write_any_pack
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL.Image import Image

from readers.contract.bits import pack_bits
from readers.contract.classes import ClassTable, SegClass
from readers.contract.fields import Field, classes_field, picture_field
from readers.contract.kinds import BITS, IDS, INDEX, MULTILABEL, ONEHOT, PLANES, VALUES
from readers.contract.onehot import expand
from readers.pack import Pack
from readers.pictures import text
from readers.pictures.blocks import HALF, coloured, fitted_blocks, shades
from readers.pictures.count import class_pixels
from readers.pictures.draw import BACKGROUND, Drawing, Look, draw, ramp
from readers.pictures.legend import MOST_SHOWN, Legend, legend_of, percent
from readers.pictures.overlay import overlay
from readers.pictures.sheet import MOST_ROWS, Cell, SheetGrid, draw_sheet
from readers.pictures.shrink import fitted, mean, nearest
from readers.pictures.text import cut_to, visible, width_of
from readers.pictures.window import ShownPart, window_of
from readers.row_pictures import RowPictures, Style
from readers.row_sheet import Choice, fair_draw, row_sheet

TABLE = ClassTable(tuple(SegClass(f"class {number}") for number in range(5)))
LABEL = classes_field("label", INDEX, TABLE, (6, 9))
SIDES = st.integers(1, 24)
SIZES = st.tuples(SIDES, SIDES)
HOSTILE = (
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "\u202egnp.a\u2066",
    "k" * 500,
    "a\nb",
    "\x1b[2J\x07",
    "猫",
    "",
)


def label(size: tuple[int, int], seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).choice(np.array([0, 1, 2, 3, 4, 255], np.uint8), size)


@given(SIZES, st.integers(0, 9))
def test_every_pixel_of_an_index_label_has_its_colour_and_one_hot_is_the_same(size: tuple[int, int], seed: int) -> None:
    index, colours = label(size, seed), TABLE.palette
    drawing = draw(LABEL, index)
    assert np.array_equal(drawing.rgb[index < 5], colours.rgb[index[index < 5]])
    assert (drawing.rgb[index == 255] == colours.ignored).all()
    planes = draw(classes_field("label", ONEHOT, TABLE, size), expand(index, 5))
    assert np.array_equal(planes.rgb, drawing.rgb)
    assert np.array_equal(planes.cover, drawing.cover)


@given(SIZES, st.booleans())
def test_opacity_0_is_the_picture_and_1_the_label(size: tuple[int, int], outlines: bool) -> None:
    picture = np.random.default_rng(1).integers(0, 256, (*size, 3), np.uint8)
    drawing = draw(LABEL, label(size))
    assert np.array_equal(overlay(picture, drawing, 0), picture)
    assert np.array_equal(overlay(picture, drawing, 1, outlines), drawing.rgb)
    half = overlay(picture, drawing, 0.5)[drawing.cover == 0].astype(int)
    wanted = (picture[drawing.cover == 0].astype(int) + drawing.rgb[drawing.cover == 0]) / 2
    assert np.abs(half - wanted).max(initial=0) <= 0.5


def test_only_some_classes_are_laid_over_a_picture_and_ignored_pixels_are_hatched() -> None:
    picture, index = (
        np.full((16, 16, 3), 90, np.uint8),
        np.repeat(np.array([0, 1, 2, 255], np.uint8), 64).reshape(16, 16),
    )
    some = overlay(picture, draw(LABEL, index, Look(only={1})), 0.8)
    assert (some[index != 1] == 90).all()
    assert (some[index == 1] != 90).any()
    hatched = overlay(picture, draw(LABEL, index), 0.5)[index == 255]
    assert len({*map(tuple, hatched.tolist())}) == 3, "lines, their dark edges, and what is between them"
    assert hatched.min() < 90 < hatched.max(), "seen on dark and on bright pictures"
    edges = overlay(picture, draw(LABEL, index), 0, outlines=True)
    assert (edges[3] == TABLE.palette[0]).all()
    assert (edges[1] == 90).all()


def test_overlapping_classes_are_stripes_of_their_colours() -> None:
    planes = np.zeros((5, 16, 16), np.uint8)
    planes[1], planes[3, :, 8:] = 1, 1
    field = Field("parts", MULTILABEL, PLANES, "|u1", (5, 16, 16), classes=TABLE)
    drawing = draw(field, planes)
    assert {*map(tuple, drawing.rgb[:, :8].reshape(-1, 3).tolist())} == {TABLE.palette[1]}
    assert {*map(tuple, drawing.rgb[:, 8:].reshape(-1, 3).tolist())} == {TABLE.palette[1], TABLE.palette[3]}
    bits = draw(replace(field, form=BITS, shape=(1, 16, 16)), pack_bits(planes))
    assert np.array_equal(bits.rgb, drawing.rgb)
    assert (draw(field, planes * 0).rgb == BACKGROUND).all()
    assert (
        class_pixels(field, planes) == class_pixels(replace(field, form=BITS), pack_bits(planes)) == [0, 256, 0, 128, 0]
    )


@pytest.mark.parametrize("dtype", ["<u2", "<u4"])
def test_neighbouring_objects_have_different_colours(dtype: str) -> None:
    dice = np.random.default_rng(3)
    ids = dice.integers(0, 2**16 if dtype == "<u2" else 2**32, (12, 12), dtype=dtype[1:])
    ids[0, 0] = 0
    rgb = draw(Field("ids", IDS, INDEX, dtype, (12, 12)), ids).rgb.astype(int)
    assert (rgb[0, 0] == BACKGROUND).all()
    assert (rgb[1:] != rgb[:-1]).any(2).all()
    assert (rgb[:, 1:] != rgb[:, :-1]).any(2).all()


def test_measured_values_go_along_the_ramp_and_missing_ones_are_apart() -> None:
    field = Field("depth", VALUES, INDEX, "<f4", (1, 5), fill="nan")
    drawing = draw(field, np.array([[0, 50, 100, np.nan, np.inf]], np.float32), Look(window=ShownPart(0, 100)))
    assert drawing.rgb[0, [0, 2, 4]].tolist() == ramp()[[0, 255, 255]].tolist()
    assert drawing.cover.tolist() == [[0, 0, 0, 1, 0]]
    assert drawing.rgb[0, 3].tolist() not in ramp().tolist()
    assert drawing.note == "0 to 100"
    light = ramp().astype(int) @ np.array([299, 587, 114])
    assert (np.diff(light) >= -500).all(), "brighter is more, also in gray"


def test_a_window_is_the_range_or_percentiles_without_fill_and_infinite_numbers() -> None:
    gray = picture_field("image", "<u2", None, ("gray",))
    plane = np.arange(1000, dtype=np.uint16)
    assert window_of(gray, plane) == (9.99, 989.01)
    assert window_of(replace(gray, range=(0, 65535)), plane) == (0, 65535)
    values = Field("depth", VALUES, INDEX, "<f4", (1, 4), fill=-1)
    assert window_of(values, np.array([-1, 7, np.inf, np.nan, -1], np.float32)) == (7, 7)
    assert window_of(values, np.array([-1, np.nan], np.float32)) == (0, 0)


@pytest.mark.parametrize("bands", [1, 2, 3, 4, 13])
@pytest.mark.parametrize("dtype", ["|u1", "<u2", "<i2", "<f2", "<f4"])
@pytest.mark.parametrize("size", [(1, 1), (9, 14), (1, 300)])
@pytest.mark.filterwarnings("error")
def test_pictures_of_any_bands_dtype_and_size(bands: int, dtype: str, size: tuple[int, int]) -> None:
    numbers = np.random.default_rng(bands).normal(0, 3000, (bands, *size))
    info: Any = np.finfo(dtype) if dtype[1] == "f" else np.iinfo(dtype)
    pixels = np.clip(numbers, info.min, info.max).astype(dtype)
    if dtype[1] == "f":
        pixels.reshape(-1)[:3] = np.array([np.nan, np.inf, -np.inf])[: pixels.size]
    field = replace(picture_field("image", dtype, size, tuple(f"band {n}" for n in range(bands))))
    for look in (Look(), Look(size=(5, 7)), Look(window=ShownPart(-5, 5))):
        for each in (field, replace(field, range=None)):
            drawing = draw(each, pixels, look)
            assert drawing.rgb.shape == (*(look.size or size), 3)
            assert drawing.rgb.dtype == np.uint8
    assert ("of 13 bands" in draw(field, pixels).note) == (bands == 13)


def test_eight_bits_are_drawn_as_they_are() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (3, 8, 8), np.uint8)
    field = picture_field("image", "|u1", (8, 8))
    assert np.array_equal(draw(field, pixels).rgb, pixels.transpose(1, 2, 0))
    turned = replace(field, bands=("blue", "green", "red"))
    assert np.array_equal(draw(turned, pixels).rgb, pixels[::-1].transpose(1, 2, 0))
    assert np.array_equal(draw(field, pixels, Look(window=ShownPart(0, 255))).rgb, pixels.transpose(1, 2, 0))


@given(SIZES, SIZES)
def test_shrinking_takes_pixels_that_are_there_and_means_of_them(size: tuple[int, int], shown: tuple[int, int]) -> None:
    plane = np.arange(size[0] * size[1]).reshape(size)
    assert nearest(plane, shown).shape == mean(plane, shown).shape == shown
    assert np.isin(nearest(plane, shown), plane).all()
    assert (mean(np.full(size, 7.0), shown) == 7).all()
    height, width = fitted(size, shown)
    assert 1 <= height <= shown[0] or size[0] == 1
    assert 1 <= width <= shown[1]


def test_the_mean_of_whole_parts_is_exact() -> None:
    plane = np.random.default_rng(0).integers(0, 256, (12, 18))
    assert np.allclose(mean(plane, (4, 6)), plane.reshape(4, 3, 6, 3).mean((1, 3)))


@pytest.mark.parametrize("name", HOSTILE)
def test_texts_of_strangers_are_harmless_and_fit(name: str) -> None:
    shown = visible(name)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202e\u2066]", shown)
    for width in (20, 90, 400):
        assert width_of(cut_to(name, width, 12), 12) <= max(width, width_of("…", 12))
    assert visible("猫") in ("猫", "\\u732b")
    assert visible("Straße, été") in (
        "Straße, été",
        "Stra\\u00dfe, \\u00e9t\\u00e9",
    )  # Pillow's own font has ASCII alone


def test_without_fonts_of_the_machine_other_letters_are_codes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is named like a font, but is none, is left out."""
    (tmp_path / "DejaVuSans.ttf").write_bytes(b"no font")
    monkeypatch.setattr(text, "FOLDERS", (str(tmp_path), str(tmp_path / "missing")))
    caches = (text._files, text._fonts, text._font_of)
    for cache in caches:
        cache.cache_clear()
    try:
        assert visible("ሀa") == "\\u1200a"
        assert width_of("a", 12) > 0
    finally:
        for cache in caches:
            cache.cache_clear()


def test_a_long_key_loses_its_middle() -> None:
    shown = cut_to("first/" + "x" * 500 + "/last", 120, 12)
    assert shown.startswith("fir")
    assert shown.endswith("ast")
    assert "…" in shown


@pytest.mark.parametrize(
    ("count", "size", "classes"),
    [(1, (1, 1), 1), (3, (1, 30_000), 2), (24, (30_000, 1), 150), (MOST_ROWS, (512, 1024), 65_534)],
)
def test_sheets_are_bounded_and_show_everything(count: int, size: tuple[int, int], classes: int) -> None:
    names = [f"{HOSTILE[number % len(HOSTILE)]}{number}" for number in range(min(classes, 400))]
    names += ["more"] * (classes - len(names))
    legend = legend_of(names, ClassTable((SegClass("x"),) * classes).palette, [1 / classes] * classes, 0.1)
    assert len(legend.entries) <= MOST_SHOWN + 1
    grid = SheetGrid.of([size] * count, 2, noted=True)
    height, width = grid.fitted(size)
    assert height <= grid.box[0]
    assert width <= grid.box[1]
    picture = np.zeros((height, width, 3), np.uint8)
    image = draw_sheet(
        HOSTILE[3], HOSTILE[0], grid, [Cell(HOSTILE[n % 8], [picture] * 2, "note") for n in range(count)], legend
    )
    assert image.width <= 1600
    assert image.height <= 9000
    corner = np.asarray(image)[-10:, -10:]
    assert (corner == corner[0, 0]).all(), "nothing reaches into the margin"


def test_shares_are_never_shown_as_nothing_if_there_is_something() -> None:
    assert [percent(share) for share in (0, 1e-9, 0.012345, 0.5, 1)] == ["0", "< 0.01 %", "1.23 %", "50.0 %", "100.0 %"]
    assert Legend().height(800) == 0


@given(SIZES, st.booleans())
def test_half_blocks_are_the_pixels(size: tuple[int, int], many: bool) -> None:
    picture = np.random.default_rng(2).choice(np.array([0, 95, 175, 255], np.uint8), (*size, 3))
    seen = np.array(list(pixels_of(coloured(picture, many))))
    assert np.array_equal(seen.reshape(-1, size[1], 3)[: size[0]], picture)
    plain = shades(picture)
    assert all(line.isascii() and len(line) <= size[1] for line in plain)
    height, width = fitted_blocks(size, 80, 24)
    assert 1 <= height <= 48
    assert 1 <= width <= 80


def pixels_of(lines: list[str]) -> Iterator[list[list[int]]]:
    """Yield the upper and the lower pixels of lines of half blocks, as a terminal understands their codes."""
    for line in lines:
        colours: dict[str, list[int]] = {}
        rows: list[list[list[int]]] = [[], []]
        for layer, code, half in re.findall(rf"\x1b\[([34]8);([\d;]+)m|({HALF})", line):
            if half:
                rows[0].append(colours["38"])
                rows[1].append(colours["48"])
            else:
                colours[layer] = rgb_of([int(part) for part in code.split(";")])
        yield from rows


def rgb_of(code: list[int]) -> list[int]:
    if code[0] == 2:
        return code[1:]
    if code[1] >= 232:
        return [8 + 10 * (code[1] - 232)] * 3
    levels = (0, 95, 135, 175, 215, 255)
    number = code[1] - 16
    return [levels[number // 36], levels[number // 6 % 6], levels[number % 6]]


@pytest.mark.parametrize("varied", [False, True])
def test_every_field_of_a_pack_is_drawn_alike_from_all_formats(tmp_path: Path, varied: bool) -> None:
    """Parts that lack the label or the depth are drawn, too."""
    drawn: dict[str, list[NDArray[np.uint8]]] = {}
    for storage in ("npy", "hdf5", "arrow", "lmdb"):
        write_any_pack(tmp_path / storage, storage, varied)
        pack = Pack.open(tmp_path / storage)
        rows = range(0, pack.manifest.rows, 5)
        for field in FIELDS:
            pictures = RowPictures(pack, Style(field.name, 0.5, outlines=True))
            found = [pictures.one(row) for row in rows] + [pictures.one(row, 16) for row in rows]
            assert [each.shape[:2] for each in found[: len(rows)]] == [pictures.size(row) for row in rows]
            known = drawn.setdefault(field.name, found)
            assert all(map(np.array_equal, known, found)), (storage, field.name)
            assert len(pictures.classes(0)) <= (0 if field.classes is None else len(field.classes) + 1)


@pytest.mark.parametrize("field", [None, "depth", "instance", "parts", "scan"])
def test_sheets_of_every_kind_of_field(tmp_path: Path, field: str | None) -> None:
    write_any_pack(tmp_path / "out", "npy", varied=True)
    pack = Pack.open(tmp_path / "out")
    choice = Choice(pack.rows_of("all"), ["all"], 9, 4)
    sheets = [
        row_sheet(RowPictures(pack, Style(field, colour_blind=blind)), "out", choice) for blind in (False, False, True)
    ]
    first, again, blind = (np.asarray(sheet) for sheet in sheets)
    assert isinstance(sheets[0], Image)
    assert np.array_equal(first, again), "the same seed gives the same sheet"
    assert np.array_equal(first, blind) == (field not in (None, "parts"))


def test_a_fair_draw_takes_every_row_equally_often() -> None:
    counts = np.bincount([row for seed in range(400) for row in fair_draw(40, 10, seed)], minlength=40)
    assert counts.sum() == 4000
    assert counts.min() > 60
    assert counts.max() < 145
    assert fair_draw(5, 9, 1) == [0, 1, 2, 3, 4]
    assert len({*fair_draw(10**12, 600, 1)}) == 600


def test_a_drawing_has_no_outlines_without_parts() -> None:
    picture = np.zeros((4, 4, 3), np.uint8)
    drawing = Drawing(picture + np.uint8(200), np.zeros((4, 4), np.uint8))
    assert (overlay(picture, drawing, 0, outlines=True) == 0).all()
