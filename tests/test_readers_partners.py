"""Partners of rows: each row once per epoch, never of itself, the same on any number of ranks and resumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import SMALL_SHARDS, make_raw, pack
from hypothesis import given
from hypothesis import strategies as st
from test_readers_order import chi_square
from test_readers_unlabelled import KEEP, unlabelled

from readers import RequestError, SegDataset, Window, mix_packs, open_dataset
from readers.epoch import BatchRows, Run
from readers.partner_batches import PartnerBatches
from readers.permutation import Permutation, keys_of

ROWS = 23


@given(st.integers(1, 5000), st.integers(0, 9), st.data())
def test_positions_are_where_a_permutation_has_its_indices(n: int, seed: int, data: st.DataObject) -> None:
    permutation = Permutation(n, keys_of(seed))
    places = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=50)), np.int64)
    assert (permutation.positions(permutation(places)) == places).all()
    assert (permutation(permutation.positions(places)) == places).all()


def partners(sides: list[int], rows: list[int], runs: list[Run]) -> list[int]:
    """Return the partners of rows of sides of these lengths."""
    ends = np.cumsum(sides).tolist()
    batches = PartnerBatches(None, tuple(range(end - side, end) for side, end in zip(sides, ends, strict=True)))  # type: ignore[arg-type]
    found: list[int] = batches.partners(BatchRows(np.array(rows, np.int64), runs, ())).rows.tolist()
    return found


@given(st.lists(st.integers(1, 400), min_size=1, max_size=3), st.integers(-5, 2**70), st.integers(0, 5))
def test_each_row_is_a_partner_once_and_never_of_itself(sides: list[int], seed: int, epoch: int) -> None:
    rows = list(range(sum(sides)))
    found = partners(sides, rows, [Run(seed, epoch, side) for side in sides])
    first = 0
    for side in sides:
        mine = found[first : first + side]
        assert sorted(mine) == rows[first : first + side]
        assert side == 1 or not any(row == other for row, other in zip(rows[first : first + side], mine, strict=True))
        first += side
    assert partners(sides, rows[:1], [Run(seed, epoch, 1)]) == found[:1], "a partner does not depend on the batch"


def test_each_row_gets_each_other_row_equally_often() -> None:
    """Chance exceeds 4 deviations in 1 of 30,000 tries."""
    rows, epochs = 8, 4000
    met = np.zeros((rows, rows))
    for epoch in range(epochs):
        met[np.arange(rows), partners([rows], list(range(rows)), [Run(3, epoch, rows)])] += 1
    assert not np.diag(met).any()
    apart = met[~np.eye(rows, dtype=bool)].reshape(rows, rows - 1)
    assert chi_square(apart, epochs / (rows - 1)) < 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("partners")
    raw = make_raw(path / "raw" / "city", {"train": ROWS})
    pack(raw.path, path / "city", "--labels", "index", *SMALL_SHARDS)
    unlabelled(raw, "train", range(0, ROWS, 2))
    pack(raw.path, path / "mixed", "--labels", "index", *KEEP, *SMALL_SHARDS)
    return path


def rows_of(batches: Any, dataset: SegDataset, size: int) -> list[int]:
    """Return the row of each picture of batches (N, 3, H, W)."""
    known = {dataset[row][0].numpy().tobytes(): row for row in range(size)}
    return [known[image.numpy().tobytes()] for images in batches for image in images]


@pytest.mark.parametrize("shuffle", [True, False, "window", Window(3, 2)])
@pytest.mark.parametrize("threads", [1, 4])
def test_a_batch_has_its_fields_twice(folder: Path, shuffle: Any, threads: int) -> None:
    train = open_dataset(folder / "city", "train")
    plain = list(train.loader(5, shuffle=shuffle, seed=1))
    loader = train.loader(5, shuffle=shuffle, seed=1, partners=1, threads=threads)
    batches = list(loader)
    for batch, wanted in zip(batches, plain, strict=True):
        assert len(batch) == 4
        assert all(torch.equal(part, other) for part, other in zip(batch[:2], wanted, strict=True))
    rows, others = (rows_of([batch[part] for batch in batches], train, ROWS) for part in (0, 2))
    assert sorted(rows) == sorted(others) == list(range(ROWS))
    assert not any(row == other for row, other in zip(rows, others, strict=True))
    labels = torch.cat([batch[3] for batch in batches])
    assert all(torch.equal(label, train[row][1]) for label, row in zip(labels, others, strict=True))
    again = rows_of([batch[2] for batch in loader], train, ROWS)
    assert again != others, "another epoch has other partners"


def test_partners_are_cropped_and_flipped_by_dice_of_their_own(folder: Path) -> None:
    train = open_dataset(folder / "city", "train")
    options: Any = {"shuffle": True, "seed": 1, "crop": (7, 8), "flip": True}
    batches = list(train.loader(ROWS, partners=1, **options))
    (plain,) = train.loader(ROWS, **options)
    (batch,) = train.loader(ROWS, shuffle=True, seed=1).order.whole().batches(ROWS)
    assert torch.equal(batches[0][0], plain[0])
    others = rows_of([next(iter(train.loader(ROWS, shuffle=True, seed=1, partners=1)))[2]], train, ROWS)
    cut = {int(row): image for row, image in zip(batch.rows, plain[0], strict=True)}
    assert sum(torch.equal(image, cut[row]) for row, image in zip(others, batches[0][2], strict=True)) < ROWS // 4


@pytest.mark.parametrize("kind", ["plain", "mix", "packs"])
def test_ranks_and_resumed_loaders_have_the_same_partners(folder: Path, kind: str) -> None:
    city, mixed = open_dataset(folder / "city", "train"), open_dataset(folder / "mixed", "train")
    options: Any = {"shuffle": True, "seed": 5, "pad": False, "crop": (9, 9), "flip": True, "partners": 1}

    def loader(size: int, **more: Any) -> Any:
        if kind == "packs":
            return mix_packs([(city, 0.5), (mixed, 0.5)]).loader(size, **options, **more)
        if kind == "mix":
            return mixed.loader(size, mix={"labelled": size // 2, "unlabelled": size // 2}, **options, **more)
        return city.loader(size, **options, **more)

    whole = list(loader(4))
    ranks = [list(loader(2, rank=rank, world_size=2)) for rank in range(2)]
    for number, batch in enumerate(whole if kind == "plain" else whole[:-1]):  # a rank may have no last batch
        for part in range(4):
            joined = [row.numpy().tobytes() for rank in ranks if number < len(rank) for row in rank[number][part]]
            assert sorted(joined) == sorted(row.numpy().tobytes() for row in batch[part])
    running = loader(4, threads=2)
    states = [running.state_dict()]
    for _ in running:
        states.append(running.state_dict())
    for step, state in enumerate(states[: len(whole)]):
        resumed = loader(4)
        resumed.load_state_dict(json.loads(json.dumps(state)))
        for batch, wanted in zip(resumed, whole[step:], strict=True):
            assert all(torch.equal(part, other) for part, other in zip(batch, wanted, strict=True))


def test_partners_of_mixed_rows_are_rows_of_their_side(folder: Path) -> None:
    mixed = open_dataset(folder / "mixed", "train", fields=("image", "label", "labelled"))
    for batch in mixed.loader(4, mix={"labelled": 1, "unlabelled": 3}, shuffle=True, partners=1):
        assert torch.equal(batch[2], batch[5])


def test_partners_travel_to_the_device(folder: Path) -> None:
    train = open_dataset(folder / "city", "train")
    seen = []

    def mixup(images: Any, labels: Any, others: Any, other_labels: Any) -> Any:
        seen.append(len(images))
        return (images + others) / 2, labels, others, other_labels

    loader = train.loader(6, partners=1, labels="onehot")
    sent = train.loader(6, partners=1, labels="onehot").to("cpu", normalize=True, augment=mixup)
    mean, std = (torch.tensor(numbers)[:, None, None] for numbers in (train.mean, train.std))
    for batch, stored in zip(sent, loader, strict=True):
        wanted = ((stored[0].float() + stored[2].float()) / 510 - mean) / std
        assert torch.allclose(batch[0], wanted, atol=1e-5)
        assert torch.allclose(batch[2], (stored[2].float() / 255 - mean) / std, atol=1e-5)
        assert torch.equal(batch[1], stored[1])
        assert torch.equal(batch[3], stored[3])
    assert sum(seen) == ROWS


@pytest.mark.parametrize("many", [2, -1, None, "one"])
def test_other_numbers_of_partners_are_refused(folder: Path, many: Any) -> None:
    train = open_dataset(folder / "city", "train")
    with pytest.raises(RequestError, match="expected 0, or 1"):
        train.loader(2, partners=many)
    with pytest.raises(RequestError, match="expected 0, or 1"):
        mix_packs([(train, 1)]).loader(2, partners=many)
    with pytest.raises(RequestError, match="and not with partners="):
        mix_packs([(train, 1)]).loader(2, partners=1).to("cpu", normalize="each")
