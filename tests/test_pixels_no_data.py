"""Pixels without data: out of statistics, out of labels and out of means, as rasterio masks them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import good, json_of, run
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from packer import PictureField, ValuesField, build_pack, pack_stats, verify_pack
from packer.decoding.no_data import without_data
from packer.errors import InputError, UsageError
from packer.pixels.placement import Placement, scaled_size
from packer.pixels.stored_picture import store_picture, store_with_data
from packer.pixels.valid_mean import is_valid
from readers import open_dataset, to_device
from readers.contract import giant
from readers.contract.errors import RequestError
from readers.contract.field_entry import read_field
from readers.contract.json_entry import Entry, JsonProblem
from readers.contract.manifest import Manifest
from readers.contract.statistics import MaskedStatistics
from readers.pictures.draw import HATCHED, draw

pytestmark = [
    pytest.mark.usefixtures("in_process"),
    pytest.mark.filterwarnings("ignore:Dataset has no geotransform"),
]
rasterio: Any = pytest.importorskip("rasterio")

HEIGHT, WIDTH = 50, 70
MARKS: dict[str, float] = {"float32": -9999, "int16": -32768, "uint16": 0, "uint8": 7}


def scene(dtype: str, seed: int = 0) -> NDArray[Any]:
    """Return three bands with a corner without data, and one band with another one."""
    numbers = np.random.default_rng(seed).integers(1, 200, (3, HEIGHT, WIDTH)).astype(dtype)
    numbers[:, :20, :30] = MARKS[dtype]
    numbers[1, 40:, 5:60] = MARKS[dtype]
    return numbers


def write_scene(raw: Path, key: str, numbers: NDArray[Any], no_data: float | None = None) -> None:
    label = np.arange(numbers[0].size, dtype=np.uint8).reshape(1, *numbers.shape[1:]) % 3
    for folder, bands, mark in (("images", numbers, no_data), ("labels", label, None)):
        path = raw / folder / f"{key}.tif"
        path.parent.mkdir(parents=True, exist_ok=True)
        shape = {"count": len(bands), "height": bands.shape[1], "width": bands.shape[2], "dtype": bands.dtype}
        with rasterio.open(path, "w", driver="GTiff", nodata=mark, **shape) as file:
            file.write(bands)


def build(raw: Path, out: Path, **options: Any) -> Path:
    build_pack(raw, out, **{"classes": "3", "labels": "index", "bands": "all", "size": "native", **options})
    return out


@pytest.mark.parametrize("storage", ["npy", "hdf5", "arrow", "lmdb"])
@pytest.mark.parametrize("dtype", MARKS)
def test_statistics_are_those_of_the_masked_picture(dtype: str, storage: str, tmp_path: Path) -> None:
    for number in range(3):
        write_scene(tmp_path / "raw", f"s{number}", scene(dtype, number), MARKS[dtype])
    out = build(tmp_path / "raw", tmp_path / "out", format=storage, nodata_label="ignore")
    rows = open_dataset(out, fields=("image", "label", "valid"))
    masked, masks = [], []
    for number in range(3):
        with rasterio.open(tmp_path / f"raw/images/s{number}.tif") as file:
            masked.append(file.read(masked=True).astype(np.float64))
            masks.append(file.dataset_mask() > 0)
    truth = np.ma.stack(masked)
    scale = 255 if dtype == "uint8" else 1
    np.testing.assert_allclose(rows.mean, truth.mean((0, 2, 3)) / scale, rtol=1e-12)
    np.testing.assert_allclose(rows.std, truth.std((0, 2, 3)) / scale, rtol=1e-9)
    (stats,) = pack_stats(out)
    assert stats.fields[0].missing == tuple(truth.mask.sum((0, 2, 3)).tolist())
    for number, mask in enumerate(masks):
        image, label, valid = rows[number]
        np.testing.assert_array_equal(valid.numpy(), mask)
        np.testing.assert_array_equal(label.numpy() == 255, ~mask)
        expected = truth[number].filled(np.nan) if dtype == "float32" else scene(dtype, number)
        np.testing.assert_array_equal(image.numpy(), expected.astype(dtype))
    assert verify_pack(out, deep=True) == []


def test_normalised_pixels_without_data_are_0(tmp_path: Path) -> None:
    write_scene(tmp_path / "raw", "a", scene("float32"), -9999)
    write_scene(tmp_path / "raw", "b", scene("float32", 1), -9999)
    rows = open_dataset(build(tmp_path / "raw", tmp_path / "out"), fields=("image", "valid"))
    ((images, valid),) = rows.loader(2).to("cpu", normalize=True)
    missing = np.isnan(np.stack([rows[0][0].numpy(), rows[1][0].numpy()]))
    assert torch.isfinite(images).all()
    assert (images.numpy()[missing] == 0).all()
    assert abs(float(images.numpy()[~missing].mean())) < 1e-5
    np.testing.assert_array_equal(valid.numpy(), ~missing.all(1))
    plain = torch.utils.data.DataLoader(rows, 2)
    ((again, _),) = to_device(
        plain, "cpu", normalize=(rows.mean, rows.std), fields=("image", "valid"), nodata=float("nan")
    )
    torch.testing.assert_close(again, images)


def test_the_mask_of_a_window_has_no_data_outside_of_the_picture(tmp_path: Path) -> None:
    write_scene(tmp_path / "raw", "a", scene("uint16"), 0)
    rows = open_dataset(build(tmp_path / "raw", tmp_path / "out"), fields=("valid", "image"))
    ((valid, image),) = rows.loader(1, crop=(HEIGHT + 20, WIDTH + 10), shuffle=True)
    np.testing.assert_array_equal(valid.numpy(), (image.numpy() != 0).any(1))
    with pytest.raises(RequestError, match='"valid" says where a picture has data; read the picture, too'):
        open_dataset(tmp_path / "out", fields=("label", "valid"))


def test_nan_is_bad_or_no_data(tmp_path: Path) -> None:
    numbers = scene("float32")
    numbers[numbers == -9999] = np.nan
    write_scene(tmp_path / "raw", "a", numbers)
    with pytest.raises(InputError, match="or --nodata nan for pixels without data"):
        build(tmp_path / "raw", tmp_path / "out")
    rows = open_dataset(build(tmp_path / "raw", tmp_path / "out", nodata="nan"))
    np.testing.assert_array_equal(rows[0].image.numpy(), numbers)
    numbers[0, 3, 3] = np.inf
    write_scene(tmp_path / "raw", "a", numbers)
    with pytest.raises(InputError, match="the number inf at row 3, column 3"):
        build(tmp_path / "raw", tmp_path / "out", nodata="nan")


def test_each_file_may_name_a_number_of_its_own(tmp_path: Path) -> None:
    """Floating-point numbers become NaN. Of whole numbers one number must do for all files."""
    for key, mark in (("a", -9999.0), ("b", -3.4e38), ("c", None)):
        numbers = scene("float32")
        write_scene(tmp_path / "raw", key, np.where(numbers == -9999, np.float32(mark or 1), numbers), mark)
    rows = open_dataset(build(tmp_path / "raw", tmp_path / "out"))
    assert [int(np.isnan(rows[number].image.numpy()).sum()) for number in range(3)] == [2350, 2350, 0]
    for key, whole in (("a", 0), ("b", 0), ("c", 9)):
        write_scene(tmp_path / "raw", key, scene("uint16"), whole)
    words = "names 9 for pixels without data, and other files 0; --nodata NUMBER states one for all"
    with pytest.raises(InputError, match=words):
        build(tmp_path / "raw", tmp_path / "out")
    built = build(tmp_path / "raw", tmp_path / "out", nodata=0)
    assert Manifest.load(built).fields[0].fill == 0


def test_probe_reads_pictures_that_name_a_number(tmp_path: Path) -> None:
    numbers = scene("float32")
    numbers[:, 30:, 60:] = np.nan
    write_scene(tmp_path / "raw", "a", numbers, -9999)
    probed = json_of("probe", "--json", tmp_path / "raw")
    assert not probed["bad"]
    assert "no-data:image=-9999" in {each["accept"] for each in probed["findings"]}


def test_none_packs_all_pixels_alike(tmp_path: Path) -> None:
    write_scene(tmp_path / "raw", "a", scene("float32"), -9999)
    built = build(tmp_path / "raw", tmp_path / "out", nodata="none")
    assert not Manifest.load(built).fields[0].no_data
    assert open_dataset(built)[0].image.min() == -9999
    assert "no-data:image=-9999" in str(json_of("build", "--json", "--nodata", "none", "--bands", "all", "--classes", 3,
                                                tmp_path / "raw", tmp_path / "again")["findings"])  # fmt: skip


def test_numbers_that_a_type_does_not_have(tmp_path: Path) -> None:
    """GDAL writes -9999 also for bytes: no pixel has it. A user who states it gets a message."""
    write_scene(tmp_path / "raw", "a", scene("uint16"))
    for mark, options in (("-9999", {}), ("nan", {}), ("0", {"image_range": (0, 100)}), ("0.5", {})):
        with pytest.raises(UsageError, match=f"--nodata {mark}: no number of uint"):
            build(tmp_path / "raw", tmp_path / "out", nodata=mark, **options)
    words = run("build", "--nodata", "black", tmp_path / "raw", tmp_path / "out").output
    assert "'black': expected file, none, nan or a number, such as -9999" in words


def test_a_range_has_nan_in_floating_point(tmp_path: Path) -> None:
    write_scene(tmp_path / "raw", "a", scene("uint16"), 0)
    built = build(tmp_path / "raw", tmp_path / "out", image_range=(1, 201), image_dtype="float16")
    image = open_dataset(built)[0].image.numpy()
    np.testing.assert_array_equal(np.isnan(image), scene("uint16") == 0)
    np.testing.assert_allclose(image[~np.isnan(image)], (scene("uint16")[scene("uint16") > 0] - 1) / 200, atol=1e-3)
    in_bytes = build(tmp_path / "raw", tmp_path / "bytes", image_range=(1, 201))
    assert not Manifest.load(in_bytes).fields[0].no_data


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_giant_rows_are_the_same(dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_scene(tmp_path / "raw", "a", scene(dtype), MARKS[dtype])
    options = {"nodata_label": "ignore", "encode": ["image=tiles-zstd:16", "label=tiles:16"]}
    at_once = build(tmp_path / "raw", tmp_path / "at_once", **options)
    monkeypatch.setattr(giant, "GIANT", 0)
    in_strips = build(tmp_path / "raw", tmp_path / "in_strips", **options)
    shards = [sorted((path / "shards").iterdir()) for path in (at_once, in_strips)]
    assert [path.name for path in shards[0]] == [path.name for path in shards[1]]
    for ours, theirs in zip(*shards, strict=True):
        assert ours.read_bytes() == theirs.read_bytes()


def test_a_changed_header_builds_as_a_fresh_build(tmp_path: Path) -> None:
    for key in "ab":
        write_scene(tmp_path / "raw", key, scene("float32"), -9999)
    build(tmp_path / "raw", tmp_path / "out")
    for mark in (None, 5.0, -9999.0):
        write_scene(tmp_path / "raw", "b", scene("float32"), mark)
        build(tmp_path / "raw", tmp_path / "out")
        fresh = build(tmp_path / "raw", tmp_path / f"fresh{mark}")
        ours, theirs = Manifest.load(tmp_path / "out"), Manifest.load(fresh)
        assert ours.splits == theirs.splits
        assert ours.fields == theirs.fields


def test_a_pack_of_a_pack_keeps_them(tmp_path: Path) -> None:
    write_scene(tmp_path / "raw", "a", scene("float32"), -9999)
    first = build(tmp_path / "raw", tmp_path / "out")
    build_pack(first, tmp_path / "again", format="lmdb", size=(25, 35))
    field = Manifest.load(tmp_path / "again").fields[0]
    assert field.no_data
    assert field.fill == "nan"
    small = open_dataset(tmp_path / "again")[0].image.numpy()
    assert np.isnan(small[:, :10, :15]).all()
    assert np.isfinite(small[0, 10:]).all()


def test_values_take_the_number_of_their_file(tmp_path: Path) -> None:
    numbers = scene("float32")
    write_scene(tmp_path / "raw", "a", numbers, -9999)
    fields = [PictureField(files="images/{key}", bands="all"), ValuesField("h", "images/{key}")]
    for folder in ("images",):
        with rasterio.open(tmp_path / f"raw/{folder}/a.tif", "w", driver="GTiff", count=1, height=HEIGHT, width=WIDTH,
                           dtype="float32", nodata=-9999) as file:  # fmt: skip
            file.write(numbers[:1])
    build_pack(tmp_path / "raw", tmp_path / "out", fields=fields, size="native")
    values = open_dataset(tmp_path / "out", fields=("h",))[0][0].numpy()
    np.testing.assert_array_equal(np.isnan(values), numbers[0] == -9999)


def test_they_are_drawn_as_ignored(tmp_path: Path) -> None:
    for dtype in ("float32", "uint8"):
        write_scene(tmp_path / dtype, "a", scene(dtype), MARKS[dtype])
        built = build(tmp_path / dtype, tmp_path / f"{dtype}.out")
        field, image = Manifest.load(built).fields[0], open_dataset(built)[0].image.numpy()
        cover = draw(field, image).cover
        assert (cover[:20, :30] == HATCHED).all()
        assert not cover[20:40].any()
    assert "missing 7" in good("info", tmp_path / "uint8.out").stdout
    shares = "  ".join(f"{100 * share:.3f} %" for share in (scene("uint8") == 7).mean((1, 2)))
    assert f"no data  {shares} of each band" in good("stats", tmp_path / "uint8.out").stdout


def test_what_cannot_be(tmp_path: Path) -> None:
    write_scene(tmp_path / "raw", "a", scene("uint8"), 7)
    with pytest.raises(UsageError, match=r"JPEG stores pictures .* not pictures in which 7 means no data"):
        build(tmp_path / "raw", tmp_path / "out", encode=["image=jpeg:95"])
    field = json.loads(json.dumps(Manifest.load(build(tmp_path / "raw", tmp_path / "out")).fields[0].to_json()))
    for change in ({"encoding": "jpeg"}, {"fill": 0.5}, {"fill": "nan"}, {"no_data": 1}):
        problems: list[JsonProblem] = []
        read_field(Entry({**field, **change}, "", problems))
        assert problems, change
    counts = {"numbers": 5, "sums": ["0"], "squares": ["0"], "missing": [6]}
    problems = []
    MaskedStatistics.from_json(Entry(counts, "", problems))
    assert problems


@given(
    st.integers(1, 12), st.integers(1, 12), st.integers(1, 20), st.integers(1, 20),
    st.sampled_from(["area", "linear", "cubic", "nearest"]), st.sampled_from(sorted(MARKS)), st.integers(0, 9),
)  # fmt: skip
@settings(deadline=None)
def test_a_mark_never_leaks_into_other_numbers(
    height: int, width: int, tall: int, wide: int, interpolation: str, dtype: str, seed: int
) -> None:
    """A picture of one number and a mark has no third number at any size, and without marks nothing changes."""
    fill = float("nan") if dtype == "float32" else MARKS[dtype]
    draws = np.random.default_rng(seed)
    pixels = np.where(draws.random((height, width, 2)) < 0.4, fill, 100).astype(dtype)
    placement = Placement.of((height, width), scaled_size((height, width), (tall, wide), "letterbox"), (tall, wide))
    out = np.empty((2, tall, wide), dtype)
    store_with_data(pixels, placement, interpolation, out, fill)
    valid = is_valid(out, fill)
    np.testing.assert_allclose(out[valid], 100, rtol=1e-6)
    whole = draws.integers(100, 120, (height, width, 2)).astype(dtype)
    plain, masked = np.empty_like(out), np.empty_like(out)
    store_picture(whole, placement, interpolation, plain, fill)
    store_with_data(whole, placement, interpolation, masked, fill)
    np.testing.assert_array_equal(plain, masked)


def test_a_mark_is_rounded_as_its_type() -> None:
    numbers = np.array([0.1, -3.4028235e38, np.inf, 5], np.float32)
    assert without_data(numbers, 0.1).tolist() == [True, False, False, False]
    assert without_data(numbers, -3.4028234663852886e38).tolist() == [False, True, False, False]
    assert without_data(numbers, float("inf")).tolist() == [False, False, True, False]
    assert without_data(numbers, 1e300).tolist() == [False] * 4
    assert without_data(np.array([0, 255], np.uint8), -1).tolist() == [False, False]
    assert without_data(np.array([0, 255], np.uint8), 255.0).tolist() == [False, True]
