"""Splits of tiles by blocks of their scenes: no pixel of a validation tile is in a training tile, and none is lost."""

from __future__ import annotations

import json
import re
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import RawFolder, errors_of, good, json_of, make_varied_raw, pack, run
from drills.published import same
from hypothesis import assume, given
from hypothesis import strategies as st

from packer import build_pack
from packer.errors import UsageError
from packer.packs.recipe_words import recipe_words
from packer.pixels.resize import Geometry
from packer.recipe.blocks import NEITHER, Blocks
from packer.recipe.recipe import Recipe
from packer.sources.rows import Rows
from readers import open_dataset
from readers.contract.json_entry import Entry, JsonProblem
from readers.contract.manifest import Manifest
from readers.contract.receipt import Receipt
from readers.contract.tiles import Tile

pytestmark = pytest.mark.usefixtures("in_process")

SIZES = [(170, 200), (96, 250), (33, 31), (128, 128)]
TILES = ("--fit", "tile", "--size", "32x32", "--overlap", 8, "--labels", "index")
BLOCKS = ("--split-blocks", 64, "--split", "60/40", "--image", "all/images/{key}", "--label", "all/masks/{key}")
HALVES = (("train", Fraction(1, 2)), ("val", Fraction(1, 3)), ("test", Fraction(1, 6)))


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> RawFolder:
    return make_varied_raw(tmp_path_factory.mktemp("scenes") / "raw", {"all": SIZES})


@pytest.fixture(scope="module")
def blocked(raw: RawFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pack(raw.path, tmp_path_factory.mktemp("blocked") / "out", *TILES, *BLOCKS)


def tiles_of(out: Path, split: str) -> dict[str, bytes]:
    """Return the pixels of each tile of a split by its key."""
    rows = open_dataset(out, split)
    return {rows.key(row): b"".join(field.numpy().tobytes() for field in rows[row]) for row in range(len(rows))}


def covered(keys: Any, margin: int = 0) -> dict[str, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Return for each scene which of its pixels are within this margin of one of these tiles of 32 x 32."""
    masks: dict[str, Any] = {}
    for tile in map(Tile.of, keys):
        top, left = (max(0, start - margin) for start in tile.origin)
        bottom, right = (start + 32 + margin for start in tile.origin)
        masks.setdefault(tile.picture, np.zeros(tile.size, np.bool_))[top:bottom, left:right] = True
    return masks


@given(
    size=st.tuples(st.integers(1, 90), st.integers(1, 90)),
    tile=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    overlap=st.integers(0, 19),
    edge=st.sampled_from(["pad", "shift"]),
    room=st.integers(0, 30),
    margin=st.integers(0, 5),
    key=st.text(max_size=3),
)
def test_a_tile_and_its_margin_lie_in_blocks_of_one_split(
    size: tuple[int, int], tile: tuple[int, int], overlap: int, edge: str, room: int, margin: int, key: str
) -> None:
    assume(overlap < min(tile))
    geometry = Geometry(tile, "tile", overlap=overlap, edge=edge)
    blocks = Blocks(max(tile) + 2 * margin + room, margin, HALVES)
    assert blocks.have_room(geometry)
    splits = blocks.grid(key, size).repeat(blocks.side, 0).repeat(blocks.side, 1)[: size[0], : size[1]]
    assert splits.shape == size
    numbers, origins = blocks.of_tiles(key, size, geometry).tolist(), geometry.origins(size)
    assert len(numbers) == len(origins)
    assert numbers[0] == splits[0, 0], "the first tile is never left out"
    for number, origin in zip(numbers, origins, strict=True):
        top, left = origin or (0, 0)
        rows = slice(max(0, top - margin), top + tile[0] + margin)
        touched = set(splits[rows, max(0, left - margin) : left + tile[1] + margin].ravel().tolist())
        assert ({number} if number != NEITHER else touched) == touched
        assert (len(touched) > 1) == (number == NEITHER)


def test_blocks_get_their_shares_and_never_move() -> None:
    blocks = Blocks(8, 0, HALVES)
    grid = blocks.grid("scene", (800, 800))
    for number, (_, share) in enumerate(HALVES):
        assert abs((grid == number).mean() - float(share)) < 4 * (float(share * (1 - share)) / grid.size) ** 0.5
    assert np.array_equal(blocks.grid("scene", (400, 300)), grid[:50, :38])
    assert np.array_equal(blocks.grid("Ren\u00e9", (80, 80)), blocks.grid("Rene\u0301", (80, 80)))
    assert not np.array_equal(blocks.grid("other", (800, 800)), grid)
    first = "".join(blocks.names[number][1] for number in grid[0, :16])
    assert first == "".join(blocks.names[number][1] for number in Blocks(8, 3, HALVES).grid("scene", (8, 128))[0])
    assert first == "arearerreaeraare", "the draw is the same on every machine and in every version"


def test_no_pixel_of_val_is_in_a_training_tile(raw: RawFolder, blocked: Path, tmp_path: Path) -> None:
    train, val = tiles_of(blocked, "train"), tiles_of(blocked, "val")
    every = tiles_of(pack(raw.path, tmp_path / "whole", *TILES, *BLOCKS[4:]), "all")
    assert {**train, **val}.items() <= every.items()
    assert not train.keys() & val.keys()
    masks = covered(val)
    assert all(not (mask & masks[key]).any() for key, mask in covered(train).items() if key in masks)
    assert len(masks) > 1
    left_out = len(every) - len(train) - len(val)
    told = good("build", "--dry-run", *TILES, *BLOCKS, raw.path, tmp_path / "out").stdout
    assert f"{left_out} of {len(every)} tiles are left out: they touch blocks of two splits" in told
    assert left_out > 0


def test_a_margin_keeps_val_away_from_training_tiles(raw: RawFolder, blocked: Path, tmp_path: Path) -> None:
    out = pack(raw.path, tmp_path / "out", *TILES, "--split-blocks", "64,9", *BLOCKS[2:])
    train, val = tiles_of(out, "train"), tiles_of(out, "val")
    assert train.keys() < tiles_of(blocked, "train").keys()
    near = covered(train, margin=9)
    assert all(not (mask & near[key]).any() for key, mask in covered(val).items() if key in near)


def test_all_formats_verify_and_read_tiles_of_a_split(
    storage: str, raw: RawFolder, blocked: Path, tmp_path: Path
) -> None:
    out = pack(raw.path, tmp_path / "out", *TILES, *BLOCKS, "--format", storage)
    for split in ("train", "val"):
        assert tiles_of(out, split) == tiles_of(blocked, split)
    assert run("verify", "--deep", out).exit_code == 0
    words = dict(recipe_words(Manifest.load(out).recipe))
    assert words["splits"] == "of tiles, by blocks of 64 pixels with a margin of 0"


def test_folds_of_blocks(raw: RawFolder, tmp_path: Path) -> None:
    shutil.copytree(raw.path / "all", tmp_path / "raw/train")
    shutil.copy(raw.path / "class_dict.csv", tmp_path / "raw")
    shutil.copytree(raw.path / "all", tmp_path / "raw/test")
    out = pack(tmp_path / "raw", tmp_path / "out", *TILES, "--split-blocks", 64, "--folds", 3)
    assert open_dataset(out, "test").folds == (0, 1, 2)
    for fold in range(3):
        keys = [
            set(map(open_dataset(out, part, fold=fold).key, range(len(open_dataset(out, part, fold=fold)))))
            for part in ("train", "val")
        ]
        masks = covered(keys[1])
        assert all(not (mask & masks[key]).any() for key, mask in covered(keys[0]).items() if key in masks)
    whole = pack(tmp_path / "raw", tmp_path / "whole", *TILES)
    assert tiles_of(out, "test") == tiles_of(whole, "test"), "the test split stays whole"


def test_nights_plans_and_parts_equal_a_fresh_build(raw: RawFolder, tmp_path: Path) -> None:
    few, out = tmp_path / "raw", tmp_path / "out"
    shutil.copytree(raw.path, few)
    for folder in ("images", "masks"):
        next(few.glob(f"all/{folder}/*_001.png")).rename(tmp_path / f"{folder}.png")
    options = (*TILES, *BLOCKS, "--shard-size", "60KB")
    pack(few, out, *options)
    for folder in ("images", "masks"):
        (tmp_path / f"{folder}.png").rename(next(few.glob(f"all/{folder}/*_000.png")).with_name(raw_name(raw, folder)))
    summary = json_of("build", "--json", *options, few, out)
    assert 0 < summary["reused_rows"] < summary["rows"]
    fresh = pack(raw.path, tmp_path / "fresh", *options)
    assert same(out, fresh)
    assert "up to date" in good("diff", few, out).stdout
    good("plan", *options, raw.path, tmp_path / "plan")
    for part in ("1/2", "2/2"):
        good("build-part", "--plan", tmp_path / "plan", "--part", part, tmp_path / "parts")
    good("commit", "--plan", tmp_path / "plan", tmp_path / "parts")
    assert same(tmp_path / "parts", fresh)


def raw_name(raw: RawFolder, folder: str) -> str:
    return next(raw.path.glob(f"all/{folder}/*_001.png")).name


def test_a_bad_scene_is_a_reject_of_each_split_that_has_a_tile_of_it(raw: RawFolder, tmp_path: Path) -> None:
    shutil.copytree(raw.path, tmp_path / "raw")
    half, no_header = sorted((tmp_path / "raw/all/images").glob("*.png"))[:2]
    no_header.write_bytes(b"no picture")
    png = half.read_bytes()
    half.write_bytes(png[:-16] + b"\0\0\0\0" + png[-12:])
    out = pack(tmp_path / "raw", tmp_path / "out", *TILES, *BLOCKS, "--on-bad", "skip")
    rejects = [
        (receipt.split, reject.key)
        for receipt in map(Receipt.load, out.glob("shards/*.receipt.json"))
        for reject in receipt.rejects
    ]
    assert sum(key.startswith(no_header.stem) for _, key in rejects) == 1
    assert {split for split, key in rejects if key.startswith(half.stem)} == {"train", "val"}
    assert not {Tile.of(key).picture for split in ("train", "val") for key in tiles_of(out, split)} & {
        no_header.stem,
        half.stem,
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--split-blocks", 64), "--split-blocks: needs the shares of the splits, such as --split 80/20, or --folds 5"),
        (("--split-blocks", "4096m", "--split", "80/20"), "'4096m': expected the side of blocks in pixels"),
        (("--split-blocks", 0, "--split", "80/20"), "expected the side of blocks in pixels, and perhaps a margin"),
        (("--split-blocks", 40, "--split", "80/20", "--fit", "stretch"), "it needs --fit tile and --size"),
        (
            ("--split-blocks", 31, "--split", "80/20"),
            "--split-blocks 31: a tile with its margins needs blocks of 32 pixels",
        ),
        (("--split-blocks", "40,5", "--split", "80/20"), "a tile with its margins needs blocks of 42 pixels"),
        (("--split-blocks", 64, "--split", "80/20", "--split-exact"), "leave --split-by and --split-exact out"),
        (
            ("--split-blocks", 64, "--split", "80/20", "--only", "val"),
            "--only val: cannot be combined with --split-blocks",
        ),
    ],
)
def test_wrong_options_are_wrong_usage(
    options: tuple[object, ...], message: str, raw: RawFolder, tmp_path: Path
) -> None:
    assert message in errors_of(2, "build", "--fit", "tile", "--size", "32x32", *options, raw.path, tmp_path / "out")


def test_splits_that_are_there_and_folds_without_a_block_are_refused(raw: RawFolder, tmp_path: Path) -> None:
    shutil.copytree(raw.path / "all", tmp_path / "raw/train")
    shutil.copy(raw.path / "class_dict.csv", tmp_path / "raw")
    options = ("--fit", "tile", "--size", "32x32", "--split-blocks", 64)
    told = errors_of(1, "build", *options, "--split", "80/20", tmp_path / "raw", tmp_path / "out")
    assert "--split: there are splits already, such as 'train' of the row" in told
    told = errors_of(1, "build", *options, "--folds", 99, tmp_path / "raw", tmp_path / "out")
    assert "--split-blocks: there are too few blocks; take smaller ones" in told
    assert re.search(r"\d+ folds: none of the \d+ rows", told)
    rows = Rows([("train", "a")], lambda key: {}, sizes=lambda key: (32, 32))
    shape: dict[str, Any] = {"fit": "tile", "size": (32, 32), "split_blocks": 64, "split": "80/20", "classes": 2}
    with pytest.raises(UsageError, match="rows of functions have the splits that their keys name"):
        build_pack(rows, tmp_path / "out", **shape)


HOSTILE: dict[str, Any] = {
    "no room": {"side": 39},
    "no side": {"side": 0},
    "a share of nothing": {"shares": ["1/1", "1/0"]},
    "a sum above one": {"shares": ["1/1", "1/2"]},
    "too few shares": {"shares": ["1/1"]},
    "a name twice": {"splits": ["train", "train"]},
    "a path": {"splits": ["../train", "val"]},
    "all": {"splits": ["all", "val"]},
    "numbers": {"shares": [1, 2]},
    "more": {"more": 1},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_recipes_are_refused(name: str, blocked: Path) -> None:
    recipe = json.loads(json.dumps(Manifest.load(blocked).recipe))
    assert Recipe.from_json(Entry(recipe, "", [])).to_json() == recipe
    problems: list[JsonProblem] = []
    recipe["blocks"] |= {"margin": 4, **HOSTILE[name]}
    Recipe.from_json(Entry(recipe, "", problems))
    assert problems


def test_a_pack_without_blocks_has_the_recipe_of_before(raw: RawFolder, tmp_path: Path) -> None:
    out = pack(raw.path, tmp_path / "out", *TILES, *BLOCKS[4:])
    assert "blocks" not in Manifest.load(out).recipe
