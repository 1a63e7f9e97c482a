"""Depth, instances and overlapping classes from files to batches: every pixel is exact in every format."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import errors_of, good, pack, run, scene, write_png
from drills.band_files import array_file, blocks_tiff
from number_kinds import sampled
from numpy.typing import NDArray

from packer.pixels.resize import Geometry
from readers import CenterCrop, SegDataset, open_dataset, stitch
from readers.contract.bits import pack_bits
from readers.contract.manifest import Manifest
from readers.contract.tiles import Tile

pytestmark = pytest.mark.usefixtures("in_process")

SIZE = 21, 30
KEYS = [f"row{number}" for number in range(7)]
PARTS = [f"part{number}" for number in range(9)]
FIELDS: tuple[dict[str, Any], ...] = (
    {"name": "millimetres", "kind": "values", "from": "millimetres/{key}.png", "invalid": 0},
    {"name": "metres", "kind": "values", "from": "millimetres/{key}.png", "invalid": 0, "scale": 0.001},
    {"name": "disparity", "kind": "values", "from": "disparity/{key}.tif"},
    {"name": "height", "kind": "values", "from": "height/{key}.npy", "invalid": -9999},
    {"name": "nuclei", "kind": "ids", "from": "nuclei/{key}.npy"},
    {"name": "segments", "kind": "ids", "from": "segments/{key}.png", "codec": "panoptic"},
    {"name": "parts", "kind": "multilabel", "from": "parts/{class}/{key}.png", "classes": PARTS},
    {"name": "organs", "kind": "multilabel", "from": "organs/{key}.png", "classes": PARTS, "form": "bits"},
)
FILLS = {"millimetres": 0, "metres": math.nan, "disparity": math.nan, "height": -9999}
NAMES = tuple(field["name"] for field in FIELDS)
OPTIONS = [option for field in FIELDS for option in ("--field", json.dumps(field))]
Arrays = dict[str, NDArray[Any]]


def make_fields(folder: Path) -> dict[str, Arrays]:
    """Write images, labels and files of each field; return what each row should hold before it is scaled."""
    rows = {}
    for number, key in enumerate(KEYS):
        dice = np.random.default_rng(number)
        image, label = scene(number, *SIZE)
        write_png(folder / "images" / f"{key}.png", image)
        write_png(folder / "labels" / f"{key}.png", label)
        depth = dice.integers(0, 9999, SIZE, np.uint16) * (dice.random(SIZE) < 0.8).astype(np.uint16)
        write_png(folder / "millimetres" / f"{key}.png", depth)
        disparity = np.where(dice.random(SIZE) < 0.8, dice.standard_normal(SIZE), np.nan).astype("<f4")
        height = np.where(dice.random(SIZE) < 0.8, dice.integers(-500, 500, SIZE), -9999).astype("<i2")
        nuclei = dice.integers(0, 2**32, SIZE, np.uint64).astype("<u4")
        colours = dice.integers(0, 256, (*SIZE, 3), np.uint8)
        write_png(folder / "segments" / f"{key}.png", colours)
        parts = dice.integers(0, 2, (len(PARTS), *SIZE), np.uint8)
        organs = dice.integers(0, 2, (len(PARTS), *SIZE), np.uint8)
        write_png(folder / "organs" / f"{key}.png", sum(p.astype("<u2") << n for n, p in enumerate(organs)))
        for plane, name in zip(parts[:-1], PARTS, strict=False):  # the last one never has a file
            write_png(folder / "parts" / name / f"{key}.png", plane * 255)
        parts[-1] = 0
        for name, data in (
            (f"disparity/{key}.tif", blocks_tiff(disparity[..., None])),
            (f"height/{key}.npy", array_file(height)),
            (f"nuclei/{key}.npy", array_file(nuclei)),
        ):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(data)
        rows[key] = {
            "millimetres": depth,
            "metres": np.where(depth, depth * 0.001, np.nan).astype("<f4"),
            "disparity": disparity,
            "height": height,
            "nuclei": nuclei,
            "segments": (colours.astype("<u4") << np.array([0, 8, 16], "<u4")).sum(2, dtype="<u4"),
            "parts": parts,
            "organs": pack_bits(organs),
        }
    return rows


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Arrays]]:
    folder = tmp_path_factory.mktemp("fields")
    return folder, make_fields(folder)


def packed(raw: Path, out: Path, storage: str, *options: object) -> SegDataset:
    pairs = ("--image", "images/{key}.png", "--label", "labels/{key}.png", "--classes", 4, "--labels", "index")
    pack(raw, out, "--format", storage, "--shard-size", "40KB", *pairs, *OPTIONS, *options)
    return open_dataset(out, fields=NAMES)


def equal(found: NDArray[Any], wanted: NDArray[Any]) -> bool:
    return bool(found.dtype == wanted.dtype and found.shape == wanted.shape and found.tobytes() == wanted.tobytes())


@pytest.mark.parametrize("fit", ["stretch", "letterbox", "crop-or-pad", "native"])
def test_every_pixel_is_exact(storage: str, fit: str, raw: tuple[Path, dict[str, Arrays]], tmp_path: Path) -> None:
    folder, rows = raw
    size = () if fit == "native" else ("--fit", fit)
    dataset = packed(folder, tmp_path / "out", storage, "--size", "native" if fit == "native" else "16x19", *size)
    geometry = Geometry(None if fit == "native" else (16, 19), fit)
    wanted = [tuple(sampled(rows[key][name], geometry, None, FILLS.get(name, 0)) for name in NAMES) for key in KEYS]
    assert [dataset.key(row) for row in range(len(dataset))] == KEYS
    for row, parts in enumerate(wanted):
        assert all(equal(found.numpy(), part) for found, part in zip(dataset[row], parts, strict=True))
    for batch in dataset.loader(3):
        for found, part in zip(batch, zip(*wanted, strict=True), strict=True):
            assert equal(found.numpy(), np.stack(part[: len(found)]))
        wanted = wanted[3:]
    assert run("verify", "--deep", tmp_path / "out").exit_code == 0


def test_crops_are_windows_padded_by_the_fill(
    storage: str, raw: tuple[Path, dict[str, Arrays]], tmp_path: Path
) -> None:
    folder, rows = raw
    packed(folder, tmp_path / "out", storage, "--size", "native")
    window = Geometry((25, 12), "crop-or-pad")
    wanted = [[sampled(rows[key][name], window, None, FILLS.get(name, 0)) for key in KEYS] for name in NAMES]
    (batch,) = open_dataset(tmp_path / "out", fields=NAMES).loader(len(KEYS), crop=CenterCrop((25, 12)))
    assert all(equal(found.numpy(), np.stack(part)) for found, part in zip(batch, wanted, strict=True))
    cropped = open_dataset(tmp_path / "out", fields=NAMES, transform=CenterCrop((25, 12)))
    for row in range(len(KEYS)):
        assert all(equal(found.numpy(), part[row]) for found, part in zip(cropped[row], wanted, strict=True))


def test_tiles_are_stitched(storage: str, raw: tuple[Path, dict[str, Arrays]], tmp_path: Path) -> None:
    folder, rows = raw
    dataset = packed(folder, tmp_path / "out", storage, "--size", "10x13", "--fit", "tile", "--overlap", 3)
    keys = [dataset.key(row) for row in range(len(dataset))]
    for key in KEYS:
        tiles = [(name, dataset[row]) for row, name in enumerate(keys) if Tile.of(name).picture == key]
        for number, name in enumerate(NAMES):
            whole = stitch((tile, parts[number].numpy()) for tile, parts in tiles)
            assert equal(np.asarray(whole), rows[key][name])


def test_a_night_builds_what_a_fresh_build_has(tmp_path: Path) -> None:
    """A file of one class comes, another one changes, and a third one goes: each touches the shard of its row."""
    folder = tmp_path / "raw"
    make_fields(folder)
    pairs = ("--image", "images/{key}.png", "--label", "labels/{key}.png", "--classes", 4, *OPTIONS)
    options = (*pairs, "--shard-size", "10KB", "--trust", "digest")
    out = pack(folder, tmp_path / "out", *options)
    before = {path.name for path in (out / "shards").glob("*.npy")}
    write_png(folder / "parts" / "part8" / "row0.png", np.ones(SIZE, np.uint8))
    write_png(folder / "parts" / "part2" / "row3.png", np.ones(SIZE, np.uint8))
    (folder / "parts" / "part0" / "row6.png").unlink()
    difference = run("diff", folder, out)
    assert [line for line in difference.stdout.splitlines() if line.startswith("changed")] == [
        f"changed   all/row{number}: parts" for number in (0, 3, 6)
    ]
    pack(folder, out, *options)
    fresh = pack(folder, tmp_path / "fresh", *options)
    wanted = {path.name: path.read_bytes() for path in (fresh / "shards").glob("*.npy")}
    assert {name: (out / "shards" / name).read_bytes() for name in wanted} == wanted
    assert len(wanted.keys() & before) == len(wanted) * 4 // 7


def test_a_label_and_ids_from_the_same_files(raw: tuple[Path, dict[str, Arrays]], tmp_path: Path) -> None:
    instances = np.arange(1000, 1000 + 20 * 30, dtype=np.uint16).reshape(20, 30) + 1000 * np.eye(
        20, 30, dtype=np.uint16
    )
    for key in "ab":
        write_png(tmp_path / "raw" / "images" / f"{key}.png", np.zeros((20, 30, 3), np.uint8))
        write_png(tmp_path / "raw" / "gt" / f"{key}.png", instances)
    pairs = ("--image", "images/{key}.png", "--label", "gt/{key}.png", "--classes", "1,2", "--label-codec", "instance")
    pack(tmp_path / "raw", tmp_path / "out", *pairs, "--labels", "index", "--field", "objects=ids:gt/{key}.png")
    dataset = open_dataset(tmp_path / "out", fields=("label", "objects"))
    label, objects = (part.numpy() for part in dataset[1])
    assert np.array_equal(objects, instances)
    assert np.array_equal(label, instances // 1000 - 1)


def test_the_mean_of_valid_pixels_is_named_in_the_recipe(raw: tuple[Path, dict[str, Arrays]], tmp_path: Path) -> None:
    folder, _ = raw
    pairs = ("--image", "images/{key}.png", "--label", "labels/{key}.png", "--classes", 4, "--size", "9x9")
    for interpolation in ("nearest", "linear"):
        field = json.dumps({**FIELDS[0], "interpolation": interpolation})
        out = pack(folder, tmp_path / interpolation, *pairs, "--field", field)
        assert ("valid mean 1" in Manifest.load(out).recipe["tools"]) == (interpolation == "linear")


def test_the_numbers_of_gray_of_few_bits_are_named_in_the_recipe(tmp_path: Path) -> None:
    """Its numbers were spread over 0..255 before; a nightly build reuses only shards without such files."""
    for key in "ab":
        write_png(tmp_path / "raw" / "images" / f"{key}.png", np.arange(600, dtype=np.uint8).reshape(20, 30))
        write_png(tmp_path / "raw" / "deep" / f"{key}.png", np.arange(600, dtype=np.uint16).reshape(20, 30))
        write_png(tmp_path / "raw" / "labels" / f"{key}.png", np.zeros((20, 30), np.uint8))
    plain = ("--label", "labels/{key}.png", "--classes", 4)
    for folder, options, is_named in (
        ("images", (), False),
        ("images", ("--bands", "gray"), True),
        ("deep", ("--bands", "all"), False),
        ("deep", ("--bands", "all", "--image-range", "0,15"), True),
    ):
        name = f"{folder}{len(options)}"
        out = pack(tmp_path / "raw", tmp_path / name, *plain, "--image", f"{folder}/{{key}}.png", *options)
        assert ("gray of few bits 2" in Manifest.load(out).recipe["tools"]) == is_named
    again = tmp_path / "again"
    assert run("build", "--from", tmp_path / "images2", again).exit_code == 0
    assert "gray of few bits 2" not in Manifest.load(again).recipe["tools"]


def test_a_bad_file_is_named(tmp_path: Path) -> None:
    make_fields(tmp_path / "raw")
    parts = tmp_path / "raw" / "parts"
    write_png(parts / "part2" / "row1.png", np.tile(np.arange(30, dtype=np.uint8), (21, 1)))
    write_png(parts / "part3" / "row2.png", np.zeros((20, 30), np.uint8))
    (tmp_path / "raw" / "height" / "row3.npy").write_bytes(array_file(np.full(SIZE, 2**15, np.int32)))
    pairs = ("--image", "images/{key}.png", "--label", "labels/{key}.png", "--classes", 4)
    errors = errors_of(1, "build", tmp_path / "raw", tmp_path / "out", *pairs, *OPTIONS)
    for words in (
        "parts/part2/row1.png: class part2: has the number 1 at row 0, column 1, and the number 29; besides 0",
        "images/row2.png: is 21x30, its file parts/part3/row2.png is 20x30 (height x width)",
        "height/row3.npy: has whole numbers of 32 bits; values have 16 bits",
    ):
        assert words in errors
    assert "u0009" not in errors
    good("build", tmp_path / "raw", tmp_path / "out", *pairs, *OPTIONS, "--on-bad", "skip")
    assert len(open_dataset(tmp_path / "out")) == len(KEYS) - 3
