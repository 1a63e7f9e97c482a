"""The key of a tile holds its position, and stitched tiles give the picture again."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from conftest import errors_of, good, make_raw, pack
from hypothesis import given
from hypothesis import strategies as st

from packer.pixels.class_lookup import IGNORE
from packer.pixels.resize import Geometry
from readers import open_dataset, stitch
from readers.contract.errors import RequestError
from readers.contract.receipt import Receipt
from readers.contract.tiles import Tile, tile_starts

pytestmark = pytest.mark.usefixtures("in_process")

SIDES = st.integers(1, 40)


@given(SIDES, SIDES, SIDES, SIDES, st.integers(0, 39), st.booleans())
def test_tiles_stitched_are_the_picture(
    height: int, width: int, tall: int, wide: int, overlap: int, shifted: bool
) -> None:
    overlap = min(overlap, tall - 1, wide - 1)
    geometry = Geometry((tall, wide), "tile", overlap=overlap, edge="shift" if shifted else "pad")
    index = np.arange(height * width, dtype=np.uint16).reshape(height, width)
    image = np.stack([index % 251, index % 7, index % 3], -1).astype(np.uint8)
    parts, pictures = [], []
    for origin in geometry.origins((height, width)):
        assert origin is not None
        key = Tile("a/b@c", origin, (height, width)).key
        parts.append((key, geometry.label(index, origin)))
        pictures.append((key, geometry.image(image, origin)))
        assert parts[-1][1].shape == (tall, wide)
    assert np.array_equal(stitch(parts), index)
    assert np.array_equal(stitch(pictures), image.transpose(2, 0, 1))


@given(SIDES, SIDES, st.integers(0, 39))
def test_shifted_tiles_are_never_padded_unless_the_picture_is_smaller(source: int, tile: int, overlap: int) -> None:
    overlap = min(overlap, tile - 1)
    starts = tile_starts(source, tile, overlap, True)
    assert starts[0] == 0
    assert all(after - before <= tile - overlap for before, after in pairwise(starts))
    assert starts[-1] + tile == source or source < tile == starts[-1] + tile


def test_what_a_padded_tile_adds_is_ignored() -> None:
    geometry = Geometry((4, 4), "tile")
    label = geometry.label(np.zeros((3, 5), np.uint16), (0, 4))
    assert (label == IGNORE).sum() == 13
    assert geometry.image(np.full((3, 5, 3), 9, np.uint8), (0, 4)).sum() == 3 * 3 * 9


@given(st.text(min_size=1, max_size=9), SIDES, SIDES)
def test_a_tile_is_its_key(picture: str, top: int, left: int) -> None:
    tile = Tile(picture, (top, left), (top + 1, 123_456))
    assert Tile.of(tile.key) == tile


@pytest.mark.parametrize("key", ["a", "a@1+2", "@1+2of3x4", "a@1+2of3x4x"])
def test_a_key_that_is_not_of_a_tile_is_named(key: str) -> None:
    with pytest.raises(RequestError, match="not the key of a tile"):
        Tile.of(key)


def test_stitching_refuses_what_does_not_belong_together() -> None:
    tile = np.zeros((2, 2))
    with pytest.raises(RequestError, match="4 pixels are not covered"):
        stitch([("a@0+0of2x4", tile)])
    with pytest.raises(RequestError, match="another picture"):
        stitch([("a@0+0of2x4", tile), ("b@0+2of2x4", tile)])
    with pytest.raises(RequestError, match="names a picture"):
        stitch([("a@0+0of99999999x99999999", tile)])
    with pytest.raises(RequestError, match="no tiles"):
        stitch([])


@pytest.mark.parametrize(("dtype", "fill"), [("u1", 255), ("i2", -1), ("f4", np.nan), ("u4", 0)])
def test_pixels_of_missing_tiles_are_filled_on_request(dtype: str, fill: float) -> None:
    tile = np.arange(12).reshape(3, 2, 2).astype(dtype)
    picture = stitch([("a@1+1of2x4", tile)], fill)
    wanted = np.full((3, 2, 4), fill).astype(dtype)
    wanted[:, 1, 1:3] = tile[:, 0]
    assert picture.tobytes() == wanted.tobytes()
    assert picture.dtype == tile.dtype


def test_a_packed_folder_is_stitched_back(storage: str, tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 3}, height=30, width=50)
    options = ("--size", "16x16", "--fit", "tile", "--overlap", 4, "--labels", "index", "--shard-size", "9KB")
    dataset = open_dataset(pack(raw.path, tmp_path / "out", "--format", storage, *options))
    assert len(dataset) == 3 * 3 * 4
    assert len(list((tmp_path / "out" / "shards").glob("*.receipt.json"))) > 2
    keys = [dataset.key(row) for row in range(len(dataset))]
    for number in range(3):
        key = f"street_{number:03d}"
        rows = [row for row, name in enumerate(keys) if Tile.of(name).picture == key]
        image = stitch((keys[row], dataset[row][0].numpy()) for row in rows)
        label = stitch((keys[row], dataset[row][1].numpy()) for row in rows)
        assert np.array_equal(image.transpose(1, 2, 0), raw.images["train", key])
        assert np.array_equal(label, raw.labels["train", key])


def test_a_bad_picture_is_one_bad_pair_whatever_its_tiles(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 2}, height=30, width=50)
    path = raw.path / "train" / "masks" / "street_001.png"
    data = bytearray(path.read_bytes())
    data[-30] ^= 1
    path.write_bytes(data)
    options = ("--size", "16x16", "--fit", "tile", "--quiet")
    assert "1 of 2 pairs is bad" in errors_of(1, "build", *options, raw.path, tmp_path / "out")
    skipped = good("build", *options, "--on-bad", "skip", raw.path, tmp_path / "out")
    assert skipped.stderr.count("left out") == 1
    assert "left out train/street_001: train/masks/street_001.png: is damaged" in skipped.stderr
    receipts = [Receipt.load(path) for path in (tmp_path / "out" / "shards").glob("*.receipt.json")]
    assert (sum(receipt.rows for receipt in receipts), sum(len(receipt.rejects) for receipt in receipts)) == (8, 8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--fit", "tile"), "needs --size"),
        (("--size", "8x8", "--overlap", 2), "need --fit tile"),
        (("--size", "8x8", "--fit", "tile", "--overlap", 8), "must be smaller than a tile"),
        (("--size", "native", "--fit", "tile"), "cannot be combined"),
        (("--size", "8x8", "--fit", "native"), "cannot be combined"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(
    tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 1})
    assert message in errors_of(2, "build", *options, raw.path, tmp_path / "out")
