"""Pictures that are only within the files of LabelMe: rows are those of picture files, and what is damaged is named."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from annotated_folders import SIZE, annotated_folder, box
from conftest import errors_of, good, json_of, pack, run, write_png

from packer.annotations.formats import picture_format
from packer.annotations.labelme import embedded
from packer.errors import BadPair
from readers import open_dataset

pytestmark = pytest.mark.usefixtures("in_process")
KEYS = "abc"
SHAPES = {key: [box("car", 2, 3, 5, 6 + number)] for number, key in enumerate(KEYS)}


def embed(raw: Path, **more: Any) -> Path:
    """Move each picture into its file of LabelMe."""
    for picture in sorted(raw.rglob("*.png")):
        file = picture.with_suffix(".json")
        data = base64.b64encode(picture.read_bytes()).decode()
        file.write_text(json.dumps({**json.loads(file.read_text()), "imageData": data, **more}))
        picture.unlink()
    return raw


@pytest.mark.parametrize("options", [(), ("--annotations", "{key}.json"), ("--size", "12x18")])
def test_the_rows_are_those_of_picture_files(tmp_path: Path, options: tuple[str, ...]) -> None:
    sized = options if "--size" in options else ()
    plain = pack(annotated_folder(tmp_path / "plain", SHAPES), tmp_path / "whole", *sized)
    out = pack(embed(annotated_folder(tmp_path / "raw", SHAPES)), tmp_path / "out", *options)
    for ours, theirs in zip(open_dataset(out, "all"), open_dataset(plain, "all"), strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)
    assert run("verify", "--deep", out).exit_code == 0
    assert "up to date" in run("diff", tmp_path / "raw", out).stdout


def test_another_picture_in_a_file_builds_its_shard(tmp_path: Path) -> None:
    raw = embed(annotated_folder(tmp_path / "raw", SHAPES))
    small = ("--shard-size", "3KB", "--trust", "digest")
    pack(raw, tmp_path / "out", *small)
    write_png(raw / "b.png", np.zeros((*SIZE, 3), np.uint8))
    embed(raw)
    assert "2 reused" in run("build", *small, raw, tmp_path / "out").stdout
    assert not np.asarray(open_dataset(tmp_path / "out", "all")[1][0]).any()


def test_a_probe_proposes_the_files_as_pictures(tmp_path: Path) -> None:
    raw = embed(annotated_folder(tmp_path / "raw", SHAPES, "train/{}.png", "train/{}.json"))
    facts = json_of("probe", "--json", raw)
    assert (facts["image"], facts["annotations"]) == ("{split:train}/{key}.json", "{split:train}/{key}.json")
    assert facts["objects"] == {"car": 3}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "has no imageData, and so no picture; put the picture next to it"),
        (7, "has no imageData"),
        ("a", "has imageData that is not base 64"),
        ("R0lGODlhAQABAAAAACw=", "is a GIF, which cannot be packed"),
        ("iVBORw0KGgo=", "b.json"),
    ],
)
def test_a_file_without_a_good_picture_is_a_bad_row(tmp_path: Path, data: object, words: str) -> None:
    raw = embed(annotated_folder(tmp_path / "raw", SHAPES))
    file = raw / "b.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "imageData": data}))
    built = good("build", "--on-bad", "skip", raw, tmp_path / "out")
    assert "b.json: " in built.stderr
    assert words in built.stderr
    assert len(open_dataset(tmp_path / "out", "all")) == 2


def test_a_picture_larger_than_allowed_is_not_decoded(tmp_path: Path) -> None:
    raw = embed(annotated_folder(tmp_path / "raw", SHAPES))
    errors = errors_of(1, "build", "--max-pixels", "800", raw, tmp_path / "out")
    assert "claims 36x24 pixels; 1 to 800 are allowed" in errors


def test_pictures_of_which_some_are_files_are_a_choice(tmp_path: Path) -> None:
    raw = embed(annotated_folder(tmp_path / "raw", SHAPES))
    (raw / "a.png").write_bytes(embedded((raw / "a.json").read_bytes()))
    assert "2 labels: no image; all: b.json, c.json" in errors_of(1, "build", raw, tmp_path / "out")
    pack(raw, tmp_path / "out", "--image", "{key}.json", "--annotations", "{key}.json")
    assert len(open_dataset(tmp_path / "out", "all")) == 3


def test_annotations_without_any_picture_are_named(tmp_path: Path) -> None:
    raw = embed(annotated_folder(tmp_path / "raw", SHAPES), imageData=None)
    errors = errors_of(1, "build", raw, tmp_path / "out")
    assert "has files of labelme and no pictures; put the pictures next to them" in errors


def test_formats_without_pictures_are_refused() -> None:
    with pytest.raises(BadPair, match="files of cityscapes have none within them"):
        picture_format("cityscapes").picture_in(b"{}")
