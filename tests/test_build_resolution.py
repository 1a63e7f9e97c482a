"""`--resolution`: pixels of maps get one size, in the units of their coordinates, before tiles are cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from packer import build_pack
from packer.decoding.grid import Grid
from packer.decoding.header import Header
from packer.errors import BadPair, InputError, UsageError
from packer.pixels.resolution import Resolution, scaled_place
from readers import open_dataset
from readers.contract.place import GEO, Place, System

rasterio = pytest.importorskip("rasterio")
pytestmark = pytest.mark.usefixtures("in_process")
RNG = np.random.default_rng(5)
SCENES = {"at_10": (10, (120, 90)), "at_20": (20, (61, 45)), "at_5": (5, (240, 180))}


def write_map(path: Path, bands: NDArray[Any], side: float, west: float = 5e5, crs: str | None = "EPSG:32633") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    place = rasterio.Affine(side, 0, west, 0, -side, 5e6) if crs else None
    shape = {"count": len(bands), "height": bands.shape[1], "width": bands.shape[2], "dtype": bands.dtype.name}
    with rasterio.open(path, "w", driver="GTiff", crs=crs, transform=place, **shape) as file:
        file.write(bands)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Scenes with pixels of several sizes, and a further field of each kind."""
    for key, (side, size) in SCENES.items():
        images = tmp_path / "raw/images"
        write_map(images / f"{key}.tif", RNG.integers(0, 4000, (3, *size), np.uint16), side)
        write_map(tmp_path / f"raw/labels/{key}.tif", RNG.integers(0, 3, (1, *size), np.uint8), side)
        for name, numbers in {
            "ids": RNG.integers(0, 9, size, np.uint16),
            "depth": RNG.integers(0, 5, size, np.uint16),
            "overlaps/water": RNG.integers(0, 2, size, np.uint8),
        }.items():
            (tmp_path / "raw" / name).mkdir(parents=True, exist_ok=True)
            Image.fromarray(numbers).save(tmp_path / f"raw/{name}/{key}.png")
    return tmp_path / "raw"


FIELDS = (
    {"name": "objects", "kind": "ids", "from": "ids/{key}.png"},
    {"name": "depth", "kind": "values", "from": "depth/{key}.png", "invalid": 0, "interpolation": "linear"},
    {"name": "wet", "kind": "multilabel", "classes": ["water"], "from": "overlaps/{class}/{key}.png"},
)


def build(raw: Path, out: Path, **options: Any) -> Path:
    templates = {"image": "images/{key}.tif", "label": "labels/{key}.tif"}
    build_pack(raw, out, **{**templates, "classes": "3", "bands": "all", "resolution": 10, **options})
    return out


def test_pixels_are_those_of_rasterio(raw: Path, tmp_path: Path) -> None:
    pack = open_dataset(build(raw, tmp_path / "pack", size="native"), label="index")
    assert [pack.key(row) for row in range(len(pack))] == sorted(SCENES)
    for row, rule in enumerate(("average", "bilinear", "average")):
        with rasterio.open(raw / f"images/{pack.key(row)}.tif") as file:
            image = np.asarray(pack[row].image)
            theirs = file.read(out_shape=image.shape, resampling=rasterio.enums.Resampling[rule])
            assert np.abs(theirs.astype(int) - image).max() <= 1
            place = pack.place(row)
            assert place is not None
            assert place.spacing == (10, 10)
            assert place.at(*image.shape[1:]) == (file.bounds.right, file.bounds.bottom)
        assert np.asarray(pack[row].label).shape == image.shape[1:]


@pytest.mark.parametrize("image", [{}, {"image_range": (0, 4000), "bands": "1,2,3", "image_dtype": "float32"}], ids=str)
@pytest.mark.parametrize("labels", ["onehot", "index"])
def test_tiles_are_those_of_the_scaled_pictures(raw: Path, tmp_path: Path, labels: str, image: dict[str, Any]) -> None:
    options = {"fields": FIELDS, "labels": labels, **image}
    scaled = build(raw, tmp_path / "scaled", size="native", **options)
    tiles = build(raw, tmp_path / "tiles", fit="tile", size=(40, 56), overlap=8, **options)
    build_pack(scaled, tmp_path / "cut", fit="tile", size=(40, 56), overlap=8, labels=labels)
    ours, theirs = open_dataset(tiles, label="index"), open_dataset(tmp_path / "cut", label="index")
    assert len(ours) == len(theirs) > 20
    for row in range(len(ours)):
        assert ours.key(row) == theirs.key(row)
        mine, other = ours.place(row), theirs.place(row)
        assert mine is not None
        assert other is not None
        assert mine.transform == pytest.approx(other.transform)
    arrays = [sorted((out / "shards").glob("*.npy")) for out in (tiles, tmp_path / "cut")]
    assert [path.read_bytes() for path in arrays[0]] == [path.read_bytes() for path in arrays[1]]


def test_another_place_alone_makes_another_row(raw: Path, tmp_path: Path) -> None:
    out = build(raw, tmp_path / "pack", fit="tile", size=(32, 32))
    write_map(raw / "images/at_5.tif", RNG.integers(0, 9, (3, 240, 180), np.uint16), 20)
    write_map(raw / "labels/at_5.tif", RNG.integers(0, 3, (1, 240, 180), np.uint8), 20)
    again, fresh = build(raw, out, fit="tile", size=(32, 32)), build(raw, tmp_path / "fresh", fit="tile", size=(32, 32))
    shards = [{file.name: file.read_bytes() for file in (path / "shards").iterdir()} for path in (again, fresh)]
    assert shards[1].items() <= shards[0].items()
    assert len(open_dataset(again)) == len(open_dataset(fresh))


def test_a_row_is_as_large_as_a_crop(raw: Path, tmp_path: Path) -> None:
    pack = open_dataset(build(raw, tmp_path / "pack", fit="crop-or-pad", size=(100, 100)), label="index")
    images = [np.asarray(pack[row].image) for row in range(3)]
    native = open_dataset(build(raw, tmp_path / "native", size="native"))
    for row, image in enumerate(images):
        whole = np.asarray(native[row].image)
        top, left = (whole.shape[1] - 100) // 2, (100 - whole.shape[2]) // 2
        assert np.array_equal(image[:, :, left : left + whole.shape[2]], whole[:, top : top + 100])


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
def test_a_map_without_a_place_is_named(raw: Path, tmp_path: Path) -> None:
    write_map(raw / "images/at_5.tif", RNG.integers(0, 9, (3, 240, 180), np.uint16), 5, crs=None)
    with pytest.raises(InputError, match=r"at_5\.tif: has no place on a map in its header, so --resolution 10 cannot"):
        build(raw, tmp_path / "pack", size="native")


@pytest.mark.parametrize("side", [1e-6, 1e9])
def test_another_unit_is_named(raw: Path, tmp_path: Path, side: float) -> None:
    with pytest.raises(InputError, match=r"units of EPSG:32633|pixels; 1 to"):
        build(raw, tmp_path / "pack", size="native", resolution=side)


@pytest.mark.parametrize("side", ["1.2.3", "nan", "0", "-5", ""])
def test_a_wrong_side_is_named(side: str, raw: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--resolution: .*expected (a number|the side of a pixel)"):
        build(raw, tmp_path / "pack", size="native", resolution=side)


def test_pictures_are_scaled_once(raw: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it needs --size native, --fit tile or --fit crop-or-pad"):
        build(raw, tmp_path / "pack", size=(32, 32))
    with pytest.raises(UsageError, match="--spacing scales volumes"):
        build(raw, tmp_path / "pack", volumes=True)


@given(st.tuples(st.integers(1, 3000), st.integers(1, 3000)), st.floats(0.01, 1e4), st.floats(0.01, 1e4))
@settings(max_examples=200)
def test_corners_stay_on_corners(size: tuple[int, int], old: float, new: float) -> None:
    system = System(GEO, "EPSG:32633")
    header = Header("TIFF", size[1], size[0], 8, 1, grid=Grid(size, (("geo", (old, 0, 7, 0, -old, 9)),), system))
    try:
        scaled = Resolution(new, 1 << 28).size_of(header)
    except BadPair:
        assert min(size) * old / new < 0.5 or size[0] * size[1] * (old / new) ** 2 > 1 << 27
        return
    assert all(abs(side - before * old / new) <= 0.5 for side, before in zip(scaled, size, strict=True))
    place = Place(system, (old, 0, 7, 0, -old, 9))
    assert scaled_place(place, size, scaled).at(*scaled) == pytest.approx(place.at(*size))
