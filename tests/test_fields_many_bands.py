"""Pictures of hundreds of bands, from files as rasterio writes them to batches: every number is exact."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import good, pack_from, run, write_png
from numpy.typing import NDArray

from packer import build_pack, pack_stats, verify_pack
from packer.sources.rows import Rows
from readers import CenterCrop, open_dataset
from readers.contract import giant

rasterio: Any = pytest.importorskip("rasterio")

pytestmark = [pytest.mark.usefixtures("in_process"), pytest.mark.filterwarnings("ignore:Dataset has no geotransform")]

BANDS = 200
SIZE = 24, 36
KEYS = [f"row{number}" for number in range(4)]
OPTIONS: dict[str, Any] = {"bands": "all", "labels": "index", "classes": 3}
Arrays = dict[str, NDArray[Any]]


def cube(key: str, dtype: str) -> NDArray[Any]:
    """Return a picture (B,H,W), whose numbers differ in every band."""
    dice = np.random.default_rng(list(key.encode()))
    numbers = dice.integers(0, 250, (BANDS, *SIZE)) * (1 if dtype == "uint8" else 37)
    return (numbers + (dice.random(numbers.shape) if dtype == "float32" else 0)).astype(dtype)


def label(key: str) -> NDArray[np.uint8]:
    return np.random.default_rng(len(key)).integers(0, 3, SIZE, np.uint8)


def write_cubes(raw: Path, dtype: str, **facts: Any) -> Arrays:
    """Write pictures whose bands are together, and others whose bands are apart, in strips and in tiles."""
    cubes = {key: cube(key, dtype) for key in KEYS}
    (raw / "images").mkdir(parents=True)
    for number, (key, numbers) in enumerate(cubes.items()):
        form = {
            "interleave": ("band", "pixel")[number % 2],
            "compress": "deflate",
            "predictor": (1, 3 if dtype == "float32" else 2)[number // 2],
        }
        form |= {"tiled": True, "blockxsize": 16, "blockysize": 16} if number == 3 else {}
        shape = {"count": BANDS, "height": SIZE[0], "width": SIZE[1], "dtype": dtype}
        with rasterio.open(raw / f"images/{key}.tif", "w", driver="GTiff", **shape, **form, **facts) as file:
            file.write(numbers)
        write_png(raw / f"labels/{key}.png", label(key))
    return cubes


@pytest.mark.parametrize("storage", ["npy", "hdf5", "arrow", "lmdb"])
@pytest.mark.parametrize("encode", ["raw", "zstd", "tiles-zstd:16"])
@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_every_band_is_stored(storage: str, encode: str, dtype: str, tmp_path: Path) -> None:
    cubes = write_cubes(tmp_path / "raw", dtype)
    build_pack(tmp_path / "raw", tmp_path / "out", size=SIZE, format=storage, encode=[f"image={encode}"], **OPTIONS)
    rows = open_dataset(tmp_path / "out")
    assert rows.fields[0].bands == tuple(f"band {number}" for number in range(1, BANDS + 1))
    for row, key in enumerate(KEYS):
        assert np.array_equal(rows[row].image, cubes[key])
        with rasterio.open(tmp_path / f"raw/images/{key}.tif") as file:
            assert np.array_equal(rows[row].image, file.read())
    assert verify_pack(tmp_path / "out", deep=True) == []


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_the_mean_of_areas_and_the_statistics_are_exact(dtype: str, tmp_path: Path) -> None:
    cubes = write_cubes(tmp_path / "raw", dtype)
    build_pack(tmp_path / "raw", tmp_path / "out", size=(SIZE[0] // 2, SIZE[1] // 3), **OPTIONS)
    rows = open_dataset(tmp_path / "out")
    for row, key in enumerate(KEYS):
        blocks = cubes[key].reshape(BANDS, SIZE[0] // 2, 2, SIZE[1] // 3, 3).astype(np.float64)
        means = blocks.sum(2).sum(3) / 6
        assert np.array_equal(rows[row].image, (means if dtype == "float32" else np.rint(means)).astype(dtype))
    stored = np.stack([rows[row].image for row in range(len(rows))]).astype(np.float64)
    scale = 255 if dtype == "uint8" else 1
    (stats,) = pack_stats(tmp_path / "out")
    assert len(stats.mean) == len(rows.std) == BANDS
    for band in (0, 1, 16, 17, BANDS - 1):
        exact = sum(map(Fraction, stored[:, band].flat)) / stored[:, band].size
        assert stats.mean[band] == rows.mean[band] == float(exact / scale)
        assert math.isclose(rows.std[band], stored[:, band].std() / scale, rel_tol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"size": (30, 30), "interpolation": "linear"},
        {"size": (30, 50), "fit": "letterbox", "interpolation": "cubic"},
        {"size": (20, 50), "fit": "crop-or-pad"},
        {"size": (50, 20), "interpolation": "nearest"},
        {"size": (16, 20), "fit": "shorter-side"},
        {"size": (16, 16), "fit": "tile", "overlap": 3},
        {"fit": "native"},
    ],
    ids=str,
)
@pytest.mark.parametrize("nodata", [None, 37])
def test_each_band_is_scaled_as_if_it_were_alone(options: dict[str, Any], nodata: int | None, tmp_path: Path) -> None:
    write_cubes(tmp_path / "raw", "uint16", nodata=nodata)
    build_pack(tmp_path / "raw", tmp_path / "all", **options, **OPTIONS)
    every = open_dataset(tmp_path / "all")
    for band in (1, 17, BANDS):
        build_pack(tmp_path / "raw", tmp_path / f"{band}", **options, **{**OPTIONS, "bands": [band]})
        alone = open_dataset(tmp_path / f"{band}")
        assert len(alone) == len(every)
        for row in range(len(alone)):
            assert np.array_equal(alone[row].image, every[row].image[band - 1 : band])
            assert np.array_equal(alone[row].label, every[row].label)


@pytest.mark.parametrize("options", [{"fit": "tile", "size": (10, 20), "pad": 5}, {"fit": "native"}], ids=str)
@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_pictures_larger_than_memory_have_the_same_bytes(
    options: dict[str, Any], dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_cubes(tmp_path / "raw", dtype)
    build_pack(tmp_path / "raw", tmp_path / "at_once", **options, **OPTIONS)
    monkeypatch.setattr(giant, "GIANT", 0)
    build_pack(tmp_path / "raw", tmp_path / "in_strips", **options, **OPTIONS)
    at_once, in_strips = (sorted((tmp_path / out / "shards").iterdir()) for out in ("at_once", "in_strips"))
    assert [path.name for path in at_once] == [path.name for path in in_strips]
    assert all(ours.read_bytes() == theirs.read_bytes() for ours, theirs in zip(at_once, in_strips, strict=True))


@pytest.mark.parametrize("encode", ["raw", "tiles-zstd:16"])
@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_batches_are_cropped_and_normalised(encode: str, dtype: str, tmp_path: Path) -> None:
    cubes = write_cubes(tmp_path / "raw", dtype)
    build_pack(tmp_path / "raw", tmp_path / "out", fit="native", encode=[f"image={encode}"], **OPTIONS)
    rows = open_dataset(tmp_path / "out")
    ((images, _),) = rows.loader(len(KEYS), crop=CenterCrop((10, 11)))
    windows = np.stack([cubes[key][:, 7:17, 12:23] for key in KEYS])
    assert np.array_equal(images.numpy(), windows)
    for (image, _), window in zip(rows.loader(1, crop=CenterCrop((10, 11)), flip=True), windows, strict=True):
        assert np.array_equal(image[0], window) or np.array_equal(image[0], window[..., ::-1])
    ((normal, _),) = rows.loader(len(KEYS), crop=CenterCrop((10, 11))).to("cpu", normalize=True)
    mean, std = (np.array(numbers).reshape(1, BANDS, 1, 1) for numbers in (rows.mean, rows.std))
    assert normal.dtype == torch.float32
    assert np.allclose(normal.numpy(), (windows - mean) / std, atol=1e-4)


def test_rows_of_a_function_and_of_arrays(tmp_path: Path) -> None:
    """The bands of what a function returns are last. A stack may have them first."""
    cubes = {key: cube(key, "uint16") for key in KEYS}
    rows = Rows(KEYS, lambda key: {"image": np.moveaxis(cubes[key], 0, -1), "label": label(key)})
    build_pack(rows, tmp_path / "rows", size=SIZE, **OPTIONS)
    for order, stack in (
        ("first", np.stack([*cubes.values()])),
        ("last", np.moveaxis(np.stack([*cubes.values()]), 1, -1)),
    ):
        (tmp_path / f"{order}_arrays").mkdir()
        np.save(tmp_path / f"{order}_arrays/images.npy", stack)
        np.save(tmp_path / f"{order}_arrays/labels.npy", np.stack([label(key) for key in KEYS]))
        size = "x".join(map(str, SIZE))
        names = ("--image", "images.npy", "--label", "labels.npy")
        pack_from(
            tmp_path / f"{order}_arrays", tmp_path / order, "--size", size, "--bands", "all", "--classes", 3, *names
        )
    for out in ("rows", "first", "last"):
        packed = open_dataset(tmp_path / out)
        assert all(np.array_equal(packed[row].image, cubes[key]) for row, key in enumerate(KEYS))


def test_pages_and_tables_name_some_of_the_bands(tmp_path: Path) -> None:
    write_cubes(tmp_path / "raw", "uint16", nodata=37)
    build_pack(tmp_path / "raw", tmp_path / "out", size=SIZE, **OPTIONS)
    stats = good("stats", tmp_path / "out").output.splitlines()
    assert stats[2].split() == ["band", "mean", "std", "no", "data"]
    assert len([line for line in stats if line.startswith("band ")]) == BANDS + 1
    assert "band 16, … and 184 more bands" in good("info", tmp_path / "out").output
    assert KEYS[0] in good("show", tmp_path / "out", KEYS[0]).output
    good("report", "--quiet", "--output", tmp_path / "report.html", tmp_path / "out")
    assert "… and 184 more bands" in (tmp_path / "report.html").read_text()
    assert run("probe", tmp_path / "raw").exit_code == 0
