"""A build warns about likely mistakes in the data, in text and in JSON."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from conftest import COLOURS, RawFolder, make_raw, run, scene, write_png
from hypothesis import given
from hypothesis import strategies as st

from packer.data_checks import NEAR_BITS, HashedImage, find_mistakes
from packer.pixels.row_statistics import image_hash


def built(raw: RawFolder, out: Path, *options: str) -> tuple[dict[str, Any], str]:
    result = run("build", "--json", "--quiet", *options, raw.path, out)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["findings"], result.stderr


def test_a_clean_folder_has_no_findings(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 6, "val": 3})
    findings, words = built(raw, tmp_path / "out", "--near-duplicates")
    assert not any(findings.values())
    assert "finding" not in words


def test_the_same_pixels_in_two_splits_are_found_though_the_files_differ(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 6, "val": 3})
    source, copy = raw.path / "train/images/street_002.png", raw.path / "val/images/street_001.png"
    pixels = cv2.imread(str(source))
    assert pixels is not None
    cv2.imwrite(str(copy), pixels, [cv2.IMWRITE_PNG_COMPRESSION, 0])
    assert source.read_bytes() != copy.read_bytes()
    shutil.copy(raw.path / "train/images/street_000.png", raw.path / "train/images/street_005.png")
    findings, words = built(raw, tmp_path / "out")
    assert findings["duplicates_across_splits"] == [["train/street_002", "val/street_001"]]
    assert findings["duplicates_within_a_split"] == [["train/street_000", "train/street_005"]]
    assert "finding   the same image in more than one split (1): train/street_002 = val/street_001" in words


def test_nearly_the_same_is_found_when_asked(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 6, "val": 3}, height=64, width=64)
    pixels = cv2.GaussianBlur(scene(5, 64, 64)[0], (0, 0), 6)
    write_png(raw.path / "train/images/street_004.png", pixels)
    write_png(raw.path / "val/images/street_000.png", np.asarray(np.clip(pixels.astype(int) + 2, 0, 255), np.uint8))
    findings, _ = built(raw, tmp_path / "out", "--near-duplicates")
    assert findings["near_duplicates_across_splits"] == [["train/street_004", "val/street_000"]]
    assert built(raw, tmp_path / "out")[0]["near_duplicates_across_splits"] == []


def test_one_colour_absent_classes_and_many_ignored_pixels_are_reported(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 3}, height=10, width=60)
    write_png(raw.path / "train/images/street_001.png", np.full((10, 60, 3), 77, np.uint8))
    for number in range(3):
        label = np.full((10, 60, 3), COLOURS[0], np.uint8)
        label[0, 0] = COLOURS[2]
        write_png(raw.path / f"train/masks/street_{number:03d}.png", label)
    findings, words = built(raw, tmp_path / "out", "--ignore", "sky")
    assert findings["one_colour_images"] == ["train/street_001"]
    assert findings["classes_that_never_occur"] == ["road", "person"]
    assert findings["extreme_shapes"] == ["10x60"]
    assert findings["ignored_share"] == round(599 / 600, 6)
    assert "99.8 % of the label pixels are ignored" in words


@given(st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=12), st.data())
def test_near_duplicates_differ_in_few_bits_by_brute_force(hashes: list[int], data: st.DataObject) -> None:
    base = hashes[0]
    for index in range(1, len(hashes)):
        if data.draw(st.booleans()):
            hashes[index] = base ^ sum(1 << bit for bit in data.draw(st.sets(st.integers(0, 63), max_size=5)))
    images = [HashedImage("ab"[n % 2], str(n), f"{n:08x}{value:016x}") for n, value in enumerate(hashes)]
    wanted = {
        (images[a].name, images[b].name)
        for a in range(len(images))
        for b in range(a + 1, len(images))
        if a % 2 != b % 2 and (hashes[a] ^ hashes[b]).bit_count() <= NEAR_BITS
    }
    assert set(find_mistakes(images, [], near=True).near) == wanted


def test_the_hash_marks_images_of_one_colour() -> None:
    flat = np.full((9, 9, 3), 3, np.uint8)
    assert image_hash(255, flat) == "000000ffflat"
    flat[4, 4, 1] = 4
    assert len(image_hash(255, flat)) == 24
    assert find_mistakes([], [], near=True).to_json()["near_duplicates_across_splits"] == []
