"""The further fields that a probe proposes."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
from conftest import good, json_of, make_raw, run, write_png
from drills.band_files import blocks_tiff

from readers import open_dataset


def test_a_probe_proposes_fields_that_can_be_pasted(tmp_path: Path) -> None:
    raw, dice = make_raw(tmp_path / "raw", {"train": 4, "val": 2}).path, np.random.default_rng(0)
    for split, count in (("train", 4), ("val", 2)):
        for number in range(count):
            key = f"street_{number:03d}"
            write_png(raw / f"{split}/depth/{key}.png", dice.integers(0, 9000, (24, 36), np.uint16))
            write_png(raw / f"right/depth/{split}/{key}.png", dice.integers(0, 9000, (24, 36), np.uint16))
            write_png(raw / f"{split}/other/{key}.png", dice.integers(0, 9000, (24, 36), np.uint16))
            write_png(raw / f"{split}/things/{key}_instances.png", dice.integers(0, 90, (24, 36), np.uint8))
            path = raw / f"extra/nir/{split}/{key}.tif"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(blocks_tiff(dice.integers(0, 9000, (24, 36, 1), np.uint16)))
    write_png(raw / "train/rare/street_000_depth.png", np.zeros((24, 36), np.uint8))
    facts = json_of("probe", "--json", raw)
    assert facts["fields"] == {
        "depth=values:right/depth/{split}/{key}.png": 6,
        "depth_2=values:{split}/depth/{key}.png": 6,
        "other=values:{split}/other/{key}.png": 6,
        "instances=ids:{split}/things/{key}_instances.png": 6,
        '{"name": "nir", "kind": "picture", "from": "extra/nir/{split}/{key}.tif", "bands": "all"}': 6,
    }
    assert not any("which files" in question for question in facts["to_decide"])
    lines = [line for line in run("probe", raw).stdout.splitlines() if line.startswith("field ")]
    pasted = [shlex.split(line.removeprefix("field").rpartition("(")[0]) for line in lines]
    good("build", *(word for words in pasted for word in words), raw, tmp_path / "out")
    assert len(open_dataset(tmp_path / "out", "train", fields=("depth", "other", "instances", "nir"))) == 4


def test_a_probe_proposes_all_bands(tmp_path: Path) -> None:
    dice = np.random.default_rng(0)
    for number in range(4):
        path = tmp_path / f"raw/images/a{number}.tif"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(blocks_tiff(dice.integers(0, 9000, (24, 36, 7), np.uint16)))
        write_png(tmp_path / f"raw/labels/a{number}.png", dice.integers(0, 2, (24, 36), np.uint8))
    facts = json_of("probe", "--json", "--classes", "2", tmp_path / "raw")
    assert 'bands = "all"' in facts["config"]
    assert "image-range" not in facts["config"]
    assert not any("bad" in question for question in facts["to_decide"])
