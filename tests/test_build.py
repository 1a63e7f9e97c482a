"""`packer build` as a user meets it: what it prints, what it refuses, what it leaves behind."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from conftest import (
    COLOURS,
    SMALL_SHARDS,
    RawFolder,
    errors_of,
    good,
    json_of,
    make_raw,
    opencv_rgb,
    pack,
    run,
    scene,
    write_png,
)
from handmade import encoded_as
from numpy.typing import NDArray

from readers import open_dataset
from readers.contract.manifest import STORAGES, Manifest
from readers.contract.receipt import SUFFIX, Receipt


@pytest.fixture
def raw(tmp_path: Path) -> RawFolder:
    return make_raw(tmp_path / "raw", {"train": 6, "val": 2})


def tree(out: Path) -> dict[str, str]:
    """The SHA-256 of every shard file, receipt and table."""
    files = [*out.glob("shards/*"), *out.glob("generations/shards-*")]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("storage", STORAGES)
def test_the_same_bytes_for_any_workers_and_listing_order(raw_folder: RawFolder, tmp_path: Path, storage: str) -> None:
    """1 builds in a thread, 2 in processes, 5 in threads within shards; the copy lists in another order."""
    options = ("--format", storage, *SMALL_SHARDS)
    trees = [tree(pack(raw_folder.path, tmp_path / f"w{n}", *options, "--workers", n)) for n in (1, 2, 5)]
    shuffled = tmp_path / "shuffled"
    for path in sorted(raw_folder.path.rglob("*"), key=lambda path: hashlib.sha256(path.name.encode()).digest()):
        if path.is_file():
            target = shuffled / path.relative_to(raw_folder.path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            os.utime(target, (1, 1))
    trees.append(tree(pack(shuffled, tmp_path / "copy", *options)))
    assert len(trees[0]) > 8
    assert all(other == trees[0] for other in trees[1:])


@pytest.mark.parametrize("storage", STORAGES)
def test_history_leaves_no_trace(tmp_path: Path, storage: str) -> None:
    """Adding, changing and removing pairs gives what a fresh build of the result gives; untouched shards stay."""
    raw = make_raw(tmp_path / "raw", {"train": 12})
    out = pack(raw.path, tmp_path / "out", "--format", storage, *SMALL_SHARDS)
    before = {path.name: path.stat().st_ino for path in out.glob("shards/*")}
    image, index = scene(99, 24, 36)
    write_png(raw.path / "train/images/street_0045.png", image)
    write_png(raw.path / "train/masks/street_0045.png", COLOURS[index])
    write_png(raw.path / "train/images/street_007.png", image)
    (raw.path / "train/images/street_011.png").unlink()
    (raw.path / "train/masks/street_011.png").unlink()
    pack(raw.path, out, "--format", storage, *SMALL_SHARDS)
    fresh = tree(pack(raw.path, tmp_path / "fresh", "--format", storage, *SMALL_SHARDS))
    assert fresh.items() <= tree(out).items()
    kept = before.keys() & fresh.keys()
    assert kept
    assert all((out / "shards" / name).stat().st_ino == before[name] for name in kept), "a published file was replaced"
    assert {path.name for path in out.glob(".*")} == {".segpack", ".lock"}


def test_the_same_input_again_is_the_same_generation(raw: RawFolder, tmp_path: Path) -> None:
    first = pack(raw.path, tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in first.rglob("*") if path.is_file()}
    assert "generation 1" in run("build", raw.path, first).stdout
    after = {path: path.stat().st_mtime_ns for path in first.rglob("*") if path.is_file()}
    stamps = {path for path in before if path.parent.name == "stamps" or path.name in (".lock", "packer.toml")}
    assert {path: after[path] for path in after.keys() - stamps} == {
        path: before[path] for path in before.keys() - stamps
    }


def test_a_summary_on_stdout_words_on_stderr(raw: RawFolder, tmp_path: Path) -> None:
    result = good("build", raw.path, tmp_path / "new" / "out")
    assert "8 rows (train 6, val 2) of 8 pairs" in result.stdout
    assert result.stdout.count("\n") == 1
    assert "--labels index needs" in result.stderr


def test_json_is_the_whole_of_stdout(raw: RawFolder, tmp_path: Path) -> None:
    facts = json_of("build", "--json", raw.path, tmp_path / "out")
    assert (facts["pairs"], facts["rows"], facts["rejects"], facts["splits"]) == (8, 8, [], {"train": 6, "val": 2})
    assert facts["bytes"] == sum(f.stat().st_size for f in (tmp_path / "out/shards").iterdir() if f.suffix == ".npy")
    assert list(facts["stages"]) == ["find", "check", "audit", "compare", "build", "look back", "publish"]
    assert facts["seconds"] == pytest.approx(sum(facts["stages"].values()), abs=0.01)
    assert facts["rejects_by_reason"] == {}


def test_a_dry_run_prints_the_plan_and_leaves_nothing(raw: RawFolder, tmp_path: Path) -> None:
    text = run("build", "--dry-run", raw.path, tmp_path / "out").stdout
    for fact in (
        "train 6, val 2",
        "rejects   0",
        "24x36 (8)",
        "4: sky, road, car, person",
        "free",
        "--labels index needs",
    ):
        assert fact in text
    facts = json_of("build", "--dry-run", "--json", raw.path, tmp_path / "out")
    assert facts["bytes"] == 8 * 24 * 36 * (3 + 4)
    assert facts["bytes_with_labels_index"] == 8 * 24 * 36 * (3 + 1)
    assert not (tmp_path / "out").exists()


def test_the_plan_is_what_the_build_then_takes(raw: RawFolder, tmp_path: Path) -> None:
    for labels in ("onehot", "index"):
        facts = json_of("build", "--dry-run", "--json", "--labels", labels, raw.path, tmp_path / "x")
        manifest = Manifest.load(pack(raw.path, tmp_path / labels, "--labels", labels))
        assert facts["shards"] == manifest.shards
        assert 0 <= manifest.bytes - facts["bytes"] < 1500 * manifest.shards


def test_index_labels_without_a_table_get_advice_what_to_type(raw: RawFolder, tmp_path: Path) -> None:
    (raw.path / "class_dict.csv").unlink()
    for (split, key), index in raw.labels.items():
        write_png(raw.path / split / "masks" / f"{key}.png", np.where(index == 3, 255, index).astype(np.uint8))
    errors = errors_of(1, "build", raw.path, tmp_path / "out")
    assert "perhaps --classes 3 --ignore 255" in errors
    assert "values in a sample of 8 of 8 labels: 0, 1, 2, 255" in errors
    dataset = open_dataset(pack(raw.path, tmp_path / "out", "--classes", 3, "--ignore", 255), "train")
    assert np.array_equal(dataset[0][1].sum(0).numpy(), raw.labels["train", "street_000"] != 3)


def test_several_sizes_are_listed_with_the_choice(raw: RawFolder, tmp_path: Path) -> None:
    image, index = scene(1, 10, 20)
    write_png(raw.path / "train/images/odd.png", image)
    write_png(raw.path / "train/masks/odd.png", COLOURS[index])
    errors = errors_of(1, "build", raw.path, tmp_path / "out")
    assert "24x36: 8 pairs" in errors
    assert "10x20: 1 pair" in errors
    assert "--size" in errors
    for fit in ("stretch", "letterbox", "crop-or-pad"):
        out = pack(raw.path, tmp_path / fit, "--size", "16x16", "--fit", fit)
        assert open_dataset(out, "train")[0][0].shape == (3, 16, 16)
        onehot, index_form = open_dataset(out, "all"), open_dataset(out, "all", label="index")
        for row in range(len(onehot)):
            assert np.array_equal(onehot[row][1].sum(0).numpy() == 0, index_form[row][1].numpy() == 255)


def break_some(raw: RawFolder) -> None:
    """Three bad pairs: one by its sizes, one that only decoding shows, one by an unknown colour."""
    write_png(raw.path / "train/images/street_001.png", scene(1, 24, 35)[0])
    path = raw.path / "train/images/street_002.png"
    path.write_bytes(path.read_bytes()[:-40])
    label = COLOURS[raw.labels["val", "street_000"]].copy()
    label[4, 7] = (1, 1, 1)
    write_png(raw.path / "val/masks/street_000.png", label)


def test_a_bad_pair_fails_the_build_by_name_and_publishes_nothing(raw: RawFolder, tmp_path: Path) -> None:
    write_png(raw.path / "train/images/street_001.png", scene(1, 24, 35)[0])
    errors = errors_of(1, "build", raw.path, tmp_path / "out")
    assert "train/images/street_001.png: is 24x35, its label train/masks/street_001.png is 24x36" in errors
    assert not (tmp_path / "out").exists(), "facts in headers are known before anything is written"
    make_raw(raw.path, {"train": 6, "val": 2})
    label = raw.path / "val/masks/street_000.png"
    write_png(label, np.full((24, 36, 3), 9, np.uint8))
    errors = errors_of(1, "build", raw.path, tmp_path / "out")
    assert "val/masks/street_000.png: has a colour in no class (#090909: 864 pixels" in errors
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_what_has_no_partner_is_counted_in_the_summary(raw: RawFolder, tmp_path: Path) -> None:
    (raw.path / "val/masks/street_000.png").unlink()
    result = run("build", "--quiet", "--missing", "skip", raw.path, tmp_path / "out")
    assert "left out val/images/street_000" in result.stderr
    assert ", 0 left out, 1 without partner, " in result.stdout


def test_bad_pairs_can_be_skipped_and_every_one_is_accounted_for(raw: RawFolder, tmp_path: Path) -> None:
    break_some(raw)
    result = good("build", "--on-bad", "skip", *SMALL_SHARDS, raw.path, tmp_path / "out")
    for name in ("train/street_001", "train/street_002", "val/street_000"):
        assert f"left out {name}: " in result.stderr
    manifest = Manifest.load(tmp_path / "out")
    assert [(split.name, split.rows, split.rejects) for split in manifest.splits] == [("train", 4, 2), ("val", 1, 1)]
    receipts = [Receipt.load(path) for path in (tmp_path / "out" / "shards").glob(f"*{SUFFIX}")]
    assert sum(len(receipt.sources) for receipt in receipts) == 8
    assert sorted(reject.key for receipt in receipts for reject in receipt.rejects) == [
        "street_000",
        "street_001",
        "street_002",
    ]
    dataset = open_dataset(tmp_path / "out", "train")
    assert [dataset.key(row) for row in range(4)] == ["street_000", "street_003", "street_004", "street_005"]
    assert np.array_equal(dataset[1][0].numpy().transpose(1, 2, 0), raw.images["train", "street_003"])
    assert run("verify", tmp_path / "out").exit_code == 0


@pytest.mark.parametrize(("limit", "code"), [("2", 3), ("3", 0), ("25%", 3), ("40%", 0), ("0", 3)])
def test_more_bad_pairs_than_allowed_is_exit_3_and_leaves_the_old_generation(
    raw: RawFolder, tmp_path: Path, limit: str, code: int
) -> None:
    out = pack(raw.path, tmp_path / "out", *SMALL_SHARDS)
    before = (out / "manifest.json").read_bytes()
    break_some(raw)
    result = run("build", "--on-bad", "skip", "--max-bad", limit, *SMALL_SHARDS, raw.path, out)
    assert result.exit_code == code, result.stderr
    assert ((out / "manifest.json").read_bytes() == before) == (code == 3)
    assert len(open_dataset(out, "all")) == (8 if code == 3 else 5)


def test_a_shard_of_bad_pairs_only_is_an_empty_shard(raw: RawFolder, tmp_path: Path) -> None:
    for path in (raw.path / "val/images").iterdir():
        path.write_bytes(b"\xff\xd8nothing")
    for storage in STORAGES:
        out = pack(raw.path, tmp_path / storage, "--format", storage, "--on-bad", "skip")
        assert len(open_dataset(out, "val")) == 0
        assert len(open_dataset(out, "all")) == 6
        assert run("verify", out).exit_code == 0


def test_when_every_pair_is_bad_there_is_nothing_to_publish(raw: RawFolder, tmp_path: Path) -> None:
    for path in raw.path.glob("*/images/*"):
        path.write_bytes(b"")
    result = run("build", "--on-bad", "skip", "--size", "8x8", raw.path, tmp_path / "out")
    assert result.exit_code != 0
    assert "8 images: empty; first: train/images/street_000.png, train/images/street_001.png, " in result.stderr
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize("content", ["holiday.jpg", "shards"])
def test_a_folder_that_is_not_ours_is_never_touched(raw: RawFolder, tmp_path: Path, content: str) -> None:
    out = tmp_path / "precious"
    out.mkdir()
    (out / content).write_bytes(b"mine")
    for options in ((), ("--dry-run",)):
        assert f"is not a packed data set (it holds {content}" in errors_of(1, "build", *options, raw.path, out)
    assert [(path.name, path.read_bytes()) for path in out.iterdir()] == [(content, b"mine")]
    file = tmp_path / "file"
    file.write_text("x")
    assert "is a file" in run("build", raw.path, file).stderr
    assert file.read_text() == "x"


def test_an_empty_folder_is_taken(raw: RawFolder, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert len(open_dataset(pack(raw.path, tmp_path / "out"), "all")) == 8


def test_a_build_that_died_early_is_gone_on_with(raw: RawFolder, tmp_path: Path) -> None:
    out = pack(raw.path, tmp_path / "out")
    (out / "manifest.json").unlink()
    assert run("verify", out).exit_code == 1
    assert len(open_dataset(pack(raw.path, out), "all")) == 8
    assert run("verify", out).exit_code == 0


def test_a_disk_that_is_too_small_is_refused_before_work(
    raw: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=10_000))
    errors = errors_of(1, "build", raw.path, tmp_path / "out")
    assert "needs about 179,456 bytes, the disk has 10,000 free; --labels index needs 27,648 bytes" in errors
    assert not (tmp_path / "out").exists()
    assert "not enough" in run("build", "--dry-run", raw.path, tmp_path / "out").stdout


def test_a_pack_that_is_there_already_needs_no_space_again(
    raw: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = pack(raw.path, tmp_path / "out")
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=140_000))
    assert run("build", raw.path, out).exit_code == 0
    assert "140,000 free" in run("build", "--labels", "index", "--size", "512x512", raw.path, out).stderr


def test_wide_images_are_packed_by_their_range_in_every_dtype(tmp_path: Path) -> None:
    """16-bit PNG, float TIFF and 8-bit BMP in one folder; the range is of the numbers in each."""
    raw = make_raw(tmp_path / "raw", {"train": 3})
    wide = np.random.default_rng(0).integers(0, 1000, (24, 36, 3), dtype=np.uint16)
    small = (wide // 4).astype(np.uint8)
    files: dict[str, NDArray[Any]] = {
        "street_000.png": wide,
        "street_001.tif": wide.astype(np.float32),
        "street_002.bmp": small,
    }
    for name, pixels in files.items():
        (raw.path / "train/images" / name).with_suffix(".png").unlink()
        ok, data = cv2.imencode(
            Path(name).suffix, np.ascontiguousarray(pixels[..., ::-1]), [cv2.IMWRITE_TIFF_COMPRESSION, 1]
        )
        assert ok
        (raw.path / "train/images" / name).write_bytes(data.tobytes())
    errors = errors_of(1, "build", "--quiet", raw.path, tmp_path / "out")
    assert "street_000.png: has 16 bits per channel" in errors
    assert "street_001.tif: has 32 bits per channel, not 8; give --image-range" in errors
    for dtype in ("uint8", "float16", "float32"):
        out = pack(raw.path, tmp_path / dtype, "--image-range", "100,900", "--image-dtype", dtype)
        for (image, _), pixels in zip(open_dataset(out), files.values(), strict=True):
            share = np.clip((pixels.astype(np.float32) - 100) / np.float32(800), 0, 1)
            wanted = np.rint(share * 255).astype(np.uint8) if dtype == "uint8" else share.astype(dtype)
            assert np.array_equal(image.numpy().transpose(1, 2, 0), wanted)


@pytest.mark.parametrize("suffix", [".bmp", ".tif", ".webp"])
def test_labels_of_other_kinds_are_packed_where_nothing_is_lost(tmp_path: Path, suffix: str) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 2})
    for (_, key), index in raw.labels.items():
        (raw.path / f"train/masks/{key}.png").unlink()
        label = encoded_as(suffix, COLOURS[index], *((cv2.IMWRITE_WEBP_QUALITY, 101) if suffix == ".webp" else ()))
        (raw.path / f"train/masks/{key}{suffix}").write_bytes(label)
    dataset = open_dataset(pack(raw.path, tmp_path / "out"), label="index")
    for row, index in enumerate(raw.labels.values()):
        assert np.array_equal(dataset[row][1].numpy(), index)


def test_resized_wide_images_stay_within_0_and_1(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 1})
    checkers = (np.indices((24, 36)).sum(0) // 3 % 2 * 65535).astype(np.uint16)
    write_png(raw.path / "train/images/street_000.png", checkers)
    options = ("--size", "31x50", "--interpolation", "cubic", "--image-range", "0,65535", "--image-dtype", "float32")
    image, _ = open_dataset(pack(raw.path, tmp_path / "out", *options))[0]
    assert float(image.min()) == 0.0
    assert float(image.max()) == 1.0


def test_alpha_can_be_dropped_and_pixels_limited(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 1})
    path = raw.path / "train/images/street_000.png"
    pixels = np.dstack([raw.images["train", "street_000"][..., ::-1], np.zeros((24, 36), np.uint8)])
    path.write_bytes(cv2.imencode(".png", pixels)[1].tobytes())
    assert (
        "flatten it, or pack the unchanged colours with --alpha drop" in run("build", raw.path, tmp_path / "o").stderr
    )
    out = pack(raw.path, tmp_path / "out", "--alpha", "drop", "--max-pixels", 24 * 36)
    image, _ = open_dataset(out)[0]
    assert np.array_equal(image.numpy().transpose(1, 2, 0), raw.images["train", "street_000"])
    limited = run("build", "--alpha", "drop", "--max-pixels", 24 * 36 - 1, raw.path, tmp_path / "limited")
    assert "claims 36x24 pixels; 1 to 863 are allowed (--max-pixels)" in limited.stderr


def test_unknown_colours_can_be_ignored_on_request(raw: RawFolder, tmp_path: Path) -> None:
    label = COLOURS[raw.labels["val", "street_000"]].copy()
    label[4, 7] = (1, 1, 1)
    write_png(raw.path / "val/masks/street_000.png", label)
    dataset = open_dataset(pack(raw.path, tmp_path / "out", "--unknown", "ignore"), "val", label="index")
    assert int(dataset[0][1][4, 7]) == 255
    assert int((dataset[0][1] == 255).sum()) == 1


def test_jpeg_images_and_gray_ones_are_packed(tmp_path: Path) -> None:
    image, index = scene(3, 24, 36)
    smooth = cv2.GaussianBlur(image, (0, 0), 3)
    (tmp_path / "raw/images").mkdir(parents=True)
    cv2.imwrite(str(tmp_path / "raw/images/colour.jpg"), smooth[..., ::-1])
    cv2.imwrite(str(tmp_path / "raw/images/gray.JPEG.jpeg"), smooth[..., 0])
    write_png(tmp_path / "raw/images/gray.png", smooth[..., 1])
    for name in ("colour", "gray.JPEG", "gray"):
        write_png(tmp_path / f"raw/labels/{name}.png", index)
    dataset = open_dataset(pack(tmp_path / "raw", tmp_path / "out", "--classes", 4))
    assert [dataset.key(row) for row in range(3)] == ["colour", "gray", "gray.JPEG"]
    assert np.array_equal(dataset[1][0].numpy(), np.stack([smooth[..., 1]] * 3))
    wanted = opencv_rgb((tmp_path / "raw/images/colour.jpg").read_bytes())
    assert np.array_equal(dataset[0][0].numpy(), wanted.transpose(2, 0, 1))


@pytest.mark.parametrize(
    "arguments",
    [
        ("build",),
        ("build", "--size", "12", "raw", "out"),
        ("build", "--size", "0x5", "raw", "out"),
        ("build", "--format", "zarr", "raw", "out"),
        ("build", "--max-bad", "lots", "raw", "out"),
        ("build", "--shard-size", "0", "raw", "out"),
        ("build", "--workers", "0", "raw", "out"),
        ("build", "--image-range", "9,3", "raw", "out"),
        ("build", "--image-range", "0", "raw", "out"),
        ("build", "--max-pixels", "0", "raw", "out"),
        ("burn", "raw", "out"),
        ("info",),
    ],
)
def test_wrong_usage_is_exit_2(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2


@pytest.mark.parametrize(
    "options",
    [
        ("--ignore", "vod"),
        ("--ignore", "#12"),
        ("--classes", "5-1"),
        ("--classes", "0"),
        ("--classes", "1,1"),
        ("--max-bad", "5"),
        ("--fit", "letterbox"),
        ("--image", "a/{kye}", "--label", "b/{key}"),
        ("--image", "a/{key}", "--label", "b/{city}/{key}"),
        ("--image", "a/{key}"),
        ("--split", "80/10"),
        ("--split-by", "city"),
        ("--split", "80/20", "--lists", "splits"),
        ("--lists", "splits/*.txt{split}"),
    ],
)
def test_options_that_cannot_be_are_wrong_usage(raw: RawFolder, tmp_path: Path, options: tuple[str, ...]) -> None:
    errors = errors_of(2, "build", *options, raw.path, tmp_path / "out")
    assert options[0] in errors or options[1] in errors
    assert not (tmp_path / "out").exists()


def test_a_binary_mask_is_two_values(raw: RawFolder, tmp_path: Path) -> None:
    (raw.path / "class_dict.csv").unlink()
    for (split, key), index in raw.labels.items():
        write_png(raw.path / split / "masks" / f"{key}.png", np.where(index > 1, 255, 0).astype(np.uint8))
    assert "perhaps --label-codec binary" in run("build", raw.path, tmp_path / "out").stderr
    dataset = open_dataset(pack(raw.path, tmp_path / "out", "--classes", "0,255"), "train", label="index")
    assert np.array_equal(dataset[0][1].numpy(), raw.labels["train", "street_000"] > 1)


def test_replacing_a_pack_by_another_recipe_is_reported(raw: RawFolder, tmp_path: Path) -> None:
    out = pack(raw.path, tmp_path / "out", "--format", "lmdb")
    result = run("build", "--labels", "index", raw.path, out)
    assert "the recipe differs from the recipe of generation 1 (lmdb, 4 classes, 8 rows)" in result.stderr
    assert "recipe differs" not in run("build", "--labels", "index", raw.path, out).stderr


def test_a_long_error_repeats_its_first_line_at_the_end(tmp_path: Path) -> None:
    config = tmp_path / "packer.toml"
    config.write_text("".join(f"option{number} = 1\n" for number in range(30)))
    lines = run("build", "--config", config, tmp_path / "raw", tmp_path / "out").stderr.splitlines()
    assert len(lines) == 32
    assert lines[-1] == lines[0] + " (listed above)"
    assert "30 problems in the configuration" in lines[0]


def test_another_verdict_on_the_same_files_is_another_shard(raw: RawFolder, tmp_path: Path) -> None:
    """A reject names its file, which may be renamed: published files stay unchanged."""
    bad = raw.path / "train/images/street_001.png"
    bad.write_bytes(bad.read_bytes()[:-20])
    out = pack(raw.path, tmp_path / "out", "--on-bad", "skip")
    before = {path: path.read_bytes() for path in out.glob("shards/*")}
    bad.rename(bad.with_suffix(".jpg"))
    pack(raw.path, out, "--on-bad", "skip")
    assert Manifest.load(out).generation == 2
    assert all(path.read_bytes() == data for path, data in before.items())


def test_info_prints_what_is_in_a_pack(raw: RawFolder, tmp_path: Path) -> None:
    out = pack(raw.path, tmp_path / "out", "--labels", "index", "--format", "lmdb")
    text = run("info", out).stdout
    for fact in (
        "lmdb, generation 1",
        "train     6 rows",
        "val       2 rows",
        "4 classes",
        "#dc143c",
    ):
        assert fact in text
    facts = json_of("info", "--json", out)
    counts = [split["statistics"]["label"] for split in facts["splits"]]
    assert [split["ignored"] for split in counts] == [0, 0]
    pixels = np.bincount(np.concatenate([index.reshape(-1) for index in raw.labels.values()])).tolist()
    assert np.sum([split["classes"] for split in counts], 0).tolist() == pixels
    assert facts["recipe"]["fields"][1]["field"]["form"] == "index"


def test_info_of_a_folder_that_is_not_a_pack_is_one_line(tmp_path: Path) -> None:
    errors = errors_of(1, "info", tmp_path)
    assert "packer build" in errors
    assert errors.count("\n") == 1


def test_the_note_about_bytes_comes_once_after_success_and_not_under_quiet(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    for number in range(2):
        write_png(raw / f"images/{number}.png", np.full((8, 8, 3), number, np.uint8))
        write_png(raw / f"labels/{number}.png", np.full((8, 8), number, np.uint8))
    note, options = "label planes are most of this pack", ("--classes", 9, raw, tmp_path / "out")
    assert note in run("build", "--dry-run", *options).stdout
    quiet = good("build", "--quiet", "--classes", 9, raw, tmp_path / "quiet")
    assert note not in quiet.stderr + quiet.stdout
    (raw / "labels/1.png").write_bytes(b"")
    assert note not in errors_of(1, "build", *options)
    write_png(raw / "labels/1.png", np.full((8, 8), 1, np.uint8))
    assert run("build", *options).stderr.count(note) == 1
    assert note not in run("build", *options).stderr
