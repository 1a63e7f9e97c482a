"""A build warns about likely mistakes in the data, in text and in JSON."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from conftest import COLOURS, RawFolder, errors_of, good, make_raw, run, scene, write_png
from hypothesis import given
from hypothesis import strategies as st

from packer import FindingsError, build_pack
from packer.data_checks.find_mistakes import ClassCounts, find_mistakes
from packer.data_checks.image_hashes import NEAR_BITS, HashedImage, ImageHashes
from packer.pixels.image_hash import image_hash
from readers.contract.manifest import SHARDS
from readers.contract.receipt import SUFFIX, Receipt
from readers.contract.statistics import ClassStatistics

pytestmark = pytest.mark.usefixtures("in_process")


def built(raw: RawFolder, out: Path, *options: str) -> tuple[list[dict[str, Any]], str]:
    result = good("build", "--json", "--quiet", *options, raw.path, out)
    return json.loads(result.stdout)["findings"], result.stderr


def pairs_of(findings: list[dict[str, Any]], kind: str) -> list[list[str]]:
    return [finding["pairs"] for finding in findings if finding["kind"] == kind]


def test_a_clean_folder_has_no_findings(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 6, "val": 3})
    findings, words = built(raw, tmp_path / "out", "--near-duplicates")
    assert findings == []
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
    assert pairs_of(findings, "duplicates") == [["train/street_000", "train/street_005"]]
    assert findings[0] == {
        "kind": "leakage",
        "pairs": ["train/street_002", "val/street_001"],
        "splits": ["train", "val"],
        "classes": [],
        "accept": "leakage:train/street_002=val/street_001",
        "accepted": False,
    }
    assert "finding   the same image in more than one split (1): train/street_002 = val/street_001" in words


def test_a_night_opens_each_receipt_once_however_many_findings_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 8, "val": 4})
    first_image = (raw.path / "train/images/street_000.png").read_bytes()
    for split, key in raw.images:
        (raw.path / split / "images" / f"{key}.png").write_bytes(first_image)
    (raw.path / "train/images/street_003.png").write_bytes(b"not a picture")
    options = ("--shard-size", "64KiB", "--on-bad", "skip", "--max-bad", "1")
    first, _ = built(raw, tmp_path / "out", *options)
    opened: list[Path] = []
    load = Receipt.load

    def noted(path: Path) -> Receipt:
        opened.append(path)
        return load(path)

    monkeypatch.setattr(Receipt, "load", noted)
    night, _ = built(raw, tmp_path / "out", *options)
    assert night == first
    kept = [f"train/street_{number:03d}" for number in range(8) if number != 3]
    assert pairs_of(night, "leakage") == [[*kept, *(f"val/street_{number:03d}" for number in range(4))]]
    receipts = list((tmp_path / "out" / SHARDS).glob(f"*{SUFFIX}"))
    assert len(receipts) > 1
    assert sorted(opened) == sorted(receipts)


def test_nearly_the_same_is_found_when_asked(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 6, "val": 3}, height=64, width=64)
    pixels = cv2.GaussianBlur(scene(5, 64, 64)[0], (0, 0), 6)
    write_png(raw.path / "train/images/street_004.png", pixels)
    write_png(raw.path / "val/images/street_000.png", np.asarray(np.clip(pixels.astype(int) + 2, 0, 255), np.uint8))
    findings, _ = built(raw, tmp_path / "out", "--near-duplicates")
    assert pairs_of(findings, "near-leakage") == [["train/street_004", "val/street_000"]]
    assert pairs_of(built(raw, tmp_path / "out")[0], "near-leakage") == []
    errors_of(6, "build", "--quiet", "--fail-on", "near-leakage", raw.path, tmp_path / "out")


def test_one_colour_absent_classes_and_many_ignored_pixels_are_reported(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 3}, height=10, width=60)
    write_png(raw.path / "train/images/street_001.png", np.full((10, 60, 3), 77, np.uint8))
    for number in range(3):
        label = np.full((10, 60, 3), COLOURS[0], np.uint8)
        label[0, 0] = COLOURS[2]
        write_png(raw.path / f"train/masks/street_{number:03d}.png", label)
    findings, words = built(raw, tmp_path / "out", "--ignore", "sky")
    assert pairs_of(findings, "one-colour") == [["train/street_001"]]
    accept = ["absent-class:road", "absent-class:person", "extreme-shape:10x60", "ignored-pixels"]
    assert set(accept) < {finding["accept"] for finding in findings}
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
    findings = find_mistakes(ImageHashes.of(images), [], near=True)
    assert {finding.pairs for finding in findings.of("near-leakage")} == wanted


def test_the_hash_marks_images_of_one_colour() -> None:
    flat = np.full((3, 9, 9), 3, np.uint8)
    assert image_hash(255, flat) == "000000ffflat"
    flat[1, 4, 4] = 4
    assert len(image_hash(255, flat)) == 24
    assert find_mistakes(ImageHashes.of([]), [], near=True).to_json() == []


@pytest.fixture
def leaking(tmp_path: Path) -> RawFolder:
    """The same image in two splits, and a class that occurs in train only."""
    raw = make_raw(tmp_path / "raw", {"train": 6, "val": 2})
    shutil.copy(raw.path / "train/images/street_002.png", raw.path / "val/images/street_001.png")
    for number in range(2):
        label = cv2.imread(str(raw.path / f"val/masks/street_00{number}.png"))
        assert label is not None
        label[(label == COLOURS[3][::-1]).all(axis=2)] = COLOURS[0][::-1]
        cv2.imwrite(str(raw.path / f"val/masks/street_00{number}.png"), label)
    return raw


def test_a_class_that_one_split_lacks_is_reported(leaking: RawFolder, tmp_path: Path) -> None:
    findings, words = built(leaking, tmp_path / "out")
    lacking = [finding for finding in findings if finding["kind"] == "absent-in-split"]
    assert [(finding["accept"], finding["splits"], finding["classes"]) for finding in lacking] == [
        ("absent-in-split:val/person", ["val"], ["person"])
    ]
    assert "finding   classes that a split lacks (1): person in val" in words


def test_findings_fail_a_night_until_they_are_accepted(leaking: RawFolder, tmp_path: Path) -> None:
    out, config, metrics = tmp_path / "out", tmp_path / "night.toml", tmp_path / "packer.prom"
    leak = "leakage:train/street_002=val/street_001"
    options = ("--fail-on", "leakage,absent-in-split")
    errors = errors_of(6, "build", "--quiet", "--metrics-file", metrics, *options, leaking.path, out)
    assert "2 findings of --fail-on leakage,absent-in-split (nothing was published)" in errors
    assert f"  {leak}\n  absent-in-split:val/person\n" in errors
    assert "packer_exit_code 6\n" in metrics.read_text()
    assert not (out / "manifest.json").exists()
    config.write_text(f'fail-on = "leakage,absent-in-split"\naccept = ["{leak}"]\n')
    assert run("build", "--quiet", "--config", config, leaking.path, out).exit_code == 6
    findings, words = built(leaking, out, "--config", str(config), "--accept", leak, "--accept", "absent-in-split")
    assert [finding["accepted"] for finding in findings] == [True, True]
    assert "finding" not in words
    assert run("repair", "--quiet", out, leaking.path).exit_code == 0
    with pytest.raises(FindingsError) as error:
        build_pack(leaking.path, tmp_path / "other", fail_on=["leakage"], accept=["leakage:train/street_002"])
    assert error.value.problems == (leak,)
    assert run("build", "--fail-on", "leek", leaking.path, out).exit_code == 2
    assert run("build", "--accept", "leek:x", leaking.path, out).exit_code == 2


def test_a_class_called_void_is_pointed_out_once(tmp_path: Path) -> None:
    raw, out = make_raw(tmp_path / "raw", {"train": 3}), tmp_path / "out"
    table = raw.path / "class_dict.csv"
    table.write_text(table.read_text().replace("sky", "Unlabeled").replace("road", "background"))
    _, words = built(raw, out)
    assert "(2): Unlabeled, background" in words
    assert "Unlabeled" not in built(raw, out)[1], "the classes are those of the generation before"
    assert run("build", "--quiet", "--fail-on", "void-class", raw.path, out).exit_code == 6
    assert "Unlabeled" not in built(raw, out, "--ignore", "Unlabeled")[1]
    table.write_text(table.read_text().replace("car", "vehicle"))
    assert "Unlabeled, background" in built(raw, out)[1], "the classes have changed"
    two = ClassCounts(("background", "crack"), {"all": ClassStatistics((1, 1), (1, 1), (1, 1), 0)})
    assert find_mistakes(ImageHashes.of([]), [], two).to_json() == [], "a background is needed next to a single class"
