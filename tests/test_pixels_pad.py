"""Padding: another number than 0 around pictures, in packs and in the windows that readers take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import errors_of, good
from numpy.typing import NDArray

from packer import PictureField, Rows, build_pack, pack_stats, verify_pack
from packer.errors import UsageError
from packer.sources.pack import PackSource
from readers import CenterCrop, open_dataset

pytestmark = pytest.mark.usefixtures("in_process")

KEYS = ["a", "b", "c"]
AIR = -1024


def scan(key: str, *sides: int) -> NDArray[np.int16]:
    return np.random.default_rng(ord(key)).integers(-900, 2000, sides).astype(np.int16)


def build(out: Path, image: Any, **options: Any) -> Path:
    """Pack pictures (H,W) or (H,W,C), each with a label of its size."""
    load = lambda key: {"image": image(key), "label": np.ones(image(key).shape[:2], np.uint8)}  # noqa: E731
    rows = Rows(KEYS, load, sizes=lambda key: image(key).shape[:2])
    build_pack(rows, out, **{"classes": 2, "labels": "index", **options})
    return out


@pytest.mark.parametrize("dtype", ["int16", "uint16", "uint8", "float16", "float32"])
@pytest.mark.parametrize("storage", ["npy", "hdf5", "arrow", "lmdb"])
def test_the_padding_of_a_letterbox_has_the_number(dtype: str, storage: str, tmp_path: Path) -> None:
    pad = 77 if dtype[0] == "u" else AIR
    numbers = {key: (np.abs(scan(key, 12, 20)) % 200 + 1).astype(dtype) for key in KEYS}
    options = {"bands": "all", "size": (20, 20), "fit": "letterbox", "format": storage}
    plain, out = (build(tmp_path / f"{pad}", numbers.__getitem__, **options, pad=pad) for pad in (0, pad))
    for row, key in enumerate(KEYS):
        image, before = open_dataset(out)[row].image.numpy(), open_dataset(plain)[row].image.numpy()
        assert np.array_equal(image[0, 4:16], numbers[key])
        assert (image[0, [*range(4), *range(16, 20)]] == pad).all()
        assert np.array_equal(np.where(before == 0, pad, before), image)
        assert np.array_equal(open_dataset(out)[row].label, open_dataset(plain)[row].label)
    assert f"padding {pad}" in good("info", out).output
    assert json.loads((out / "manifest.json").read_text())["fields"][0]["fill"] == pad
    assert verify_pack(out, deep=True) == []
    (stats,) = pack_stats(out)
    stored = np.stack([open_dataset(out)[row].image.numpy() for row in range(3)]).astype(np.float64)
    assert stats.mean[0] == pytest.approx(stored.mean() / (255 if dtype == "uint8" else 1))


@pytest.mark.parametrize("fit", [{"fit": "crop-or-pad", "size": (9, 31)}, {"fit": "tile", "size": (16, 16)}], ids=str)
@pytest.mark.parametrize(
    "options", [{}, {"image_dtype": "float32"}, {"image_range": (0, 255)}, {"encode": ["image=zstd"]}], ids=str
)
def test_padding_of_colours_and_of_scaled_numbers(fit: dict[str, Any], options: dict[str, Any], tmp_path: Path) -> None:
    colours = {key: scan(key, 21, 27, 3).astype(np.uint8) for key in KEYS}
    pad = 0.25 if "image_dtype" in options else 114
    out = build(tmp_path / "out", colours.__getitem__, **fit, **options, pad=pad)
    plain = build(tmp_path / "plain", colours.__getitem__, **fit, **options)
    padded = 0
    for (image, label), (before, _) in zip(open_dataset(out), open_dataset(plain), strict=True):
        around = label.numpy() == 255
        assert (image.numpy()[:, around] == pad).all()
        assert np.array_equal(image.numpy()[:, ~around], before.numpy()[:, ~around])
        padded += int(around.sum())
    assert padded
    assert verify_pack(out, deep=True) == []


def test_windows_beyond_a_volume_are_air(tmp_path: Path) -> None:
    """Its padding was 0, which is water."""
    sizes = {"a": (4, 9, 8), "b": (6, 5, 7), "c": (3, 3, 3)}
    load = lambda key: {"image": scan(key, *sizes[key]), "label": np.ones(sizes[key], np.uint8)}  # noqa: E731
    for pad in (0, AIR):
        build_pack(
            Rows(KEYS, load, sizes=sizes.__getitem__),
            tmp_path / f"{pad}",
            volumes=True,
            classes=2,
            labels="index",
            pad=pad,
        )
        rows = open_dataset(tmp_path / f"{pad}")
        ((images, labels),) = rows.loader(3, crop=(8, 8, 8), flip=True, seed=1)
        around = labels.numpy() == 255
        assert around.any()
        assert (images.numpy()[:, 0][around] == pad).all()
        for row, key in enumerate(KEYS):
            window = rows.window(row, (-1, -1, -1), (3, 3, 3)).image[0].numpy()
            assert np.array_equal(window[1:, 1:, 1:], scan(key, *sizes[key])[:2, :2, :2])
            assert (window[0] == pad).all()
        sample = open_dataset(tmp_path / f"{pad}", transform=CenterCrop((8, 8, 8)))[2]
        assert sample[0].min() == min(pad, int(scan("c", 3, 3, 3).min()))


def test_rows_without_a_further_picture_have_its_number(tmp_path: Path) -> None:
    def load(key: str) -> dict[str, NDArray[Any]]:
        row = {"image": np.ones((4, 5, 3), np.uint8), "label": np.ones((4, 5), np.uint8)}
        return row if key == "b" else {**row, "ct": scan(key, 4, 5)}

    rows = Rows(KEYS, load, without={"ct": ["b"]})
    build_pack(rows, tmp_path / "out", classes=2, fields=[PictureField("ct", bands="all", pad=AIR)])
    packed = open_dataset(tmp_path / "out", fields=("image", "ct"))
    by_key = {packed.key(row): packed[row][1].numpy() for row in range(3)}
    assert np.array_equal(by_key["a"][0], scan("a", 4, 5))
    assert (by_key["b"] == AIR).all()


def test_a_pack_that_is_packed_again_keeps_its_number(tmp_path: Path) -> None:
    colours = {key: scan(key, 12, 20, 3).astype(np.uint8) for key in KEYS}
    out = build(tmp_path / "out", colours.__getitem__, pad=51)
    again: dict[str, dict[str, Any]] = {"same": {}, "floats": {"image_dtype": "float32"}, "other": {"pad": 114}}
    for name, options in again.items():
        build_pack(PackSource.at(out), tmp_path / name, size=(20, 20), fit="letterbox", **options)
        expected = {"same": 51, "floats": 0.2, "other": 114}[name]
        assert open_dataset(tmp_path / name)[0].image[:, 0].numpy() == pytest.approx(expected)


def test_numbers_that_cannot_be_padding(tmp_path: Path) -> None:
    numbers = {key: scan(key, 4, 5) for key in KEYS}
    for options, words in (
        ({"pad": 0.5}, "--pad 0.5: is no number of the stored type, which is int16"),
        ({"pad": 40000}, "--pad 40000: is no number of the stored type, which is int16"),
        ({"pad": 2, "image_range": (0, 9), "image_dtype": "float32"}, "which is float32 from 0 to 1"),
        ({"pad": 5, "nodata": "7"}, "--pad 5: padding is pixels without data, which have the number 7; leave it out"),
    ):
        with pytest.raises(UsageError, match=words):
            build(tmp_path / "out", numbers.__getitem__, bands="all", **options)
    assert "expected a number, such as -1024" in errors_of(2, "build", "--pad", "black", tmp_path, tmp_path / "out")
    for key in KEYS:
        for folder, array in (("images", numbers[key]), ("labels", np.ones((4, 5), np.uint8))):
            (tmp_path / "raw" / folder).mkdir(parents=True, exist_ok=True)
            np.save(tmp_path / f"raw/{folder}/{key}.npy", array)
    fit = ("--bands", "all", "--classes", 2, "--size", "6x6", "--fit", "crop-or-pad", "--pad", AIR)
    good("build", *fit, tmp_path / "raw", tmp_path / "out")
    assert open_dataset(tmp_path / "out")[0].image[0, 0, 0] == AIR
