"""`--rasterise stored`: objects that are thinner than a stored pixel are in the label of the stored size."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from annotated_folders import annotated_folder, box, labelme_text
from conftest import pack, run, write_png
from handmade import chunk, exif, png
from numpy.typing import NDArray

from packer.annotations.annotation import AnnotatedPicture, Annotation, Mask, Shape
from packer.annotations.coco_polygon import CocoPolygon
from packer.annotations.even_odd import EvenOddPolygon
from packer.annotations.paint import Brush, Canvas
from packer.annotations.pillow_polygon import PillowPolygon
from packer.annotations.run_lengths import RunLengths
from packer.annotations.thin_objects import Cells, keep_thin, with_crossed
from packer.annotations.yolo import YoloPolygon
from packer.decoding.header import Header
from packer.decoding.raw_pixels import before_turning, upright
from packer.packs.recipe_words import recipe_words
from packer.pixels.nearest import StoredLines, stored_lines
from packer.pixels.resize import Geometry
from readers import open_dataset
from readers.contract.manifest import Manifest
from readers.contract.receipt import Receipt
from readers.contract.tiles import Size

FITS = ("stretch", "letterbox", "crop-or-pad", "shorter-side")
Top = NDArray[np.uint8]
build = pytest.mark.usefixtures("in_process")


def lines_at(size: Size, stored: Size, fit: str = "stretch") -> StoredLines:
    return stored_lines(Geometry(stored, fit).placement(size))


def cells_of(lines: StoredLines) -> Cells:
    return Cells(lines.of_rows, lines.of_columns)


def random_top(random: np.random.Generator, size: Size) -> Top:
    """Return the objects at the top: lines, spots and larger boxes."""
    top = np.zeros(size, np.uint8)
    for number in range(1, 25):
        row, column = (random.integers(0, side) for side in size)
        height, width = random.permutation([1, 12]) if number % 2 else random.integers(1, 8, 2)
        top[row : row + height, column : column + width] = number
    return top


def kept_plainly(top: Top, cells: Cells) -> Top:
    """Return what `keep_thin` makes of a picture, pixel by pixel."""
    cell = [[(row, column) for column in cells.columns] for row in cells.rows]
    sizes = Counter(at for line in cell for at in line if 0 <= at[0] < len(top) and 0 <= at[1] < len(top[0]))
    pairs = (zip(*line, strict=True) for line in zip(top.tolist(), cell, strict=True))
    counts = Counter((number, at) for line in pairs for number, at in line if at in sizes)
    most = {number: max(count for (other, _), count in counts.items() if other == number) for number, _ in counts}
    thin = {number for number in most if number} - {number for (number, at), n in counts.items() if n == sizes[at]}
    kept = top.copy()
    for at in sizes:
        gets = [(n, number) for (number, where), n in counts.items() if where == at and number in thin]
        gets = [(n, number) for n, number in gets if 3 * n >= most[number]]
        if gets and top[at] not in thin:
            kept[at] = max(gets)[1]
    return kept


@pytest.mark.parametrize("fit", FITS)
def test_a_cell_is_what_lies_under_a_stored_pixel(fit: str) -> None:
    for size, stored in (((7, 30), (3, 9)), ((12, 5), (4, 9)), ((10, 10), (10, 3))):
        placement = Geometry(stored, fit).placement(size)
        lines = stored_lines(placement)
        for side, of in enumerate((lines.of_rows, lines.of_columns)):
            source, target = placement.source[side], placement.scaled[side]
            middle = [int(Fraction(2 * index + 1, 2) * source / target) for index in range(target)]
            under = [int(Fraction(2 * index + 1, 2) * target / source) for index in range(source)]
            taken = placement.taken[side]
            outside = {True: -1, False: source}
            expected = [middle[at] if at in range(target)[taken] else outside[at < taken.start] for at in under]
            assert of.tolist() == expected


@pytest.mark.parametrize("fit", FITS)
def test_thin_objects_get_the_cells_that_they_cross(fit: str) -> None:
    changed = 0
    for seed in range(12):
        random = np.random.default_rng(seed)
        top = random_top(random, size := tuple(random.integers(8, 30, 2).tolist()))
        lines = lines_at(size, (8, 9), fit)
        kept = top.copy()
        keep_thin(kept, cells_of(lines))
        np.testing.assert_array_equal(kept, kept_plainly(top, cells_of(lines)))
        before, after = (set(each[np.ix_(lines.rows, lines.columns)].reshape(-1).tolist()) for each in (top, kept))
        assert before <= after | {0}, "no object is lost that the picture keeps"
        changed += len(after - before)
    assert changed or fit == "crop-or-pad"


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_turned_picture_keeps_the_same(orientation: int) -> None:
    stored = random_top(np.random.default_rng(orientation), (24, 30))
    header = Header("PNG", 30, 24, 8, 1, orientation=orientation)
    expected = upright(stored, header).copy()
    lines = lines_at((expected.shape[0], expected.shape[1]), (6, 3))
    keep_thin(expected, cells_of(lines))
    keep_thin(stored, Cells(*before_turning(lines.of_rows, lines.of_columns, header)))
    np.testing.assert_array_equal(upright(stored, header), expected)


@pytest.mark.parametrize("stored", [(23, 30), (40, 31)])
def test_nothing_changes_if_no_side_shrinks(stored: Size) -> None:
    top = random_top(np.random.default_rng(0), (23, 30))
    kept = top.copy()
    keep_thin(kept, cells_of(lines_at((23, 30), stored)))
    np.testing.assert_array_equal(kept, top)


def test_a_window_keeps_what_the_picture_does() -> None:
    cells = cells_of(lines_at((40, 50), (9, 11)))
    for seed in range(30):
        random = np.random.default_rng(seed)
        row, column = random.integers(0, 30, 2).tolist()
        mask = Mask(row, column, random.random((10, 20)) < random.choice([0.1, 0.5, 1]))
        whole = np.zeros((40, 50), np.uint8)
        whole[mask.top : mask.top + 10, mask.left : mask.left + 20] = mask.inside
        keep_thin(whole, cells)
        top, left, inside = with_crossed(mask, cells)
        np.testing.assert_array_equal(whole[top : top + len(inside), left : left + inside.shape[1]], inside)
        assert whole.sum() == inside.sum()


def _shapes(points: NDArray[np.float64], size: Size) -> dict[str, Shape]:
    polygon = CocoPolygon(points)
    mask = polygon.paint(size)
    whole = np.zeros(size, np.bool_)
    whole[mask.top :, mask.left :][: mask.inside.shape[0], : mask.inside.shape[1]] = mask.inside
    edges = np.flatnonzero(np.diff(whole.T.reshape(-1), prepend=False, append=False))
    return {
        "pycocotools": polygon,
        "pixel centres": EvenOddPolygon((points,)),
        "Pillow": PillowPolygon(points),
        "OpenCV": YoloPolygon((points / size[::-1]).astype(np.float32)),
        "run lengths": RunLengths(np.diff(edges, prepend=0, append=whole.size), size),
    }


@pytest.mark.parametrize("name", _shapes(np.array([[1.0, 1], [9, 1], [9, 9]]), (10, 10)))
def test_every_object_that_the_picture_shows_is_kept(name: str) -> None:
    random, lost = np.random.default_rng(0), 0
    lines = lines_at((60, 80), (13, 20))
    for _ in range(40):
        centre, along = random.uniform(20, 40, 2), random.uniform(-6, 6, 2)
        across = np.array([-along[1], along[0]]) / np.hypot(*along)
        points = np.array([centre - along, centre + along, centre + along + across, centre - along + across])
        picture = AnnotatedPicture((Annotation("wire", (_shapes(points, (60, 80))[name],)),))
        canvas = Canvas(picture, (60, 80), Brush({"wire": 1}))
        before = canvas.lost_at(canvas.top, lines.rows, lines.columns)
        counts = canvas.counts()
        canvas.keep_thin(cells_of(lines))
        assert canvas.lost_at(canvas.top, lines.rows, lines.columns) == 0
        assert canvas.counts() == counts == {"objects painted": 1}
        lost += before
    assert lost > 5


WIRE, POST, CAR = box("wire", 0, 0, 1, 36), box("post", 0, 4, 24, 1), box("car", 8, 8, 4, 4)
FIELDS = ("--field", "instance=ids", "--field", "parts=multilabel")
HALF, STORED = ("--size", "12x18"), ("--rasterise", "stored")


def _rows(out: Path) -> list[list[NDArray[Any]]]:
    data = open_dataset(out, "all", label="index", fields=("label", "instance", "parts"))
    return [list(map(np.asarray, data[row])) for row in range(len(data))]


@build
def test_a_wire_is_in_every_field_of_the_stored_size(tmp_path: Path) -> None:
    raw = annotated_folder(tmp_path / "raw", {"a": [WIRE, POST, CAR], "b": [CAR]})
    lost = json.loads(run("build", "--json", *HALF, *FIELDS, raw, tmp_path / "picture").stdout)
    assert lost["note_totals"]["objects lost by the stored size"] == 2
    kept = json.loads(run("build", "--json", *HALF, *FIELDS, *STORED, raw, tmp_path / "stored").stdout)
    assert kept["note_totals"] == {"objects painted": 4, "pixels under other objects": 1}
    (label, ids, parts), second = _rows(tmp_path / "stored")
    expected = np.zeros((12, 18), np.uint8)
    expected[0], expected[:, 2], expected[4:6, 4:6] = 3, 2, 1  # car, post, wire
    np.testing.assert_array_equal(label, expected)
    np.testing.assert_array_equal(ids, np.array([0, 3, 2, 1])[expected])
    np.testing.assert_array_equal(parts[2, 0], np.ones(18))
    np.testing.assert_array_equal(parts[1, :, 2], np.ones(12))
    for ours, theirs in zip(second, _rows(tmp_path / "picture")[1], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert run("verify", "--deep", tmp_path / "stored").exit_code == 0


@build
@pytest.mark.parametrize("size", [(), ("--size", "24x36"), ("--size", "30x40", "--fit", "crop-or-pad")])
def test_where_nothing_is_scaled_both_choices_give_the_same_bytes(tmp_path: Path, size: tuple[str, ...]) -> None:
    raw = annotated_folder(tmp_path / "raw", {"a": [WIRE, POST, CAR], "b": [CAR]})
    sums = []
    for choice in ("picture", "stored"):
        out = pack(raw, tmp_path / choice, *size, *FIELDS, "--rasterise", choice)
        (receipt,) = (Receipt.load(path) for path in out.glob("shards/*.receipt.json"))
        sums.append([each.blake3 for each in receipt.files])
    assert sums[0] == sums[1]


@build
@pytest.mark.parametrize("fit", FITS)
def test_every_object_is_visible_or_counted_at_the_stored_size(tmp_path: Path, fit: str) -> None:
    random = Random(8)
    pictures = {f"p{number}": [_any_box(random) for _ in range(12)] for number in range(8)}
    raw = annotated_folder(tmp_path / "raw", pictures)
    lost = {}
    for choice in ("picture", "stored"):
        out, options = tmp_path / choice, (*FIELDS, "--size", "9x11", "--fit", fit, "--rasterise", choice)
        totals = json.loads(run("build", "--json", *options, raw, out).stdout)["note_totals"]
        assert sum(count for what, count in totals.items() if what.startswith("objects ")) == 8 * 12
        visible = sum(len(set(np.unique(ids).tolist()) - {0}) for _, ids, _ in _rows(out))
        assert visible == totals["objects painted"]
        lost[choice] = totals.get("objects lost by the stored size", 0)
    assert lost["stored"] < lost["picture"] or fit == "crop-or-pad"


def _any_box(random: Random) -> Any:
    height, width = random.choice([(1, 9), (9, 1), (2, 2), (6, 9)])
    return box(random.choice("abc"), random.randrange(-5, 24), random.randrange(-5, 36), height, width)


@build
@pytest.mark.parametrize("of_upright", [True, False])
def test_a_picture_that_exif_turns_keeps_the_same_wires(tmp_path: Path, of_upright: bool) -> None:
    turned, plain = tmp_path / "turned", tmp_path / "plain"
    write_png(plain / "a.png", np.zeros((36, 24, 3), np.uint8))
    turned.mkdir()
    (turned / "a.png").write_bytes(png(np.zeros((24, 108), np.uint8), 8, 2, chunk(b"eXIf", exif(6))))
    (plain / "a.json").write_text(labelme_text([box("wire", 0, 0, 1, 24), box("post", 3, 7, 30, 1)], (36, 24)))
    shapes = [box("wire", 0, 0, 24, 1), box("post", 16, 3, 1, 30)]  # before a quarter turn to the right
    text = (plain / "a.json").read_text() if of_upright else labelme_text(shapes, (24, 36))
    (turned / "a.json").write_text(text)
    small = (*FIELDS, "--size", "12x8", *STORED)
    rows = [_rows(pack(raw, tmp_path / f"of {raw.name}", *small))[0] for raw in (turned, plain)]
    for ours, theirs in zip(*rows, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert set(np.unique(rows[0][1]).tolist()) == {0, 1, 2}


@build
def test_the_recipe_says_how_objects_are_painted(tmp_path: Path) -> None:
    raw = annotated_folder(tmp_path / "raw", {"a": [WIRE, CAR]})
    words = {}
    for choice in ("picture", "stored"):
        out = pack(raw, tmp_path / "out", *HALF, "--rasterise", choice)
        words[choice] = dict(recipe_words(Manifest.load(out).recipe))["annotations"]
    assert words["picture"] == "painted at the size of the picture, and sampled as labels are"
    assert words["stored"] == f"{words['picture']}; objects thinner than a stored pixel get those that they cross"
    assert "1 reused" in run("build", "--config", tmp_path / "out/packer.toml", raw, tmp_path / "out").stdout


@build
@pytest.mark.parametrize("options", [("--size", "native"), ("--fit", "native"), ("--fit", "tile", *HALF)])
def test_tiles_and_native_rows_are_refused(tmp_path: Path, options: tuple[str, ...]) -> None:
    raw = annotated_folder(tmp_path / "raw", {"a": [CAR]})
    failed = run("build", *options, *STORED, raw, tmp_path / "out")
    assert failed.exit_code == 2
    assert "--rasterise stored: tiles and native rows have all pixels, so nothing is lost" in failed.stderr


@build
def test_label_pictures_are_refused(tmp_path: Path) -> None:
    raw = annotated_folder(tmp_path / "raw", dict.fromkeys("ab"), "images/{}.png")
    annotated_folder(raw, dict.fromkeys("ab"), "labels/{}.png")
    failed = run("build", *STORED, "--classes", "256", raw, tmp_path / "out")
    assert failed.exit_code == 2
    assert "--rasterise stored: needs annotations" in failed.stderr
