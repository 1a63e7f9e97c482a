"""Statistics match the pixels that readers deliver, for any division into shards."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import SMALL_SHARDS, RawFolder, json_of, pack, run
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as of_numpy
from numpy.typing import NDArray

from packer.pixels.exact_sums import byte_sums, exact_sums
from packer.pixels.stored_label import count_runs
from packer.shards.kinds.picture import count
from readers import RequestError, SegDataset, open_dataset
from readers.contract.json_entry import Entry, JsonProblem
from readers.contract.manifest import Manifest, Split
from readers.contract.statistics import (
    UNIT_BITS,
    ClassStatistics,
    IdStatistics,
    PictureStatistics,
    ValueStatistics,
    class_counts,
    read_statistics,
    statistics_json,
)
from readers.statistics import WEIGHTINGS, class_weights, training_statistics

SMALL = ClassStatistics((6, 2, 0), (2, 1, 0), (12, 4, 0), 4)
"""Two rows of 2x2 and 2x4 pixels: the first class is in both, the second in the smaller, the third in none."""


def all_pixels(dataset: SegDataset) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the numbers of all images from 0 to 1 (3,N), and the indices of all labels (N)."""
    scale = 255 if dataset.fields[0].dtype == "|u1" else 1
    images = torch.cat([image.double().reshape(3, -1) / scale for image, _ in dataset], 1)
    return images, torch.cat([label.reshape(-1) for _, label in dataset])


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_mean_and_deviation_are_those_of_all_pixels(raw_folder: RawFolder, tmp_path: Path, dtype: str) -> None:
    out = pack(raw_folder.path, tmp_path / "out", "--labels", "index", "--image-dtype", dtype, *SMALL_SHARDS)
    for split in ("train", "val", "all"):
        dataset = open_dataset(out, split)
        images, labels = all_pixels(dataset)
        assert dataset.mean == pytest.approx(images.mean(1).tolist(), rel=1e-12)
        assert dataset.std == pytest.approx(images.std(1, correction=0).tolist(), rel=1e-9)
        counts = class_counts(dataset.statistics)
        assert counts.classes == tuple((labels == index).sum() for index in range(len(dataset.classes)))
        assert counts.count == len(labels)


@given(
    of_numpy.arrays(np.uint8, of_numpy.array_shapes(min_dims=2, max_dims=2), elements=st.sampled_from([0, 1, 5, 255]))
)
def test_runs_count_every_pixel_of_every_class(index: NDArray[np.uint8]) -> None:
    assert count_runs(index, 6) == [(index == number).sum() for number in range(6)]
    assert count_runs(index.astype("<u2"), 300)[255] == (index == 255).sum()


def test_rows_and_areas_are_of_the_rows_that_have_a_class(native: Path) -> None:
    dataset = open_dataset(native, "all", label="index")
    rows, areas = np.zeros((2, len(dataset.classes)), np.int64)
    for _, label in dataset:
        present = [index for index in range(len(dataset.classes)) if (label == index).any()]
        rows[present] += 1
        areas[present] += label.numel()
    counts = class_counts(dataset.statistics)
    assert counts.rows == tuple(rows.tolist())
    assert counts.areas == tuple(areas.tolist())


def test_statistics_do_not_depend_on_shards_and_formats(raw_folder: RawFolder, tmp_path: Path) -> None:
    packs = [
        pack(raw_folder.path, tmp_path / "one"),
        pack(raw_folder.path, tmp_path / "many", *SMALL_SHARDS),
        pack(raw_folder.path, tmp_path / "lmdb", "--format", "lmdb", "--labels", "index"),
    ]
    found = [[split.statistics for split in Manifest.load(out).splits] for out in packs]
    assert found[0] == found[1] == found[2]


@given(st.sampled_from(["|u1", "<u2", "<i2", "<f2", "<f4"]), st.data())
def test_sums_of_any_numbers_are_exact(dtype: str, data: st.DataObject) -> None:
    """From the smallest numbers of a type to the largest, in one picture."""
    finite = {"allow_nan": False, "allow_infinity": False} if dtype[1] == "f" else {}
    planes = data.draw(of_numpy.arrays(dtype, (2, 5, 7), elements=finite or None))
    found, unit = count(planes), 1 << UNIT_BITS.get(dtype, 0)
    wide = [[Fraction(float(number)) for number in plane.reshape(-1)] for plane in planes]
    assert found.numbers == 35
    assert found.sums == tuple(sum(plane) * unit for plane in wide)
    assert found.squares == tuple(sum(number**2 for number in plane) * unit**2 for plane in wide)


@given(st.lists(st.integers(-(2**505), 2**505), min_size=2, max_size=2), st.integers(1, 2**62))
def test_statistics_are_written_and_read_unchanged(sums: list[int], number: int) -> None:
    squares = [-(-total * total // number) for total in sums]  # the least that these numbers with this sum can have
    known = {
        "image": PictureStatistics(number, tuple(sums), tuple(squares)),
        "label": replace(SMALL, ignored=number),
        "cell": IdStatistics(number, number),
        "depth": ValueStatistics(number, 0, (sums[0],), (squares[0],)),
    }
    text, problems = json.dumps({"statistics": statistics_json(known)}), list[JsonProblem]()
    found = read_statistics(Entry(json.loads(text), "", problems), "statistics")
    fits = all(len(str(abs(total))) <= 300 for total in (*sums, *squares))
    assert (found == known) == (not problems) == fits
    assert {name: each + each for name, each in known.items()}["cell"] == IdStatistics(2 * number, 2 * number)


@given(of_numpy.arrays(np.uint8, (5, 7)), st.sampled_from(["<f2", "<f4"]))
def test_sums_by_a_table_are_those_of_its_numbers(plane: NDArray[np.uint8], dtype: str) -> None:
    table = (np.arange(256, dtype=np.float32) / np.float32(255)).astype(dtype)
    assert byte_sums(plane, table) == exact_sums(table[plane])


def test_sums_of_the_brightest_picture_do_not_run_over() -> None:
    pixels = count(np.full((3, 4096, 8192), 255, np.uint8))
    assert pixels.sums == (255 * 4096 * 8192,) * 3
    assert pixels.squares == (255**2 * 4096 * 8192,) * 3


def test_weights_are_as_in_the_papers() -> None:
    assert class_weights(SMALL, "inverse") == pytest.approx((8 / (2 * 6), 8 / (2 * 2), 0))
    assert class_weights(SMALL, "median") == pytest.approx((1, 1, 0))  # 6/12 and 2/4, whose median is 1/2
    assert class_weights(SMALL, "enet") == pytest.approx((1 / math.log(1.02 + 0.75), 1 / math.log(1.02 + 0.25), 0))
    with pytest.raises(RequestError, match="'median'"):
        class_weights(SMALL, "mean")  # type: ignore[arg-type]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6))
def test_no_class_that_occurs_counts_for_nothing(counts: list[tuple[int, int]]) -> None:
    classes = tuple(count for count, _ in counts)
    areas = tuple(count + more if count else 0 for count, more in counts)
    pixels = ClassStatistics(classes, tuple(map(bool, classes)), areas, 0)
    for weighting in WEIGHTINGS:
        weights = class_weights(pixels, weighting)
        assert [weight > 0 for weight in weights] == [count > 0 for count in classes]


def test_the_command_prints_each_split(raw_folder: RawFolder, tmp_path: Path) -> None:
    out = pack(raw_folder.path, tmp_path / "out")
    facts = json_of("stats", "--json", out)
    assert [(split["split"], split["rows"]) for split in facts] == [("train", 23), ("val", 9)]
    train = open_dataset(out, "train")
    assert facts[0]["mean"] == list(train.mean)
    assert facts[0]["std"] == list(train.std)
    assert facts[0]["sizes"] == {"24x36": 23}
    assert [row["weights"]["median"] for row in facts[0]["classes"]] == list(train.class_weights("median"))
    printed = run("stats", out).stdout
    assert printed.startswith("train: 23 rows (23 of 24x36)\nimage: picture\nmean  0.")
    assert "\nlabel: classes, 0.000 % ignored\n   class" in printed
    assert "\nval: 9 rows" in printed


def test_the_command_counts_native_sizes(native: Path) -> None:
    for facts in json_of("stats", "--json", native):
        dataset = open_dataset(native, facts["split"])
        sizes = Counter("{}x{}".format(*dataset.size(row)) for row in range(len(dataset)))
        assert facts["sizes"] == sizes


@pytest.mark.parametrize("split", ["train", "val", "all"])
def test_batches_of_every_split_are_normalised_by_the_training_split(
    split: str, raw_folder: RawFolder, tmp_path: Path
) -> None:
    out = pack(raw_folder.path, tmp_path / "out")
    train, dataset = open_dataset(out, "train"), open_dataset(out, split)
    (expected,) = dataset.loader(100).to("cpu", normalize=(train.mean, train.std))
    (found,) = dataset.loader(100).to("cpu", normalize=True)
    assert torch.equal(found[0], expected[0])
    assert open_dataset(out, "val").mean != train.mean
    (own,) = dataset.loader(100).to("cpu", normalize=(dataset.mean, dataset.std))
    assert torch.equal(own[0], expected[0]) == (split == "train")


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (("all",), 0),
        (("fold",), 0),
        (("val", "train"), 1),
        (("Train", "trainval", "val"), 0),
        (("val", "training"), 1),
        (("train2017", "val2017"), 0),
        (("a", "b"), None),
        (("train_1", "train_2"), None),
    ],
)
def test_the_training_split_is_found_by_its_name(names: tuple[str, ...], chosen: int | None) -> None:
    splits = tuple(Split(name, 1, 1, 0, (), {"label": replace(SMALL, ignored=n)}) for n, name in enumerate(names))
    found = training_statistics(Manifest(1, "", "npy", (), splits, 0, ""))
    assert found == (None if chosen is None else splits[chosen].statistics)


def test_without_a_training_split_normalize_must_be_given(raw_folder: RawFolder, tmp_path: Path) -> None:
    raw = Path(shutil.copytree(raw_folder.path, tmp_path / "raw"))
    (raw / "train").rename(raw / "test")
    dataset = open_dataset(pack(raw, tmp_path / "out"), "val")
    with pytest.raises(RequestError, match=r"no split \"train\".*normalize=\(train.mean, train.std\)"):
        dataset.loader(2).to("cpu", normalize=True)
    dataset.loader(2).to("cpu", normalize=(dataset.mean, dataset.std))
