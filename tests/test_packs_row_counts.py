"""Row counts: what a build counts of each row is what its pixels hold, and is counted again where it is missing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import RawFolder, pack, scene, write_png

from packer import build_pack
from packer.packs.count_rows import count_rows
from packer.packs.garbage import delete_garbage
from packer.publish.target import STAMPS
from packer.shards.row_counts import SUFFIX, RowCounts
from readers import DamagedError, open_dataset
from readers.contract.manifest import MARK
from readers.pack import Pack

pytestmark = pytest.mark.usefixtures("in_process")


def counts_of(out: Path) -> list[RowCounts]:
    return list(count_rows(Pack.open(out)))


def from_pixels(out: Path) -> list[tuple[list[int], int, float]]:
    """Count the rows of a pack by what a data set gives."""
    data = open_dataset(out, "all", label="index")
    counted = []
    for sample in data:
        image, label = np.asarray(sample[0]), np.asarray(sample[1])
        found = np.bincount(label.ravel(), minlength=256)
        counted.append((found[: len(data.classes)].tolist(), int(found[255]), float(image.mean()) / 255))
    return counted


def in_rows(counts: list[RowCounts]) -> list[tuple[list[int], int, float]]:
    return [
        (shard.classes[:, row].tolist(), int(shard.ignored[row]), float(shard.brightness[row]))
        for shard in counts
        for row in range(len(shard.ignored))
    ]


def assert_equal(counts: list[RowCounts], out: Path) -> None:
    ours, theirs = in_rows(counts), from_pixels(out)
    assert [row[:2] for row in ours] == [row[:2] for row in theirs]
    assert np.allclose([row[2] for row in ours], [row[2] for row in theirs], atol=1e-6)


def files(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / STAMPS).glob(f"*{SUFFIX}")}


def test_what_a_build_counts_is_what_the_pixels_hold(packed: Path) -> None:
    assert len(files(packed)) == Pack.open(packed).manifest.shards > 3
    assert_equal(counts_of(packed), packed)


@pytest.mark.parametrize(
    "options",
    [{"fit": "tile", "size": (16, 16)}, {"size": None, "fit": "native"}, {"fit": "letterbox", "size": (40, 40)}],
)
def test_pieces_are_counted(raw_folder: RawFolder, tmp_path: Path, options: Any) -> None:
    out = tmp_path / "out"
    build_pack(raw_folder.path, out, labels="index", shard_size="8KB", **options)
    assert_equal(counts_of(out), out)


def test_bad_pairs_have_no_counts(raw_folder: RawFolder, tmp_path: Path) -> None:
    raw, out = tmp_path / "raw", tmp_path / "out"
    shutil.copytree(raw_folder.path, raw)
    bad = sorted(raw.rglob("*.png"))[3]
    bad.write_bytes(bad.read_bytes()[:-60])
    summary = build_pack(raw, out, labels="index", on_bad="skip")
    assert len(summary.rejects) == 1
    assert_equal(counts_of(out), out)


@pytest.mark.parametrize("harm", ["missing", "cut", "another form", "other sizes"])
def test_missing_counts_are_counted_from_the_pixels(packed: Path, tmp_path: Path, harm: str) -> None:
    out = tmp_path / "out"
    shutil.copytree(packed, out)
    known = files(out)
    for path in (out / STAMPS).glob(f"*{SUFFIX}"):
        data = path.read_bytes()
        if harm == "missing":
            path.unlink()
        elif harm == "cut":
            path.write_bytes(data[:-1])
        else:
            old, new = {"another form": (b'"rule": 1', b'"rule": 0'), "other sizes": (b'"classes": ', b'"classes": 1')}[
                harm
            ]
            path.write_bytes(data.replace(old, new))
    (out / MARK).unlink()
    assert_equal(counts_of(out), out)
    assert files(out) != known, "a folder that is not ours stays as it is"
    (out / MARK).touch()
    assert_equal(counts_of(out), out)
    assert files(out) == known


def test_rows_without_a_label_have_no_classes(tmp_path: Path) -> None:
    raw, out = tmp_path / "raw", tmp_path / "out"
    for number in range(6):
        image, label = scene(number, 12, 16)
        write_png(raw / f"images/a{number}.png", image)
        if number % 2:
            write_png(raw / f"labels/a{number}.png", label)
    build_pack(raw, out, labels="index", classes=4, missing="keep", shard_size="1KB")
    found = counts_of(out)
    for path in (out / STAMPS).glob(f"*{SUFFIX}"):
        path.unlink()
    again = counts_of(out)
    assert {len(shard.classes) for shard in found} == {0, 4}
    assert in_rows(found) == in_rows(again)


def test_a_row_with_impossible_numbers_is_named(raw_folder: RawFolder, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build_pack(raw_folder.path, out, labels="index", format="npy")
    shutil.rmtree(out / STAMPS)
    with sorted((out / "shards").glob("*.label.npy"))[0].open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\xfe")
    with pytest.raises(DamagedError, match="has numbers in its label that are in none"):
        counts_of(out)


def test_gc_deletes_the_counts_of_shards_that_are_gone(raw_folder: RawFolder, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pack(raw_folder.path, out, "--labels", "index", "--size", "16x16")
    old = set(files(out))
    pack(raw_folder.path, out, "--labels", "index", "--size", "8x8")
    assert old < set(files(out))
    delete_garbage(out, keep=1, grace=0)
    assert not old & set(files(out))
    assert len(files(out)) == Pack.open(out).manifest.shards
