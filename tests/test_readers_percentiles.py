"""Percentiles of all rows: the same numbers as those of numpy.percentile, whatever the type, form and place of rows."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import errors_of, good, json_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from packer import PictureField, Rows, ValuesField, build_pack, pack_stats
from packer.errors import UsageError
from readers import RequestError, SegDataset, open_dataset
from readers import percentiles as module
from readers.contract import giant

pytestmark = pytest.mark.usefixtures("in_process")

SIZE = 19, 23
KEYS = [f"row{number}" for number in range(6)]
RANKS = (0, 0.5, 2, 50, 98, 99.5, 100)
BANDS = 4
TYPES = ("|u1", "<u2", "<i2", "<f2", "<f4")
MISSING = {"|u1": 7, "<u2": 7, "<i2": 7, "<f2": math.nan, "<f4": math.nan}


def picture(key: str, dtype: str) -> NDArray[Any]:
    """Return numbers (H,W,B), which are spread over the whole type, also around 0 and below it. Some have no data."""
    dice = np.random.default_rng(list(key.encode()))
    if dtype[1] == "f":
        numbers = dice.standard_normal((*SIZE, BANDS)) * 10.0 ** dice.integers(-4, 4, (*SIZE, BANDS))
    else:
        limits = np.iinfo(dtype)
        numbers = dice.integers(limits.min, limits.max, (*SIZE, BANDS), endpoint=True)
    numbers = numbers.astype(dtype)
    numbers[dice.random(numbers.shape) < 0.1] = MISSING[dtype]
    numbers[0, :5] = 0
    return numbers


def label(key: str) -> NDArray[np.uint8]:
    return np.random.default_rng([9, *key.encode()]).integers(0, 4, SIZE, np.uint8)


def depth(key: str) -> NDArray[np.float32]:
    numbers = np.random.default_rng([5, *key.encode()]).random(SIZE, np.float32)
    return np.where(numbers < 0.2, np.float32(np.nan), numbers)


def packed(out: Path, dtype: str, keys: list[str] = KEYS, **options: Any) -> Path:
    rows = Rows(keys, lambda key: {"image": picture(key, dtype), "label": label(key), "depth": depth(key)})
    given = {"bands": "all", "classes": 4, "ignore": ["3"], "fields": [ValuesField("depth")]}
    build_pack(rows, out, **{**given, "nodata": str(MISSING[dtype]), **options})
    return out


def expected(dtype: str, foreground: bool = False, keys: list[str] = KEYS) -> list[list[float]]:
    """Return what numpy finds, for each rank of each band. The last of four classes is ignored."""
    numbers = np.concatenate([picture(key, dtype).reshape(-1, BANDS) for key in keys]).astype(np.float64)
    labels = np.concatenate([label(key).reshape(-1) for key in keys])
    if foreground:
        numbers = numbers[(labels > 0) & (labels < 3)]
    scale = 255 if dtype == "|u1" else 1
    bands = []
    for band in numbers.T:
        missing = np.isnan(band) if math.isnan(MISSING[dtype]) else band == MISSING[dtype]
        bands.append(np.percentile(band[~missing], RANKS) / scale)
    return [list(map(float, line)) for line in np.transpose(bands)]


@pytest.mark.parametrize(
    "options", [{}, {"labels": "index"}, {"encode": ["image=tiles-zstd:16", "label=zstd"]}], ids=str
)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("numbers", [1, 1 << 22])
def test_percentiles_are_those_of_numpy(
    dtype: str, options: dict[str, Any], numbers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NUMBERS", numbers)
    rows = open_dataset(packed(tmp_path / "out", dtype, **options), fields=("image", "label", "depth"))
    for foreground in (False, True):
        found = rows.percentiles(RANKS, foreground=foreground)
        assert np.allclose(found, expected(dtype, foreground), rtol=1e-12, atol=0)
    values = np.concatenate([depth(key).reshape(-1) for key in KEYS]).astype(np.float64)
    assert np.allclose(np.ravel(rows.percentiles(RANKS, "depth")), np.nanpercentile(values, RANKS), rtol=1e-12)


@given(arrays.arrays(st.sampled_from(TYPES), st.integers(1, 200)), st.floats(0, 100))
def test_codes_have_the_order_of_the_numbers(numbers: NDArray[Any], rank: float) -> None:
    codes = module._codes(numbers)
    assert codes.dtype.kind == "u"
    assert module._decoded(codes, numbers.dtype).tobytes() == numbers.tobytes()
    finite = numbers[np.isfinite(numbers)]
    in_order = finite[np.argsort(module._codes(finite))]
    assert np.array_equal(in_order, np.sort(finite))


@pytest.mark.parametrize("dtype", TYPES)
def test_pictures_and_labels_larger_than_memory_are_read_in_strips(
    dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = open_dataset(packed(tmp_path / "out", dtype, encode=["image=tiles:16", "label=tiles-zstd:16"]))
    monkeypatch.setattr(giant, "GIANT", 0)
    monkeypatch.setattr(type(rows._pack.shard(0)), "pixels", None)
    assert np.allclose(rows.percentiles(RANKS, foreground=True), expected(dtype, True), rtol=1e-12, atol=0)


def test_volumes_series_and_rows_of_their_own_sizes(tmp_path: Path) -> None:
    """The dates of a band count together."""
    sizes = {key: (3 + number, 7, 9 - number) for number, key in enumerate(KEYS)}
    voxels = {
        key: np.random.default_rng(number).integers(-900, 900, size).astype("i2")
        for number, (key, size) in enumerate(sizes.items())
    }
    rows = Rows(
        KEYS, lambda key: {"image": voxels[key], "label": (voxels[key] > 0).astype("u1")}, sizes=sizes.__getitem__
    )
    build_pack(rows, tmp_path / "volumes", volumes=True, classes=2)
    volumes = open_dataset(tmp_path / "volumes")
    every = np.concatenate([voxels[key].reshape(-1) for key in KEYS])
    assert np.ravel(volumes.percentiles(RANKS)).tolist() == pytest.approx(np.percentile(every, RANKS).tolist())
    inside = np.percentile(every[every > 0], RANKS).tolist()
    assert np.ravel(volumes.percentiles(RANKS, foreground=True)).tolist() == pytest.approx(inside)
    series = [PictureField("series", bands="all", times=2)]
    build_pack(
        Rows(
            KEYS,
            lambda key: {"image": picture(key, "|u1")[..., :3], "label": label(key), "series": picture(key, "<u2")},
        ),
        tmp_path / "series",
        classes=4,
        fields=series,
    )
    dates = np.concatenate([picture(key, "<u2").reshape(-1, 2, 2) for key in KEYS]).astype(np.float64)
    found = open_dataset(tmp_path / "series", fields=("series",)).percentiles(RANKS, "series")
    assert np.allclose(found, np.percentile(dates, RANKS, axis=(0, 1)), rtol=1e-12)


def test_folds_and_splits_are_counted_together(tmp_path: Path) -> None:
    for key in KEYS:
        for folder, array in (("images", picture(key, "<u2")), ("labels", label(key))):
            (tmp_path / "raw" / folder).mkdir(parents=True, exist_ok=True)
            np.save(tmp_path / f"raw/{folder}/{key}.npy", array)
    build_pack(tmp_path / "raw", tmp_path / "out", bands="all", classes=4, nodata="7", folds=2)
    for fold in range(2):
        for part in ("train", "val"):
            rows = open_dataset(tmp_path / "out", part, fold=fold)
            keys = [rows.key(row) for row in range(len(rows))]
            assert keys
            assert np.allclose(rows.percentiles(RANKS), expected("<u2", keys=keys), rtol=1e-12)


def test_the_command_shows_them(tmp_path: Path) -> None:
    out = packed(tmp_path / "out", "<u2")
    arguments = ("stats", "--percentiles", "99.5,50,2", "--foreground", out)
    lines = good(*arguments).output.splitlines()
    median = expected("<u2", True)[3]
    assert f"p50   {'  '.join(f'{number:.6f}' for number in median)}" in lines
    assert [line.split()[0] for line in lines if line.startswith("p")][:3] == ["p2", "p50", "p99.5"]
    (split,) = json_of("stats", "--json", "--percentiles", "50", "--foreground", out)
    assert split["fields"][0]["percentiles"] == {"50": pytest.approx(median)}
    assert json.loads(good("stats", "--json", out).output)[0]["fields"][0]["percentiles"] == {}
    (stats,) = pack_stats(out, percentiles=(50,))
    assert stats.fields[2].percentiles["50"][0] == pytest.approx(float(np.nanmedian([depth(key) for key in KEYS])))
    assert "expected numbers from 0 to 100" in errors_of(2, "stats", "--percentiles", "101", out)
    assert "--foreground: is for --percentiles" in errors_of(2, "stats", "--foreground", out)


def test_what_has_no_percentiles_is_refused(tmp_path: Path) -> None:
    out = packed(tmp_path / "out", "<u2")
    rows = open_dataset(out)
    for options, words in (
        ({"ranks": (101,)}, r"percentiles \(101,\): expected numbers from 0 to 100"),
        ({"ranks": ()}, "expected numbers from 0 to 100"),
        ({"field": "label"}, "'label' is of the kind classes, which has no percentiles"),
        ({"field": "nothing"}, "the field 'nothing' is needed, and the fields that are read are image, label; open"),
    ):
        with pytest.raises(RequestError, match=words):
            rows.percentiles(**options)
    alone: SegDataset = open_dataset(out, fields=("image",))
    with pytest.raises(RequestError, match="percentiles: a label is needed, and the fields that are read are image"):
        alone.percentiles(foreground=True)
    images = Rows(KEYS, lambda key: {"image": picture(key, "<u2")})
    build_pack(images, tmp_path / "images", fields=[PictureField(bands="all")])
    with pytest.raises(UsageError, match="--foreground needs a field with classes"):
        pack_stats(tmp_path / "images", (50,), foreground=True)


def test_a_class_that_never_occurs_has_no_percentiles(tmp_path: Path) -> None:
    rows = Rows(KEYS, lambda key: {"image": picture(key, "<u2"), "label": np.zeros(SIZE, np.uint8)})
    build_pack(rows, tmp_path / "out", bands="all", classes=2)
    assert np.isnan(open_dataset(tmp_path / "out").percentiles(foreground=True)).all()
