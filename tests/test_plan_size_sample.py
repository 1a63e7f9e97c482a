"""The plan knows how large a pack becomes with other encodings, how far that may be wrong, and where the pack fits."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from conftest import RawFolder, json_of, pack, run
from test_recipe_spec import RECIPE

from packer.plan.plan import Plan
from packer.plan.size_sample import SizeSample, StoredSize
from packer.publish.free_space import SHARD_SLACK
from packer.recipe.piece import Piece
from packer.recipe.row_ref import RowRef
from packer.recipe.shard_spec import ShardSpec
from packer.shards.measure import MeasuredRow
from packer.workers.jobs import MeasureJob
from readers.contract.manifest import Manifest

pytestmark = pytest.mark.usefixtures("in_process")
INDEX = "--labels", "index", "--size", "24x36"
SLACK = 4 * SHARD_SLACK
RAW, LABEL, BOTH = (
    {"image": "raw", "label": "raw"},
    {"image": "raw", "label": "zstd"},
    {"image": "jpeg:95", "label": "zstd"},
)


def planned(*options: object) -> Any:
    return json_of("build", "--dry-run", "--json", *options)


def test_the_sizes_with_other_encodings_are_those_of_their_builds(raw_folder: RawFolder, tmp_path: Path) -> None:
    sizes = planned(*INDEX, raw_folder.path, tmp_path / "out")["encodings"]
    assert [size["fields"] for size in sizes] == [RAW, LABEL, BOTH]
    for number, size in enumerate(sizes):
        encode = [word for item in size["fields"].items() for word in ("--encode", "=".join(item))]
        out = pack(raw_folder.path, tmp_path / str(number), "--format", "npy", *INDEX, *encode)
        files = [file for name in size["fields"] for file in out.glob(f"shards/*.{name}.npy")]
        assert (size["bytes"], size["error"]) == (sum(np.load(file).nbytes for file in files), 0)
        assert size["bytes"] <= Manifest.load(out).bytes


def test_the_encodings_that_were_asked_for_come_first(raw_folder: RawFolder, tmp_path: Path) -> None:
    options = *INDEX, "--encode", "image=jpeg:50", raw_folder.path, tmp_path / "out"
    plan = planned(*options)
    asked = {"image": "jpeg:50", "label": "raw"}
    assert [size["fields"] for size in plan["encodings"]] == [asked, RAW, LABEL, {"image": "jpeg:50", "label": "zstd"}]
    assert plan["stored_bytes"] == plan["encodings"][0]["bytes"]
    assert "\n          image=jpeg:50, as asked  " in run("build", "--dry-run", *options).stdout


def test_large_rows_are_measured_in_tiles_too(raw_folder: RawFolder, tmp_path: Path) -> None:
    options = "--labels", "index", "--size", "1024x1024", "--only", "val", raw_folder.path, tmp_path / "out"
    tiled = [size["fields"] for size in planned(*options)["encodings"][3:]]
    label = {"label": "tiles-zstd:256x256"}
    assert tiled == [{"image": "raw", **label}, {"image": "tiles-jpeg:256x256:95", **label}]


def test_the_plan_says_where_each_size_fits(
    raw_folder: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = "--labels", "index", "--size", "512x512", raw_folder.path, tmp_path / "out"
    label, both = (size["bytes"] for size in planned(*options)["encodings"][1:])
    monkeypatch.setattr("packer.cli.build_text.free_memory", lambda: both)
    monkeypatch.setattr("packer.plan.make_plan.free_space", lambda path: label + SLACK)
    fits = [(size["fits_memory"], size["fits_disk"]) for size in planned(*options)["encodings"]]
    assert fits == [(False, False), (False, True), (True, True)]
    lines = run("build", "--dry-run", *options).stdout.splitlines()
    assert ["does not fit" in line for line in lines if "label=zstd" in line] == [True, False]


def test_a_build_that_is_short_of_room_names_what_fits(
    raw_folder: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = "--labels", "index", "--size", "512x512", raw_folder.path, tmp_path / "out"
    label = planned(*options)["encodings"][1]["bytes"]
    monkeypatch.setattr("packer.plan.make_plan.free_space", lambda path: label + SLACK)
    assert f"; --encode label=zstd needs about {label:,} bytes" in run("build", *options).stderr
    known = StoredSize({"image": "raw", "label": "zstd"}, label)  # that of the encodings asked for is not
    monkeypatch.setattr(Plan, "sizes_stored", property(lambda plan: [known]))
    assert f"; --encode label=zstd needs about {label:,} bytes" in run("build", *options).stderr
    assert "as asked" not in run("build", "--dry-run", *options).stdout


def test_the_error_holds_for_nineteen_of_twenty_samples() -> None:
    rng = np.random.default_rng(3)
    every = np.round(rng.gamma(5, 2000, 20_000)).astype(int)
    within = 0
    for _ in range(300):
        rows = tuple({("image", "raw"): 90_000, ("image", "jpeg:95"): int(size)} for size in rng.choice(every, 256))
        size = SizeSample(rows, (), {"image": 90_000 * len(every)}, len(every)).size({"image": "jpeg:95"})
        assert size is not None
        assert 0.03 < size.error < 0.08
        within += abs(size.bytes / every.sum() - 1) <= size.error
    assert 0.92 < within / 300 < 0.99


def test_one_row_of_many_shows_a_size_but_no_error() -> None:
    row = {("image", "raw"): 90, ("image", "jpeg:95"): 9}
    sample = SizeSample((row,), (), {"image": 900}, 10)
    assert sample.size({"image": "jpeg:95"}) == StoredSize({"image": "jpeg:95"}, 90, 1)
    assert sample.size({"image": "raw"}) == StoredSize({"image": "raw"}, 900, 0)


def test_sizes_that_no_row_shows_are_not_known() -> None:
    row = {("image", "raw"): 9, ("image", "jpeg:95"): 0}
    assert SizeSample((row,), (), {"image": 9}, 1).size({"image": "jpeg:95"}) is None
    assert SizeSample((), ("a.png: is cut",), {"image": 9}, 1).size({"image": "raw"}) is None


def test_more_rows_are_sampled_if_the_first_differ_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    for name in ("images", "labels"):
        (tmp_path / "in" / name).mkdir(parents=True)
    for number in range(40):
        noise = rng.integers(0, 256 if number % 2 else 2, (16, 16, 3)).astype(np.uint8)
        cv2.imwrite(str(tmp_path / f"in/images/{number:02}.png"), noise)
        cv2.imwrite(str(tmp_path / f"in/labels/{number:02}.png"), noise[..., 0] % 2)
    options = "--classes", 2, tmp_path / "in", tmp_path / "out"
    monkeypatch.setattr("packer.plan.size_sample.FEW_ROWS", 10)
    assert [size["error"] for size in planned(*options)["encodings"]] == [0, 0, 0]
    monkeypatch.setattr("packer.plan.size_sample.MOST_ROWS", 20)
    jpeg = planned(*options)["encodings"][-1]
    assert jpeg["error"] > 0.05
    assert f"± {math.ceil(1000 * jpeg['error']) / 10} %" in run("build", "--dry-run", *options).stdout


def test_the_plan_says_why_no_row_of_a_sample_can_be_packed(tmp_path: Path) -> None:
    for name in ("images", "labels"):
        (tmp_path / "in" / name).mkdir(parents=True)
        cv2.imwrite(str(tmp_path / "in" / name / "a.png"), np.zeros((1, 65501), np.uint8))
    options = "--classes", 1, "--fit", "native", tmp_path / "in", tmp_path / "out"
    text = run("build", "--dry-run", "--encode", "image=jpeg", *options).stdout
    why = "images/a.png: has 1x65501 pixels; a JPEG file has at most 65500 a side"
    assert f"; no row of the sample could be packed: {why}\n" in text
    assert [size["fields"] for size in planned(*options)["encodings"]] == [RAW, LABEL]


def test_rows_that_are_too_large_are_not_sampled(
    raw_folder: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readers.contract.giant.GIANT", 100)
    options = *INDEX, "--encode", "label=zstd", raw_folder.path, tmp_path / "out"
    assert planned(*options)["encodings"] == []
    assert "; its rows are too large for a sample, so" in run("build", "--dry-run", *options).stdout


def test_a_piece_that_crashes_a_worker_is_left_out_of_a_sample() -> None:
    pieces = tuple(Piece(RowRef("train", name, (f"{name}.png", f"{name}.png"))) for name in "abc")
    job = MeasureJob(0, ShardSpec("train", pieces, RECIPE), (), "")
    job.crashed((1,), "crashed the worker")
    assert [piece[0] for piece in json.loads(json.loads(job.task())["measure"])["pieces"]] == ["a", "c"]
    assert job.read('{"rows": []}') == (MeasuredRow(bad="b.png or b.png: crashed the worker"),)
    job.crashed((), "was killed")
    assert [row.bad for row in job.read('{"rows": []}')][1:] == [
        f"{name}.png or {name}.png: was killed" for name in "ac"
    ]
