"""Places: a pixel is at one point of the world in its file, in every row that is made of it, and in predictions."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import REPO, examples, run_script
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from test_decoding_grids import geo_tiff

from packer import build_pack, stage_pack, verify_pack
from packer.decoding.decode import header_of
from packer.decoding.grid import other_place
from packer.decoding.raw_pixels import upright
from packer.packs.inspect_row import inspect_rows
from packer.shards.row_places import place_of
from readers import PredictionFile, open_dataset, stitch_stripes, write_prediction
from readers.contract.atomic import partial_path
from readers.contract.classes import ClassTable, SegClass
from readers.contract.errors import DamagedError, RequestError
from readers.contract.json_entry import Entry, JsonProblem
from readers.contract.place import GEO, NIFTI, Place, System, places_json, read_places
from readers.contract.receipt import Receipt
from readers.pictures.shrink import proportioned

pytestmark = [
    pytest.mark.usefixtures("in_process"),
    pytest.mark.filterwarnings("ignore:Dataset has no geotransform"),
]

nibabel: Any = pytest.importorskip("nibabel")
rasterio: Any = pytest.importorskip("rasterio")
Affine: Any = rasterio.Affine

HEIGHT, WIDTH = 70, 90
MAP = Affine(10, 0.5, 500_000, 0.25, -10, 4_600_000)
SCAN = np.array([[-1.5, 0.125, 0, 10], [0.0625, 2, 0, -20], [0, 0.25, 3, 5], [0, 0, 0, 1]])
FITS: dict[str, dict[str, Any]] = {
    "native": {"size": "native"},
    "stretch": {"size": (35, 45)},
    "letterbox": {"size": (30, 50), "fit": "letterbox"},
    "shorter-side": {"size": (30, 30), "fit": "shorter-side"},
    "crop-or-pad": {"size": (90, 40), "fit": "crop-or-pad"},
    "tile": {"size": (32, 48), "fit": "tile", "overlap": 7},
    "tile, shifted": {"size": (32, 48), "fit": "tile", "edge": "shift"},
}


def coordinates(transform: Any, height: int, width: int) -> NDArray[np.float32]:
    """Return two bands: x and y of the middle of each pixel, from the middle of the map on."""
    columns, rows = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    x, y = transform @ (columns, rows)
    return np.stack([x - transform.c, y - transform.f]).astype(np.float32)


def write_map(path: Path, bands: NDArray[Any], transform: Any = MAP, **facts: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    count, height, width = bands.shape
    shape = {"count": count, "height": height, "width": width, "dtype": bands.dtype}
    facts = {"crs": "EPSG:32633", "transform": transform, **facts}
    with rasterio.open(path, "w", driver="GTiff", **shape, **facts) as file:
        file.write(bands)


def make_map(raw: Path, transform: Any = MAP, **facts: Any) -> Path:
    """Write a picture whose numbers are its coordinates, and a label without a place."""
    write_map(raw / "images/s.tif", coordinates(transform, HEIGHT, WIDTH), transform, **facts)
    label = np.arange(HEIGHT * WIDTH, dtype=np.uint8).reshape(1, HEIGHT, WIDTH) % 3
    write_map(raw / "labels/s.tif", label, transform)
    return raw


def make_scan(raw: Path, affine: NDArray[np.float64] = SCAN) -> NDArray[np.int16]:
    """Write a volume and its label."""
    numbers = np.arange(7 * 9 * 5, dtype=np.int16).reshape(7, 9, 5)
    for name, array in (("imagesTr/a_0000", numbers), ("labelsTr/a", (numbers % 3).astype(np.uint8))):
        (raw / name).parent.mkdir(parents=True, exist_ok=True)
        nibabel.save(nibabel.Nifti1Image(array, affine), raw / f"{name}.nii.gz")
    return numbers


def build(raw: Path, out: Path, **options: Any) -> Path:
    build_pack(raw, out, classes="3", labels="index", bands="all", **options)
    return out


@pytest.mark.parametrize("fit", FITS)
def test_the_numbers_of_a_row_are_the_coordinates_of_its_pixels(fit: str, tmp_path: Path) -> None:
    rows = open_dataset(build(make_map(tmp_path / "raw", nodata=-1), tmp_path / "out", **FITS[fit]))
    for index in range(len(rows)):
        place, image = rows.place(index), rows[index].image.numpy()
        assert place is not None
        assert (place.kind, place.crs, place.nodata) == ("geo", "EPSG:32633", -1)
        inside = np.argwhere(np.isfinite(image).all(0))
        assert len(inside)
        for row, column in inside[:: 1 + len(inside) // 20].tolist():
            x, y = place.at(row + 0.5, column + 0.5)
            expected = image[:, row, column] + [MAP.c, MAP.f]
            assert np.abs(expected - (x, y)).max() < 0.5, (fit, rows.key(index), row, column)


@pytest.mark.parametrize("storage", ["npy", "hdf5", "arrow", "lmdb"])
def test_a_volume_has_the_affine_of_its_file(storage: str, tmp_path: Path) -> None:
    make_scan(tmp_path / "raw")
    out = build(tmp_path / "raw", tmp_path / "out", volumes=True, format=storage)
    scan, place = nibabel.load(tmp_path / "raw/imagesTr/a_0000.nii.gz"), open_dataset(out).place(0)
    assert place is not None
    assert np.array_equal(place.affine, scan.affine)
    assert np.allclose(place.spacing[::-1], scan.header.get_zooms())
    assert verify_pack(out, deep=True) == []


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("volumes", [False, True])
def test_every_voxel_of_a_slice_is_where_nibabel_has_it(axis: int, volumes: bool, tmp_path: Path) -> None:
    numbers = make_scan(tmp_path / "raw")
    rows = open_dataset(build(tmp_path / "raw", tmp_path / "out", size="native", axis=axis, volumes=volumes))
    for index in range(len(rows)):
        place, image = rows.place(index), rows[index].image.numpy()[0]
        assert place is not None
        for position in np.ndindex(image.shape):
            (voxel,) = np.argwhere(numbers == image[position])
            assert np.allclose(place.at(*position), (SCAN @ [*voxel, 1])[:3], atol=1e-5)


def test_a_scan_without_a_matrix_is_where_nibabel_assumes_it(tmp_path: Path) -> None:
    make_scan(tmp_path / "raw")
    for path in (tmp_path / "raw").rglob("*.gz"):
        image = nibabel.load(path)
        array = np.asarray(image.dataobj)
        image.header.set_sform(None, 0)
        image.header.set_qform(None, 0)
        nibabel.save(nibabel.Nifti1Image(array, None, image.header), path)
    place = open_dataset(build(tmp_path / "raw", tmp_path / "out", volumes=True)).place(0)
    assert place is not None
    assert np.allclose(place.affine, nibabel.load(tmp_path / "raw/imagesTr/a_0000.nii.gz").affine)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_turned_map_is_where_its_file_says(orientation: int) -> None:
    header = header_of(
        geo_tiff(0, t274=(orientation,), t34264=(10.0, 1.0, 0.0, 5e5, 2.0, -9.0, 0.0, 4e6, *[0.0] * 7, 1.0))
    )
    place = place_of(header)
    assert place is not None
    stored = np.arange(96).reshape(8, 12)
    turned = upright(stored, header)
    for row, column in np.ndindex(turned.shape):
        stored_row, stored_column = divmod(int(turned[row, column]), 12)
        x, y = (
            5e5 + 10 * (stored_column + 0.5) + stored_row + 0.5,
            4e6 + 2 * (stored_column + 0.5) - 9 * (stored_row + 0.5),
        )
        assert np.allclose(place.at(row + 0.5, column + 0.5), (x, y))


def test_a_picture_without_a_place_has_none(tmp_path: Path) -> None:
    raw = make_map(tmp_path / "raw")
    for path in raw.rglob("*.tif"):
        path.write_bytes(geo_tiff(1))
    out = build(raw, tmp_path / "out")
    assert open_dataset(out).place(0, whole=True) is None
    assert '"places"' not in next((out / "shards").glob("*.receipt.json")).read_text()


def test_only_rows_of_files_with_a_place_have_one(tmp_path: Path) -> None:
    raw = make_map(tmp_path / "raw")
    write_map(raw / "images/t.tif", np.ones((2, 9, 9), np.float32), crs=None, transform=None)
    write_map(raw / "labels/t.tif", np.ones((1, 9, 9), np.uint8), crs=None, transform=None)
    rows = open_dataset(build(raw, tmp_path / "out", size="native"))
    assert [rows.place(index) is None for index in range(2)] == [False, True]


def test_a_place_that_changes_is_packed_as_by_a_fresh_build(tmp_path: Path) -> None:
    raw, fresh = make_map(tmp_path / "raw"), tmp_path / "fresh"
    out = build(raw, tmp_path / "out")
    first = open_dataset(out).place(0)
    make_map(raw, MAP @ Affine.translation(3, 4))
    second = open_dataset(build(raw, out)).place(0)
    assert first is not None
    assert second is not None
    assert np.allclose(second.at(-4, -3), first.at(0, 0))
    build(raw, fresh)
    assert {path.name for path in (fresh / "shards").iterdir()} <= {path.name for path in (out / "shards").iterdir()}
    make_scan(tmp_path / "scans")
    out = build(tmp_path / "scans", tmp_path / "volumes", volumes=True)
    make_scan(tmp_path / "scans", SCAN @ np.diag([1, 1, 2, 1]))
    place = open_dataset(build(tmp_path / "scans", out, volumes=True)).place(0)
    assert place is not None
    assert place.spacing[0] == 6


def test_rows_of_a_pack_keep_their_places(tmp_path: Path) -> None:
    tiles = build(make_map(tmp_path / "raw"), tmp_path / "tiles", **FITS["tile"])
    build_pack(tiles, tmp_path / "again")
    build_pack(build(tmp_path / "raw", tmp_path / "whole", **FITS["native"]), tmp_path / "half", size=(35, 45))
    before, again = open_dataset(tiles), open_dataset(tmp_path / "again")
    assert [again.place(row) for row in range(len(again))] == [before.place(row) for row in range(len(before))]
    whole, half = open_dataset(tmp_path / "whole").place(0), open_dataset(tmp_path / "half").place(0)
    assert whole is not None
    assert half is not None
    assert half.at(7, 8) == whole.at(14, 16)
    (row,) = inspect_rows(tiles, before.key(3))
    assert row.place == before.place(3)


numbers = st.floats(-1e6, 1e6)
starts = st.floats(-50, 50)
steps = st.floats(0.1, 10)


@given(st.sampled_from([GEO, NIFTI]), st.tuples(*[numbers] * 12), st.tuples(*[starts] * 4), st.tuples(*[steps] * 4))
def test_a_part_of_a_part_is_a_part(kind: str, transform: tuple[float, ...], start: Any, step: Any) -> None:
    place = Place(System(kind), transform[:6] if kind == GEO else (*transform[:4], *transform[4:8], *transform[8:]))
    sides = 2 if kind == GEO else 3
    first, second = (start * 2)[:sides], (start[::-1] * 2)[:sides]
    fine, coarse = (step * 2)[:sides], (step[::-1] * 2)[:sides]
    twice = place.part(first, fine).part(second, coarse)
    at_once = place.part(
        [a + b * c for a, b, c in zip(first, second, fine, strict=True)],
        [a * b for a, b in zip(fine, coarse, strict=True)],
    )
    assert np.allclose(twice.transform, at_once.transform, rtol=1e-6, atol=1e-3)


PLACES = (Place(System(GEO, "EPSG:4326", (1, 1, 0, 0), (0.5,), "a|"), (1.0, 0.0, 2.5, 0.0, -1.0, 3.0), "nan"), None)
BROKEN: dict[str, Any] = {
    "an unknown key": {"more": 1},
    "rows that are numbers": {"rows": [1]},
    "another system": {"rows": [[1, "", 1, 0, 0, 0, 1, 0]]},
    "a system below 0": {"rows": [[-1, "", 1, 0, 0, 0, 1, 0]]},
    "true for a system": {"rows": [[True, "", 1, 0, 0, 0, 1, 0]]},
    "too few numbers": {"rows": [[0, "", 1, 0, 0]]},
    "a volume on a map": {"rows": [[0, "", *[1] * 12]]},
    "no number": {"rows": [[0, "", 1, 0, 0, 0, 1, "0"]]},
    "a long text": {"rows": [[0, "1" * 41, 1, 0, 0, 0, 1, 0]]},
    "a control character": {"rows": [[0, "\x1b", 1, 0, 0, 0, 1, 0]]},
    "another kind": {"systems": [{"kind": "sky", "crs": "", "keys": [], "numbers": [], "text": ""}]},
    "a large key": {"systems": [{"kind": "geo", "crs": "", "keys": [65536], "numbers": [], "text": ""}]},
}


def test_places_come_back_from_json() -> None:
    problems: list[JsonProblem] = []
    document = json.loads(json.dumps(places_json(PLACES)))
    assert read_places(Entry(document, "places", problems)) == PLACES
    assert not problems


@pytest.mark.parametrize("case", BROKEN)
def test_broken_places_are_refused(case: str) -> None:
    problems: list[JsonProblem] = []
    assert read_places(Entry({**places_json(PLACES), **BROKEN[case]}, "places", problems)) == ()
    assert problems
    assert str(problems[0]).startswith("places")


def test_a_receipt_has_a_place_for_each_row(tmp_path: Path) -> None:
    out = build(make_map(tmp_path / "raw"), tmp_path / "out", **FITS["tile"])
    receipt = Receipt.load(next((out / "shards").glob("*.receipt.json")))
    assert len(receipt.places) == receipt.rows > 1
    with pytest.raises(DamagedError, match="places: expected a place or an empty list for each of"):
        Receipt.from_text(replace(receipt, places=receipt.places[:-1]).to_text(), "r.json")


TABLE = ClassTable(
    tuple(
        SegClass(name, colour, (number,))
        for number, (name, colour) in enumerate({"land": (10, 20, 30), "water": (0, 0, 255), "road": (9, 9, 9)}.items())
    )
)
DTYPES = ("|u1", "<u2", "<i2", "<f4", "<i4", "<f8")


@settings(max_examples=examples(20))
@given(st.sampled_from(DTYPES), st.integers(1, 3), st.integers(1, 600), st.integers(1, 300), st.booleans())
def test_rasterio_reads_the_numbers_and_the_place_of_a_map(
    tmp_path_factory: pytest.TempPathFactory, dtype: str, bands: int, height: int, width: int, is_plain: bool
) -> None:
    path = tmp_path_factory.mktemp("map") / "p.tif"
    transform = (10.0, 0.0, 5e5, 0.0, -10.0, 4.6e6) if is_plain else (10.0, 0.5, 5e5, 0.25, -10.0, 4.6e6)
    pixels = np.arange(bands * height * width).astype(dtype).reshape(bands, height, width)
    write_prediction(path, pixels if bands > 1 else pixels[0], Place(System(GEO, "EPSG:32633"), transform), nodata=3)
    with rasterio.open(path) as file:
        assert np.array_equal(file.read(), pixels)
        assert file.transform == Affine(*transform)
        assert (file.crs.to_epsg(), file.nodata, file.profile["compress"]) == (32633, 3, "deflate")


def test_a_map_has_the_colours_of_its_classes_and_the_system_of_its_file(tmp_path: Path) -> None:
    own = "+proj=laea +lat_0=52 +lon_0=10 +x_0=4321000 +y_0=3210000 +ellps=GRS80 +units=m"
    raw = make_map(tmp_path / "raw", crs=rasterio.CRS.from_proj4(own))
    write_map(raw / "labels/s.tif", np.zeros((1, HEIGHT, WIDTH), np.uint8), crs=rasterio.CRS.from_proj4(own))
    place = open_dataset(build(raw, tmp_path / "out", size="native")).place(0)
    write_prediction(tmp_path / "p.tif", np.full((HEIGHT, WIDTH), 1, np.uint8), place, classes=TABLE)
    with rasterio.open(raw / "images/s.tif") as raw_file, rasterio.open(tmp_path / "p.tif") as file:
        assert file.crs == raw_file.crs
        assert file.transform == raw_file.transform
        assert [file.colormap(1)[number][:3] for number in range(3)] == [(10, 20, 30), (0, 0, 255), (9, 9, 9)]


@pytest.mark.parametrize("name", ["p.nii", "p.nii.gz"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_nibabel_reads_the_numbers_and_the_affine_of_a_volume(name: str, dtype: str, tmp_path: Path) -> None:
    for bands, transform in ((None, SCAN), (4, SCAN), (None, SCAN / 3)):
        place = Place(System(NIFTI), tuple(transform[:3].ravel().tolist()))
        shape = (5, 9, 7) if bands is None else (bands, 5, 9, 7)
        scores = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
        write_prediction(tmp_path / name, scores, place)
        image = nibabel.load(tmp_path / name)
        assert np.array_equal(np.asarray(image.dataobj), scores.T)
        assert np.array_equal(image.affine[:3], transform[:3].astype(np.float32))
        assert image.get_data_dtype() == np.dtype(dtype)


def test_tiles_become_a_map_that_lies_on_its_picture(tmp_path: Path) -> None:
    rows = open_dataset(build(make_map(tmp_path / "raw"), tmp_path / "out", **FITS["tile"]))
    place = rows.place(4, whole=True)
    untiled = open_dataset(build(tmp_path / "raw", tmp_path / "whole", size="native"))
    assert untiled.place(0, whole=True) == untiled.place(0)
    with PredictionFile(tmp_path / "p.tif", (HEIGHT, WIDTH), "u1", place) as file:
        for stripe in stitch_stripes((rows.key(index), rows[index].label) for index in range(len(rows))):
            file.write(stripe.pixels, stripe.start)
    with rasterio.open(tmp_path / "raw/labels/s.tif") as raw, rasterio.open(tmp_path / "p.tif") as stitched:
        assert np.array_equal(raw.read(), stitched.read())
        assert stitched.transform.almost_equals(raw.transform, 1e-9)


@settings(max_examples=examples(30))
@given(st.data(), st.sampled_from([(300, 290), (6, 40, 30)]), st.sampled_from([None, 3]), st.sampled_from([0, 7]))
def test_parts_in_any_order_become_the_whole(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, size: tuple[int, ...], bands: int | None, fill: int
) -> None:
    shape = size if bands is None else (bands, *size)
    path = tmp_path_factory.mktemp("parts") / ("p.tif" if len(size) == 2 else "p.nii")
    expected = np.full(shape, fill, np.int16)
    with PredictionFile(path, size, "i2", bands=bands, fill=fill) as file:
        for number in range(data.draw(st.integers(0, 6))):
            start = [data.draw(st.integers(0, side - 1)) for side in size]
            ends = [data.draw(st.integers(at + 1, side)) for at, side in zip(start, size, strict=True)]
            area: Any = (..., *map(slice, start, ends))
            expected[area] = number + np.arange(expected[area].size).reshape(expected[area].shape) % 99
            file.write(expected[area], *start)
    if len(size) == 2:
        with rasterio.open(path) as written:
            assert np.array_equal(written.read().reshape(shape), expected)
    else:
        assert np.array_equal(np.asarray(nibabel.load(path).dataobj).T, expected)


def test_a_pack_far_away_and_a_staged_copy_have_the_places(tmp_path: Path) -> None:
    out = build(make_map(tmp_path / "raw"), tmp_path / "out", **FITS["tile"])
    places = [open_dataset(out).place(row) for row in range(3)]
    rows = open_dataset(out.as_uri(), cache=tmp_path / "cache")
    assert [rows.place(row) for row in range(3)] == places
    again = pickle.loads(pickle.dumps(rows))  # noqa: S301 - our own bytes
    assert again.place(1) == places[1]
    stage_pack(out, tmp_path / "near")
    shutil.rmtree(out / "shards")
    assert open_dataset(out).place(2) == places[2]


def test_the_snippets_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_scan(tmp_path / "scans")
    build(tmp_path / "scans", tmp_path / "packed_scans", volumes=True)
    build(make_map(tmp_path / "raw"), tmp_path / "packed", **FITS["tile"])
    (tmp_path / "out").mkdir()
    text = (REPO / "docs/guide/place.md").read_text().replace("(10980, 10980)", f"({HEIGHT}, {WIDTH})")
    first, second = re.findall("^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    model = "import numpy\nmodel = lambda image: numpy.ones(image.shape[1:], 'u1')\n"
    run_script(model + first + second, tmp_path, monkeypatch)
    with rasterio.open(tmp_path / "out/scene.tif") as file:
        assert file.read().all()
    assert np.asarray(nibabel.load(tmp_path / "out/spleen_10.nii.gz").dataobj).shape == (7, 9, 5)


def test_numbers_that_a_file_cannot_have_are_refused(tmp_path: Path) -> None:
    """They wrapped: 300 became 44."""
    for dtype, number in (
        ("u1", np.uint16(300)),
        ("i2", np.int64(40000)),
        ("f2", np.float64(70000)),
        ("u1", np.int8(-1)),
    ):
        with pytest.raises(RequestError, match="a part has"):
            write_part(tmp_path, dtype, np.full((4, 4), number))
    for part in (np.full((4, 4), 9, np.int64), np.ones((4, 4), np.bool_), torch.ones(4, 4, dtype=torch.bfloat16)):
        write_part(tmp_path, "f4", part)
    write_part(tmp_path, "u1", np.full((4, 4), 200, np.int64))
    with rasterio.open(tmp_path / "p.tif") as file:
        assert (file.read(1) == 200).all()


def write_part(folder: Path, dtype: str, part: Any) -> None:
    with PredictionFile(folder / "p.tif", (4, 4), dtype) as file:
        file.write(part, np.int64(0), 0)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"size": (0, 5)}, "expected sides and bands from 1 on"),
        ({"bands": 0}, "expected sides and bands from 1 on"),
        ({"bands": 70_000}, "expected sides and bands from 1 on"),
        ({"fill": 300}, "fill=300 is not a number of uint8"),
        ({"nodata": -1}, "nodata=-1 is not a number of uint8"),
        ({"nodata": "255"}, "is not a number of uint8"),
        ({"path": "no/p.tif"}, "there is no folder"),
    ],
)
def test_facts_that_no_file_has_are_refused(facts: dict[str, Any], words: str, tmp_path: Path) -> None:
    chosen = {"path": "p.tif", "size": (5, 5), "dtype": "u1", **facts}
    with pytest.raises(RequestError, match=words):
        PredictionFile(tmp_path / chosen.pop("path"), **chosen)


def test_scores_of_a_slice_are_channels_and_not_slices(tmp_path: Path) -> None:
    place = Place(System(NIFTI), (1.0, 0.0, 5.0, 0.0, 2.0, 6.0, 0.0, 0.0, 7.0))
    write_prediction(tmp_path / "p.nii", np.zeros((3, 4, 5), np.float32), place)
    assert nibabel.load(tmp_path / "p.nii").shape == (5, 4, 1, 3)


def test_a_window_of_a_volume_is_nifti_1(tmp_path: Path) -> None:
    """A place that float32 does not have was written as NIfTI 2, which SimpleITK does not read."""
    affine = np.diag([0.1, 0.3, 0.7, 1])
    part = Place(System(NIFTI), tuple(affine[:3].ravel().tolist())).part((1, 2, 1))
    write_prediction(tmp_path / "p.nii", np.zeros((4, 5, 6), np.uint8), part)
    image = nibabel.load(tmp_path / "p.nii")
    assert type(image) is nibabel.Nifti1Image
    assert np.allclose(image.affine, part.affine, atol=1e-6)


def test_a_killed_process_leaves_nothing_for_ever(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    debris, foreign = partial_path(tmp_path, int(ended.stdout), "dead"), tmp_path / ".partial-of-another-program"
    for folder in (debris, foreign):
        folder.mkdir()
        os.utime(folder, (0, 0))
    write_part(tmp_path, "u1", np.zeros((4, 4), np.uint8))
    assert {path.name for path in tmp_path.iterdir()} == {"p.tif", foreign.name}


@pytest.mark.parametrize("orientation", [1, 3, 6])
def test_a_turned_picture_and_an_upright_label_are_compared_as_they_are_stored(orientation: int) -> None:
    transform: dict[str, Any] = {"t34264": (10.0, 0.0, 0.0, 5e5, 0.0, -10.0, 0.0, 4e6, *[0.0] * 7, 1.0)}
    image = header_of(geo_tiff(0, t274=(orientation,), **transform)).grid
    label = header_of(geo_tiff(0, **transform)).grid
    words = other_place("image", image, "label", label, "label")
    assert ("has its pixel" in words) == (orientation != 1)


def test_gdal_reads_the_sign_of_a_scale_as_we_do(tmp_path: Path) -> None:
    for name, scale in (("a", (10.0, 10.0, 0.0)), ("b", (10.0, -10.0, 0.0))):
        data = geo_tiff(0, t33550=scale, t33922=(0.0, 0.0, 0.0, 5e5, 5e6, 0.0))
        (tmp_path / f"{name}.tif").write_bytes(data)
        place = place_of(header_of(data))
        assert place is not None
        with rasterio.open(tmp_path / f"{name}.tif") as file:
            assert file.transform == Affine(*place.transform)


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "p.tif").write_bytes(b"old")
    with pytest.raises(RequestError), PredictionFile(tmp_path / "p.tif", (9, 9), "u1") as file:
        file.write(np.zeros((10, 9), np.uint8))
    assert [path.name for path in tmp_path.iterdir()] == ["p.tif"]
    assert (tmp_path / "p.tif").read_bytes() == b"old"


WRONG: dict[str, tuple[str, tuple[int, ...], str, Place | None, str]] = {
    "another suffix": ("p.png", (9, 9), "u1", None, "expected a name that ends with .tif"),
    "a volume as a map": ("p.tif", (9, 9, 9), "u1", None, "write a volume as .nii.gz"),
    "the place of a volume": ("p.tif", (9, 9), "u1", Place(System(NIFTI), (1.0,) * 12), "write a .nii.gz"),
    "the place of a map": ("p.nii", (9, 9, 9), "u1", Place(System(GEO), (1.0,) * 6), "write a .tif"),
    "complex numbers": ("p.nii", (9, 9, 9), "c8", None, "NIfTI has no numbers of complex64"),
    "dates": ("p.tif", (9, 9), "M8[s]", None, "TIFF has no numbers of datetime64"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case: str, tmp_path: Path) -> None:
    name, size, dtype, place, words = WRONG[case]
    with pytest.raises(RequestError, match=words), PredictionFile(tmp_path / name, size, dtype, place) as file:
        file.write(np.zeros(size, dtype))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("part", "start", "words"),
    [
        (np.zeros((9, 9), np.uint8), (1, 0), "is not within 1 bands of"),
        (np.zeros((2, 9, 9), np.uint8), (), "is not within 1 bands of"),
        (np.zeros((3, 3), np.uint8), (-1, 0), "is not within"),
        (np.zeros((3, 3), np.float32), (), "has numbers of uint8, a part has float32"),
    ],
)
def test_a_part_that_does_not_fit_is_refused(part: Any, start: tuple[int, ...], words: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=words), PredictionFile(tmp_path / "p.tif", (9, 9), "u1") as file:
        file.write(part, *start)
    assert not list(tmp_path.iterdir())


def test_pictures_have_the_proportions_of_the_world(tmp_path: Path) -> None:
    """Voxels of 3 mm from slice to slice were drawn as wide as those of 1.5 mm."""
    make_scan(tmp_path / "raw", np.diag([-1.5, 2, 3, 1]))
    build(tmp_path / "raw", tmp_path / "volumes", volumes=True)
    build(tmp_path / "raw", tmp_path / "slices", size="native", axis=0)
    volume, slices = (open_dataset(tmp_path / name) for name in ("volumes", "slices"))
    assert volume.show(0).size == (7, 12)  # 9 rows of 2 mm in 7 columns of 1.5 mm
    assert slices.show(0).size == (9, 8)  # 5 slices of 3 mm in 9 rows of 2 mm
    assert proportioned((10, 20), (1, 1)) == proportioned((10, 20), (1, 1.005)) == (10, 20)
    assert proportioned((10, 20), (1, 0)) == proportioned((10, 20), (1e9, 1)) == (10, 20)
    assert proportioned((10, 20), (1, 2.5)) == (10, 50)
