"""`packer extract --predictions`: arrays for rows become files for pictures, as other libraries open them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from conftest import errors_of, good
from numpy.typing import NDArray
from test_contract_place import MAP, SCAN, build, make_map, make_scan

from packer import build_pack
from packer.packs.extract import extract_rows
from readers import open_dataset
from readers.contract import giant
from readers.contract.manifest import Manifest

pytestmark = [
    pytest.mark.usefixtures("in_process"),
    pytest.mark.filterwarnings("ignore:Dataset has no geotransform"),
]
nibabel: Any = pytest.importorskip("nibabel")
rasterio: Any = pytest.importorskip("rasterio")


def predict(out: Path, scores: Path, planes: bool = False) -> None:
    """Write a prediction for each row: its labels, or a score for each class, highest for that of the label."""
    rows = open_dataset(out, label="index", split="all")
    for index in range(len(rows)):
        label = rows[index].label.numpy()
        array = np.stack([label == number for number in range(3)]).astype(np.float16) if planes else label
        path = scores / f"{rows.key(index)}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, array)


def labels_of(raw: Path) -> NDArray[np.uint8]:
    with rasterio.open(raw / "labels/s.tif") as file:
        return np.asarray(file.read(1), np.uint8)


@pytest.mark.parametrize("overlap", [0, 9])
def test_tiles_become_a_map(overlap: int, tmp_path: Path) -> None:
    raw = make_map(tmp_path / "raw")
    out = build(raw, tmp_path / "out", size=(32, 48), fit="tile", overlap=overlap)
    predict(out, tmp_path / "labels")
    predict(out, tmp_path / "scores", planes=True)
    done = good("extract", "--json", "--predictions", tmp_path / "labels", out, tmp_path / "maps").stdout
    assert {**json.loads(done), "bytes": 0} == {
        "pictures": 1, "rows": len(open_dataset(out)), "left_out": 0, "bytes": 0,
    }  # fmt: skip
    colours = Manifest.load(out).fields[1].classes.palette.rgb.tolist()  # type: ignore[union-attr]
    good("extract", "--predictions", tmp_path / "scores", "--argmax", "--weight", "average", out, tmp_path / "best")
    for folder in ("maps", "best"):
        with rasterio.open(tmp_path / folder / "s.tif") as file:
            np.testing.assert_array_equal(file.read(1), labels_of(raw))
            assert (file.crs.to_epsg(), file.transform, file.nodata) == (32633, MAP, 255)
            assert file.colormap(1)[1] == (*colours[1], 255)
            assert file.block_shapes == [(256, 256)]
    good("extract", "--predictions", tmp_path / "scores", out, tmp_path / "planes")
    with rasterio.open(tmp_path / "planes/s.tif") as file:
        assert file.dtypes == ("float32",) * 3
        np.testing.assert_array_equal(file.read().argmax(0), labels_of(raw))


def test_a_lost_tile_is_named_or_filled(tmp_path: Path) -> None:
    out = build(make_map(tmp_path / "raw"), tmp_path / "out", size=(32, 48), fit="tile")
    predict(out, tmp_path / "labels")
    (lost, *_) = sorted((tmp_path / "labels").iterdir())
    lost.unlink()
    words = errors_of(1, "extract", "--predictions", tmp_path / "labels", out, tmp_path / "maps")
    assert f"{tmp_path / 'labels'}: pictures with other predictions lack 1 row; predict them" in words
    assert lost.name in words
    assert not (tmp_path / "maps").exists()
    good("extract", "--predictions", tmp_path / "labels", "--fill", 255, out, tmp_path / "maps")
    with rasterio.open(tmp_path / "maps/s.tif") as file:
        assert (file.read(1)[:32, :48] == 255).all()
        np.testing.assert_array_equal(file.read(1)[32:], labels_of(tmp_path / "raw")[32:])


def test_a_volume_gets_the_affine_of_its_case(tmp_path: Path) -> None:
    numbers = make_scan(tmp_path / "raw")
    build_pack(tmp_path / "raw", tmp_path / "out", volumes=True, classes="3", labels="index", bands="all")
    predict(tmp_path / "out", tmp_path / "labels")
    predict(tmp_path / "out", tmp_path / "scores", planes=True)
    for scores, options in (("labels", ()), ("scores", ("--argmax",))):
        good("extract", "--predictions", tmp_path / scores, *options, tmp_path / "out", tmp_path / f"{scores}.out")
        written = nibabel.load(tmp_path / f"{scores}.out/a.nii.gz")
        np.testing.assert_allclose(written.affine, SCAN)
        np.testing.assert_array_equal(written.get_fdata(), numbers % 3)


def test_photographs_become_png_below_their_splits(tmp_path: Path) -> None:
    for split in ("train", "val"):
        for number in range(2):
            for folder in ("images", "labels"):
                path = tmp_path / "raw" / split / folder / f"{split}/p{number}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                cv2.imwrite(str(path), np.full((20, 30), number + (split == "val"), np.uint8))
    build_pack(tmp_path / "raw", tmp_path / "out", classes="3", labels="index", bands="gray")
    predict(tmp_path / "out", tmp_path / "labels")
    (tmp_path / "labels/val/p1.npy").unlink()
    text = good("extract", "--predictions", tmp_path / "labels", tmp_path / "out", tmp_path / "masks").stdout
    assert "3 pictures of 3 rows" in text
    assert "1 picture without a prediction" in text
    found = sorted(str(path.relative_to(tmp_path / "masks")) for path in (tmp_path / "masks").rglob("*.png"))
    assert found == ["train/train/p0.png", "train/train/p1.png", "val/val/p0.png"]
    mask = np.asarray(cv2.imread(str(tmp_path / "masks/val/val/p0.png"), cv2.IMREAD_UNCHANGED))
    np.testing.assert_array_equal(mask, np.ones((20, 30)))


def test_files_without_a_prediction(tmp_path: Path) -> None:
    out = build(make_map(tmp_path / "raw"), tmp_path / "out", size="native")
    command = ("extract", "--predictions", tmp_path / "scores", out, tmp_path / "maps")
    (tmp_path / "scores").mkdir()
    assert "has no prediction of a row" in errors_of(2, *command)
    for array, words in (
        (np.zeros((3, 3)), "has (3, 3) numbers of float64; expected 70x90"),
        (np.zeros((70, 90), complex), "numbers of complex128"),
        (np.full((70, 90), 300), "has the numbers 300 to 300, and no class has such ones"),
        (np.array([None]), "is not an array as np.save writes it"),
    ):
        np.save(tmp_path / "scores/s.npy", array, allow_pickle=True)
        assert words in errors_of(1, *command)
    (tmp_path / "scores/s.npy").write_bytes(b"\x93NUMPY")
    assert "s.npy: is not an array" in errors_of(1, *command)
    assert not (tmp_path / "maps").exists()
    assert "--weight, --fill and --argmax need --predictions" in errors_of(2, "extract", "--argmax", "--all", out, "x")
    assert "leave out KEYS" in errors_of(2, *command[:3], "--all", *command[3:])


@pytest.mark.parametrize("is_giant", [False, True])
def test_rows_of_a_map_are_extracted_at_their_place(
    is_giant: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also rows that are read strip by strip, which were refused."""
    out = build(make_map(tmp_path / "raw", nodata=-1), tmp_path / "out", size="native",
                encode=["image=tiles:16", "label=tiles:16"])  # fmt: skip
    if is_giant:
        monkeypatch.setattr(giant, "GIANT", 0)
    extract_rows(out, tmp_path / "rows")
    for name in ("images", "labels"):
        with (
            rasterio.open(tmp_path / f"raw/{name}/s.tif") as raw,
            rasterio.open(tmp_path / f"rows/{name}/s.tif") as row,
        ):
            np.testing.assert_array_equal(row.read(masked=True), raw.read(masked=True))
            assert (row.crs, row.transform) == (raw.crs, raw.transform)
    build_pack(tmp_path / "rows", tmp_path / "again", size="native", bands="all", classes="3", labels="index",
               pairs=tmp_path / "rows/pairs.csv")  # fmt: skip
    again, place = open_dataset(tmp_path / "again").place(0), open_dataset(out).place(0)
    assert again is not None
    assert place is not None
    assert (again.crs, again.transform) == (place.crs, place.transform)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("planes", [False, True])
def test_slices_become_a_volume_at_its_place(axis: int, planes: bool, tmp_path: Path) -> None:
    make_scan(tmp_path / "raw")
    out = build(tmp_path / "raw", tmp_path / "out", axis=axis, size="native")
    predict(out, tmp_path / "scores", planes)
    good("extract", "--predictions", tmp_path / "scores", *["--argmax"] * planes, out, tmp_path / "back")
    (path,) = (tmp_path / "back").iterdir()
    assert path.name == "a.nii.gz"
    ours, label = nibabel.load(path), nibabel.load(tmp_path / "raw/labelsTr/a.nii.gz")
    corners = np.array([*np.ndindex(2, 2, 2)]) * (np.array(ours.shape) - 1)
    for index in corners:
        x, y, z, _ = np.linalg.inv(label.affine) @ ours.affine @ [*index, 1]
        there = [round(x), round(y), round(z)]
        assert np.allclose((x, y, z), there, atol=1e-4)
        assert ours.dataobj[tuple(index)] == label.dataobj[tuple(there)]
    assert sorted(np.asarray(ours.dataobj).ravel()) == sorted(np.asarray(label.dataobj).ravel())


def test_a_lost_slice_is_named_or_filled(tmp_path: Path) -> None:
    make_scan(tmp_path / "raw")
    out = build(tmp_path / "raw", tmp_path / "out", size="native")
    predict(out, tmp_path / "scores")
    (lost,) = (tmp_path / "scores/a").glob("*3.npy")
    lost.unlink()
    assert str(lost) in errors_of(1, "extract", "--predictions", tmp_path / "scores", out, tmp_path / "back")
    good("extract", "--predictions", tmp_path / "scores", "--fill", "7", out, tmp_path / "back")
    numbers = np.asarray(nibabel.load(tmp_path / "back/a.nii.gz").dataobj)
    assert (numbers[..., 3] == 7).all()
    assert (numbers[..., [0, 1, 2, 4]] < 3).all()


def test_a_scene_in_blocks_of_several_splits_becomes_one_map(tmp_path: Path) -> None:
    raw = make_map(tmp_path / "raw")
    options: dict[str, Any] = {"size": (16, 16), "fit": "tile", "split_blocks": 32, "split": "60/40"}
    out = build(raw, tmp_path / "out", **options)
    assert len(Manifest.load(out).splits) == 2
    predict(out, tmp_path / "labels")
    good("extract", "--predictions", tmp_path / "labels", "--fill", "9", out, tmp_path / "maps")
    with rasterio.open(tmp_path / "maps/s.tif") as file:
        pixels = file.read(1)
    assert np.array_equal(pixels[pixels != 9], labels_of(raw)[pixels != 9])
    assert (pixels != 9).mean() > 0.5
