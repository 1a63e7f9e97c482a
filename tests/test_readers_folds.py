"""Folds: every row is validated on once, and a fold's training part is the rest, with the statistics of just these
rows."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import SMALL_SHARDS, RawFolder, make_raw, pack, pack_from
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from readers import MixedOrder, Order, RequestError, SegDataset, open_dataset
from readers.contract.folds import fold_numbers, splits_of_fold
from readers.contract.manifest import Manifest
from readers.row_ranges import RowRanges, joined

pytestmark = pytest.mark.usefixtures("in_process")

FOLDS = 12
"""Texts sort fold10 before fold2, so training parts are of several ranges."""
INDEX = ("--labels", "index")
OWN = ("--image", "train/images/{key}.png", "--label", "train/masks/{key}.png")


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> RawFolder:
    """Rows to fold and to test on, some without a label."""
    folder = make_raw(tmp_path_factory.mktemp("folds") / "raw", {"train": 40, "test": 3})
    for number in (1, 4, 9, 10, 22, 31):
        (folder.path / f"train/masks/street_{number:03}.png").unlink()
    return folder


@pytest.fixture(scope="module")
def folded(raw: RawFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out, listed = tmp_path_factory.mktemp("folded") / "out", raw.path.with_name("splits_final.json")
    keys = [f"street_{number:03}" for number in range(40)]
    vals = [keys[number:36:FOLDS] for number in range(FOLDS)]
    listed.write_text(json.dumps([{"train": [key for key in keys if key not in val], "val": val} for val in vals]))
    return pack(raw.path, out, "--folds", listed, "--missing", "keep", *INDEX, *SMALL_SHARDS)


def keys(dataset: SegDataset) -> list[str]:
    return [dataset.key(index) for index in range(len(dataset))]


def parts(out: Path, fold: int, **options: Any) -> tuple[SegDataset, SegDataset]:
    train, val = (open_dataset(out, split, fold=fold, **options) for split in ("train", "val"))
    return train, val


def test_every_row_is_in_one_val_and_train_is_the_rest(folded: Path) -> None:
    every = {f"street_{number:03}" for number in range(40)}
    vals: list[str] = []
    folds = open_dataset(folded, "fold0").folds
    assert folds == tuple(range(FOLDS))
    for fold in folds:
        train, val = parts(folded, fold)
        assert sorted(keys(train) + keys(val)) == sorted(every)
        assert keys(val) == keys(open_dataset(folded, f"fold{fold}"))
        assert (train.fold, train.split, val.splits) == (fold, "train", (f"fold{fold}",))
        vals += keys(val)
    assert sorted(vals) == sorted(every - set(keys(open_dataset(folded, "always"))))
    assert keys(open_dataset(folded, "test", fold=3)) == keys(open_dataset(folded, "test"))
    assert len(open_dataset(folded, "all", fold=3)) == 43


def test_the_statistics_are_of_a_pack_of_just_these_rows(folded: Path, raw: RawFolder, tmp_path: Path) -> None:
    train, _ = parts(folded, 1)
    names = keys(train)
    table = tmp_path / "pairs.csv"
    masks = {name: f"train/masks/{name}.png" for name in names if (raw.path / f"train/masks/{name}.png").exists()}
    lines = [f"train/images/{name}.png,{masks.get(name, '')},{name}" for name in names]
    table.write_text("\n".join(["image,label,key", *lines]))
    alone = open_dataset(pack(raw.path, tmp_path / "out", "--pairs", table, "--missing", "keep", *INDEX))
    assert train.statistics == alone.statistics
    assert (train.mean, train.std, train.class_weights()) == (alone.mean, alone.std, alone.class_weights())
    assert train.statistics != open_dataset(folded, "all").statistics
    assert open_dataset(folded, "all").statistics == Manifest.load(folded).statistics
    assert len(train.labelled_rows) == len(masks)


@pytest.mark.parametrize("split", ["val", "test", "train"])
def test_every_part_of_a_fold_is_normalised_by_its_training_part(folded: Path, split: str) -> None:
    train, _ = parts(folded, 4)
    dataset = open_dataset(folded, split, fold=4)
    ((images, _), *_) = dataset.loader(2).to("cpu", normalize=True)
    plain = torch.stack([dataset[row].image for row in range(2)]) / 255
    mean, std = (torch.tensor(numbers).reshape(3, 1, 1) for numbers in (train.mean, train.std))
    assert torch.allclose(images, (plain - mean) / std, atol=1e-5)
    with pytest.raises(RequestError, match="normalize=True: "):
        open_dataset(folded, "fold4").loader(2).to("cpu", normalize=True)


@pytest.mark.parametrize("shuffle", [False, True, "window"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_loaders_orders_and_ranks_read_every_row_of_a_part(folded: Path, shuffle: Any, ranks: int) -> None:
    train, _ = parts(folded, 2, fields=("image", "label"))
    images = {train[row].image.numpy().tobytes(): row for row in range(len(train))}
    assert len(images) == len(train)
    read: list[int] = []
    for rank in range(ranks):
        loader = train.loader(5, shuffle=shuffle, seed=3, rank=rank, world_size=ranks, pad=False, output="numpy")
        rows = [images[image.tobytes()] for batch, _ in loader for image in batch]
        order = Order(train, shuffle=loader.order.shuffle, seed=3, rank=rank, world_size=ranks, pad=False)
        assert rows == list(order)
        read += rows
    assert sorted(read) == list(range(len(train)))


def test_a_pass_goes_on_where_it_was(folded: Path) -> None:
    train, _ = parts(folded, 5)
    loader = train.loader(4, shuffle=True, seed=1, output="numpy")
    batches = iter(loader)
    next(batches)
    state, rest = loader.state_dict(), [images.tobytes() for images, _ in batches]
    again = copy.copy(train).loader(4, shuffle=True, output="numpy")
    again.load_state_dict(state)
    assert [images.tobytes() for images, _ in again] == rest
    with pytest.raises(RequestError, match="the state is of another order: rows is"):
        open_dataset(folded, "val", fold=5).loader(4, shuffle=True).load_state_dict(state)


def test_samples_windows_keys_and_copies_of_a_part(folded: Path, raw: RawFolder) -> None:
    train, val = parts(folded, 7, label="index")
    for index, key in enumerate(keys(train)):
        assert train.index(key) == index
        assert np.array_equal(train[index].image.numpy().transpose(1, 2, 0), raw.images["train", key])
        assert train.place(index) is None
    with pytest.raises(KeyError, match="there is no row with the key 'street_007'"):
        train.index("street_007")
    assert torch.equal(train[-1].image, train[len(train) - 1].image)
    assert torch.equal(train.window(20, (3, 5), (8, 8)).image, train[20].image[:, 3:11, 5:13])
    with pytest.raises(IndexError):
        train[len(train)]
    copied = copy.copy(train)
    assert keys(copied) == keys(train)
    assert keys(copy.copy(val)) == keys(val)
    loaded = torch.cat([batch.image for batch in DataLoader(train, 7, num_workers=1)])
    assert torch.equal(loaded, torch.stack([sample.image for sample in train]))
    swapped = open_dataset(folded, "train", fold=7, fields=("label", "image"), label="index")[20]
    assert torch.equal(swapped[1], train[20].image)
    assert "train of fold 7, 37 rows, 5 of them without a label" in repr(train)
    assert train.sheet(4).size > (0, 0)


def test_a_part_mixes_rows_with_and_without_a_label(folded: Path, raw: RawFolder) -> None:
    train, _ = parts(folded, 3)
    lacking = {f"street_{number:03}" for number in (1, 4, 9, 10, 22, 31)}
    assert {train.key(row) for row in train.unlabelled_rows} == lacking - {"street_003"}
    assert len(train.labelled_rows) + len(train.unlabelled_rows) == len(train)
    for has_label, rows in ((True, train.labelled_rows), (False, train.unlabelled_rows)):
        alone = open_dataset(folded, "train", fold=3, labelled=has_label)
        assert keys(alone) == [train.key(row) for row in rows]
    for batch in MixedOrder(train, {"labelled": 3, "unlabelled": 2}, seed=5):
        assert [train.key(row) in lacking for row in batch[-2:]] == [True, True]
        assert not any(train.key(row) in lacking for row in batch[:-2])


def test_parts_come_through_a_cache(folded: Path, tmp_path: Path) -> None:
    train, _ = parts(folded, 6)
    cached = open_dataset(folded, "train", fold=6, cache=tmp_path / "cache", cache_bytes="1GB")
    read = [images.tobytes() for images, _ in cached.loader(4, shuffle="window", output="numpy")]
    order = cached.loader(4, shuffle="window").order
    assert read == [images.tobytes() for images, _ in train.loader(4, shuffle=order.shuffle, output="numpy")]


def test_all_formats_read_a_part(storage: str, folded: Path, raw: RawFolder, tmp_path: Path) -> None:
    out = pack_from(folded, tmp_path / "out", "--format", storage)
    train, _ = parts(out, 10, label="index")
    assert train.folds == tuple(range(FOLDS)), "a pack of a pack keeps its folds"
    assert keys(train) == keys(parts(folded, 10)[0])
    rows = {images.tobytes() for images, _ in train.loader(8, shuffle=True, output="numpy", pad=False)}
    assert len(rows) == -(-len(train) // 8)
    for index in (0, len(train) // 2, len(train) - 1):
        assert np.array_equal(train[index].image.numpy().transpose(1, 2, 0), raw.images["train", train.key(index)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "train"}, 'there is no split \'train\': .*; or split= "train" or "val" with fold= one of 0, 1, 2'),
        ({}, "has several splits, so name one: .* with fold= one of 0, 1"),
        ({"fold": 0}, 'fold=0: which part of it\\? split="train" or split="val"'),
        ({"fold": 12, "split": "val"}, "fold=12: expected one of 0, 1, 2"),
        ({"fold": -1, "split": "val"}, "fold=-1: expected one of 0, 1, 2"),
        ({"fold": "0", "split": "val"}, "fold='0': expected one of 0, 1, 2"),
        ({"fold": 1.0, "split": "val"}, "fold=1.0: expected one of 0, 1, 2"),
        ({"fold": 1, "split": "valid"}, "there is no split 'valid'"),
    ],
)
def test_what_is_not_there_is_refused(folded: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        open_dataset(folded, **options)


def test_a_pack_without_folds_says_so(raw: RawFolder, tmp_path: Path) -> None:
    out = pack(raw.path, tmp_path / "out", *OWN, "--missing", "skip")
    assert open_dataset(out).folds == ()
    assert open_dataset(out).fold is None
    with pytest.raises(RequestError, match="fold=0: expected a pack with folds, as packer build --folds makes"):
        open_dataset(out, "train", fold=0)


def test_numbers_of_folds_are_exact_texts() -> None:
    assert fold_numbers(["fold10", "fold2", "fold02", "Fold1", "fold", "fold-1", "fold٣", "val", "fold0"]) == (0, 2, 10)
    names = ["always", "fold0", "fold10", "fold2", "test"]
    assert splits_of_fold(names, 10, "train") == ("always", "fold0", "fold2")
    assert splits_of_fold(names, 10, "val") == ("fold10",)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 6)), max_size=8))
def test_ranges_are_a_sequence_of_their_rows(pairs: list[tuple[int, int]]) -> None:
    ranges, start = [], 0
    for gap, size in pairs:
        ranges.append(range(start + gap, start + gap + size))
        start += gap + size
    rows, plain = RowRanges(ranges), [row for each in ranges for row in each]
    assert (list(rows), len(rows), rows[1:7:2]) == (plain, len(plain), plain[1:7:2])
    assert rows.at(np.arange(len(plain))).tolist() == plain
    assert [rows.indices(range(row, row + 1)).start for row in plain] == list(range(len(plain)))
    assert all(before.stop < after.start for before, after in zip(rows.ranges, rows.ranges[1:], strict=False))
    assert joined(rows.ranges) == rows.ranges
    for outside in (len(plain), -len(plain) - 1):
        with pytest.raises(IndexError):
            rows[outside]
    with pytest.raises(ValueError, match="is not within"):
        rows.indices(range(start, start + 2))
