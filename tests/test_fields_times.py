"""Time series: the bands of all dates are one picture, which readers deliver as dates of bands."""

from __future__ import annotations

import json
import math
from pathlib import Path
from traceback import format_exception
from typing import Any

import numpy as np
import pytest
import torch
from conftest import good, write_png
from drills.band_files import blocks_tiff
from numpy.typing import NDArray
from torch.utils.data import DataLoader

from packer import PictureField, Rows, build_pack, pack_stats, verify_pack
from packer.errors import InputError, PackError, RejectedError, UsageError
from packer.sources.pack import PackSource
from readers import CenterCrop, RandomCrop, RequestError, SlotDataLoader, open_dataset, to_device

pytestmark = pytest.mark.usefixtures("in_process")

TIMES, BANDS = 5, 3
SIZE = 20, 26
KEYS = [f"plot{number}" for number in range(4)]
DATES = [f"2024{month:02}15" for month in range(1, TIMES + 1)]
OPTIONS: dict[str, Any] = {"bands": "all", "labels": "index", "classes": 4, "times": TIMES}
MISSING = 0


def series_of(key: str, dtype: str = "<u2") -> NDArray[Any]:
    """Return dates of bands (T, C, H, W). A part of the third date has no data."""
    dice = np.random.default_rng(list(key.encode()))
    series = dice.integers(1, 9000, (TIMES, BANDS, *SIZE)).astype(dtype)
    series[2, :, :4] = MISSING
    return series


def stacked(series: NDArray[Any]) -> NDArray[Any]:
    """Return a series as a picture (H, W, T * C)."""
    return np.moveaxis(series.reshape(-1, *SIZE), 0, -1)


def label_of(key: str) -> NDArray[np.uint8]:
    return np.random.default_rng(len(key) + int(key[-1])).integers(0, 4, SIZE, np.uint8)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write each series as one file, and as a file for each date."""
    folder = tmp_path_factory.mktemp("series")
    for key in KEYS:
        series = series_of(key)
        (folder / f"dates/{key}").mkdir(parents=True)
        (folder / "stacks").mkdir(exist_ok=True)
        (folder / f"stacks/{key}.tif").write_bytes(blocks_tiff(np.ascontiguousarray(stacked(series))))
        for date, bands in zip(DATES, series, strict=True):
            (folder / f"dates/{key}/{date}.tif").write_bytes(
                blocks_tiff(np.ascontiguousarray(np.moveaxis(bands, 0, -1)))
            )
        write_png(folder / f"labels/{key}.png", label_of(key))
    return folder


def packed(raw: Path, out: Path, **options: Any) -> Path:
    build_pack(raw, out, **{"image": "stacks/{key}", "label": "labels/{key}", **OPTIONS, **options})
    return out


@pytest.mark.parametrize("storage", ["npy", "hdf5", "arrow", "lmdb"])
@pytest.mark.parametrize("options", [{"size": SIZE}, {"fit": "native"}, {"encode": ["image=tiles-zstd:16"]}], ids=str)
def test_a_series_is_read_as_dates_of_bands(storage: str, options: dict[str, Any], raw: Path, tmp_path: Path) -> None:
    rows = open_dataset(packed(raw, tmp_path / "out", format=storage, **options))
    assert rows.fields[0].times == TIMES
    for row, key in enumerate(KEYS):
        assert rows.key(row) == key
        assert np.array_equal(rows[row].image, series_of(key))
        assert np.array_equal(rows[row].label, label_of(key))
        assert np.array_equal(rows.window(row, (3, 5), (7, 9)).image, series_of(key)[..., 3:10, 5:14])
    assert verify_pack(tmp_path / "out", deep=True) == []
    assert f"({TIMES}, {BANDS}, " in repr(rows)
    assert f"({TIMES}, {BANDS}, " in repr(rows.loader(2))


def test_files_of_dates_are_the_same_series(raw: Path, tmp_path: Path) -> None:
    rows = open_dataset(packed(raw, tmp_path / "out", image="dates/{key}/{channel}"))
    assert rows.fields[0].bands is not None
    assert rows.fields[0].bands[BANDS] == f"{DATES[1]} band 1"
    assert all(np.array_equal(rows[row].image, series_of(key)) for row, key in enumerate(KEYS))


def test_batches_are_cropped_and_flipped_as_one_picture(raw: Path, tmp_path: Path) -> None:
    rows = open_dataset(packed(raw, tmp_path / "out", fit="native"))
    ((images, labels),) = rows.loader(len(KEYS), crop=CenterCrop((8, 10)))
    assert images.shape == (len(KEYS), TIMES, BANDS, 8, 10)
    for image, label, key in zip(images, labels, KEYS, strict=True):
        assert np.array_equal(image, series_of(key)[..., 6:14, 8:18])
        assert np.array_equal(label, label_of(key)[6:14, 8:18])
    place = np.arange(math.prod(SIZE)).reshape(SIZE)
    for image, label in rows.loader(1, crop=(8, 10), flip=True, seed=3, output="numpy"):
        found = [key for key in KEYS if np.isin(image, series_of(key)).all()]
        (key,) = found
        windows = [place[y : y + 8, x : x + 10] for y in range(13) for x in range(17)]
        cuts = [cut for window in windows for cut in (window, window[:, ::-1])]
        fits = [cut for cut in cuts if np.array_equal(series_of(key).reshape(TIMES, BANDS, -1)[..., cut], image[0])]
        assert np.array_equal(label_of(key).reshape(-1)[fits[0]], label[0])


def test_loaders_of_pytorch_have_the_axis_too(raw: Path, tmp_path: Path) -> None:
    out = packed(raw, tmp_path / "out")
    series = np.stack([series_of(key) for key in KEYS])
    for loader in (DataLoader(open_dataset(out), 4), SlotDataLoader(open_dataset(out), 4, num_workers=1)):
        ((images, _),) = loader
        assert np.array_equal(images, series)
    (images, _), *_ = DataLoader(open_dataset(out, transform=RandomCrop((6, 6))), 2)
    assert images.shape == (2, TIMES, BANDS, 6, 6)


def test_bands_are_normalised_over_all_dates(raw: Path, tmp_path: Path) -> None:
    rows = open_dataset(packed(raw, tmp_path / "out", nodata=MISSING))
    series = np.stack([series_of(key) for key in KEYS]).astype(np.float64)
    missing = series == MISSING
    bands = [series[:, :, band][~missing[:, :, band]] for band in range(BANDS)]
    assert rows.mean == pytest.approx([numbers.mean() for numbers in bands], rel=1e-12)
    assert rows.std == pytest.approx([numbers.std() for numbers in bands], rel=1e-12)
    mean, std = (np.array(numbers).reshape(1, 1, BANDS, 1, 1) for numbers in (rows.mean, rows.std))
    expected = np.where(missing, 0, (series - mean) / std)
    ((images, _),) = rows.loader(len(KEYS)).to("cpu", normalize=True)
    assert np.allclose(images, expected, atol=1e-5)
    for normalize in (True, (rows.mean, rows.std), ([*rows.mean] * TIMES, [*rows.std] * TIMES)):
        ((images, _),) = rows.loader(len(KEYS), normalize=normalize)
        assert np.allclose(images, expected, atol=1e-4)
    options: dict[str, Any] = {"normalize": (rows.mean, rows.std), "nodata": MISSING}
    ((images, _),) = to_device(rows.loader(len(KEYS)), "cpu", times=TIMES, **options)
    assert images.dtype == torch.float32
    assert np.allclose(images, expected, atol=1e-5)
    with pytest.raises(RequestError, match="images are time series, for which PyTorch has no such layout"):
        rows.loader(2).to("cpu", channels_last=True)
    (stats,) = pack_stats(tmp_path / "out")
    field = stats.fields[0]
    assert (field.times, field.bands, field.mean) == (TIMES, ("band 1", "band 2", "band 3"), rows.mean)
    assert field.missing == tuple(missing.sum((0, 1, 3, 4)).tolist())
    text = good("stats", tmp_path / "out").output
    assert f"image: picture of {TIMES} dates" in text
    assert f"{100 * 4 / SIZE[0] / TIMES:.3f} %" in text
    assert f"{TIMES} dates" in good("info", tmp_path / "out").output


def test_a_series_may_be_a_further_field(raw: Path, tmp_path: Path) -> None:
    """A picture is the image, and the series of the same place is cropped with it."""
    series = PictureField("series", "stacks/{key}", bands="all", times=TIMES)
    table = '{"name": "series", "kind": "picture", "from": "stacks/{key}", "bands": "all", "times": 5}'
    fields: list[PictureField | str] = [series, table]
    for number, field in enumerate(fields):
        out = tmp_path / f"{number}"
        build_pack(raw, out, image="dates/{key}/20240115", label="labels/{key}", bands="1", fields=[field], classes=4)
        rows = open_dataset(out, fields=("image", "series"))
        ((images, many),) = rows.loader(len(KEYS), crop=CenterCrop((8, 10)))
        assert images.shape == (len(KEYS), 1, 8, 10)
        assert many.shape == (len(KEYS), TIMES, BANDS, 8, 10)
        assert np.array_equal(images[:, 0], many[:, 0, 0])


def test_functions_and_packs_give_series(raw: Path, tmp_path: Path) -> None:
    rows = Rows(KEYS, lambda key: {"image": stacked(series_of(key)), "label": label_of(key)})
    build_pack(rows, tmp_path / "rows", **OPTIONS)
    build_pack(PackSource.at(tmp_path / "rows"), tmp_path / "again")
    for out in (tmp_path / "rows", tmp_path / "again"):
        assert np.array_equal(open_dataset(out)[2].image, series_of(KEYS[2]))
    assert json.loads((tmp_path / "again/manifest.json").read_text())["fields"][0]["times"] == TIMES


def test_an_array_of_four_axes_is_not_guessed(tmp_path: Path) -> None:
    rows = Rows(KEYS, lambda key: {"image": series_of(key), "label": label_of(key)})
    with pytest.raises(PackError) as refused:
        build_pack(rows, tmp_path / "out", **OPTIONS)
    assert "Dates of bands (T, H, W, C) are np.dstack(dates), returned by a func" in "".join(
        format_exception(refused.value)
    )


def test_series_of_other_lengths_are_refused_by_name(raw: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--times 4: the build stores 15 bands, which are not 4 dates of equally many"):
        packed(raw, tmp_path / "out", times=4)
    with pytest.raises(UsageError, match=r"--times 3: the build stores red, green and blue, .*; --bands all stores"):
        build_pack(raw, tmp_path / "out", image="dates/{key}/20240115", label="labels/{key}", classes=4, times=3)
    short = tmp_path / "short"
    for key in KEYS:
        series = series_of(key)[: TIMES - (key == KEYS[1])]
        (short / "images").mkdir(parents=True, exist_ok=True)
        (short / f"images/{key}.tif").write_bytes(blocks_tiff(np.ascontiguousarray(stacked(series))))
        write_png(short / f"labels/{key}.png", label_of(key))
    with pytest.raises(
        RejectedError, match=r"plot1.tif: has 12 bands, and most files have 15: time series have one num"
    ):
        build_pack(short, tmp_path / "out", **OPTIONS)
    for key, dates in ((KEYS[0], DATES[:3]), (KEYS[1], DATES)):
        for date in dates:
            path = tmp_path / f"some/dates/{key}/{date}.tif"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes((raw / f"dates/{key}/{date}.tif").read_bytes())
        write_png(tmp_path / f"some/labels/{key}.png", label_of(key))
    with pytest.raises(InputError, match="has no channel 20240415"):
        packed(tmp_path / "some", tmp_path / "out", image="dates/{key}/{channel}")
