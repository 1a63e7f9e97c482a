"""Batches of rows with and without labels: the stated number of each, every row once, resumed exactly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import SMALL_SHARDS, make_raw, pack
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_readers_order import chi_square
from test_readers_unlabelled import KEEP, unlabelled
from torch.utils.data import DataLoader

from readers import CenterCrop, MixedOrder, Order, RequestError, SegDataset, SlotDataLoader, Window, open_dataset
from readers.mix import SIDES, Side

LABELLED, UNLABELLED = 10, 13
ROWS = st.integers(1, 60)
NUMBER = st.integers(1, 9)
WORLD = st.integers(1, 8)
SHUFFLES = st.one_of(st.booleans(), st.builds(Window, st.integers(1, 9), st.integers(1, 4)))
ENDS: Any = st.sampled_from(SIDES)
ENDINGS: Any = st.sampled_from([{"pad": True}, {"pad": False}, {"drop_last": True}])
same_pack = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@dataclass(frozen=True)
class Sides:
    """So many rows with a label, and then so many without one."""

    labelled: int
    unlabelled: int

    @property
    def labelled_rows(self) -> range:
        return range(self.labelled)

    @property
    def unlabelled_rows(self) -> range:
        return range(self.labelled, self.labelled + self.unlabelled)

    def split(self, batch: list[int]) -> dict[Side, list[int]]:
        """Return the rows of each side in a batch, where those with a label come first."""
        labelled = [row for row in batch if row < self.labelled]
        assert batch[: len(labelled)] == labelled
        return {"labelled": labelled, "unlabelled": batch[len(labelled) :]}


SIDE = st.builds(Sides, ROWS, ROWS)
MIX: Any = st.fixed_dictionaries({"labelled": NUMBER, "unlabelled": NUMBER})


def other_than(side: Side) -> Side:
    return SIDES[1 - SIDES.index(side)]


def ranks(sides: Sides, mix: dict[str, int], world_size: int, **options: Any) -> list[MixedOrder]:
    return [MixedOrder(sides, mix, rank=rank, world_size=world_size, **options) for rank in range(world_size)]


def in_turns(passes: list[list[list[int]]], sides: Sides, side: Side) -> list[int]:
    """Return the rows of a side in the order in which all ranks together get them."""
    rows = []
    for number in range(max(map(len, passes))):
        batch = [sides.split(batches[number])[side] for batches in passes if number < len(batches)]
        rows += [part[step] for step in range(max(map(len, batch))) for part in batch if step < len(part)]
    return rows


def endless(order: MixedOrder, sides: Sides, side: Side) -> Iterator[int]:
    """Yield the rows of a side, epoch after epoch."""
    rows = getattr(sides, f"{side}_rows")
    alone = Order(rows, shuffle=order.shuffle, seed=order.state_dict()[side]["seed"])
    while True:
        yield from (rows[row] for row in alone)


@given(SIDE, MIX, WORLD, ENDS, ENDINGS, SHUFFLES, st.integers(-9, 2**70))
def test_each_batch_has_the_stated_numbers_and_an_epoch_has_each_row_once(
    sides: Sides, mix: dict[str, int], world_size: int, end: Side, ending: Any, shuffle: Any, seed: int
) -> None:
    orders = ranks(sides, mix, world_size, mix_end=end, shuffle=shuffle, seed=seed, **ending)
    stream = endless(orders[0], sides, other_than(end))
    wanted = getattr(sides, f"{end}_rows")
    for epoch in range(3):
        passes = [list(order) for order in orders]
        assert [len(batches) for batches in passes] == [len(order) for order in orders]
        for batches in passes:
            sizes = [{side: len(rows) for side, rows in sides.split(batch).items()} for batch in batches]
            assert all(size == mix for size in sizes[:-1])
            assert all(size[other_than(end)] == mix[other_than(end)] for size in sizes)
            assert all(1 <= size[end] <= mix[end] for size in sizes)
            if "drop_last" in ending:
                assert all(size == mix for size in sizes)
        rows = in_turns(passes, sides, end) if any(passes) else []
        if ending == {"pad": False}:
            assert sorted(rows) == list(wanted)
        elif ending == {"pad": True}:
            assert set(rows) == set(wanted)
            assert len(rows) == len(wanted) + orders[0].padding == len(wanted) + -len(wanted) % world_size
            assert len({len(batches) for batches in passes}) == 1
        else:
            assert len(set(rows)) == len(rows) == len(wanted) // world_size // mix[end] * mix[end] * world_size
        others = in_turns(passes, sides, other_than(end)) if any(passes) else []
        assert others == list(islice(stream, len(others))), "all rows of an epoch, then those of the next"
        states = [order.state_dict() for order in orders]
        assert all(state == states[0] for state in states)
        assert {order.epoch for order in orders} == {epoch}


@given(SIDE, MIX, ENDS, SHUFFLES, st.lists(st.tuples(WORLD, MIX, st.integers(0, 5)), min_size=2, max_size=4))
def test_resuming_is_the_rest_also_twice_and_with_other_ranks_and_mixes(
    sides: Sides, mix: dict[str, int], end: Side, shuffle: Any, stops: list[tuple[int, dict[str, int], int]]
) -> None:
    """Each stop is a run with a number of ranks, a mix, and a number of steps."""
    options: Any = {"mix_end": end, "shuffle": shuffle, "seed": 5, "pad": False}
    first = MixedOrder(sides, mix, **options)
    streams = {side: endless(first, sides, side) for side in SIDES}
    for batch in first:
        for side, rows in sides.split(batch).items():
            assert rows == list(islice(streams[side], len(rows)))
    state = first.state_dict()
    whole = list(islice(streams[end], len(getattr(sides, f"{end}_rows"))))
    got: dict[Side, list[int]] = {"labelled": [], "unlabelled": []}
    for world_size, other_mix, steps in [*stops, (1, mix, 10**6)]:
        orders = ranks(sides, other_mix, world_size, **options)
        for order in orders:
            order.load_state_dict(json.loads(json.dumps(state)))
            order.set_epoch(1)
        full = (len(whole) - len(got[end])) // (world_size * other_mix[end])
        count = steps if steps > 100 else min(steps, full)
        passes = [list(islice(order, count)) for order in orders]
        if any(passes):
            for side in SIDES:
                got[side] += in_turns(passes, sides, side)
        states = [order.state_dict() for order in orders]
        assert all(each == states[0] for each in states)
        assert [order.state_dict(batches=count) for order in orders if count <= full] in ([], states)
        state = states[0]
    assert got[end] == whole
    assert got[other_than(end)] == list(islice(streams[other_than(end)], len(got[other_than(end)])))


def test_an_epoch_can_be_chosen_repeated_and_left_early() -> None:
    """The other side follows from seed and epoch, also if a run begins in the middle."""
    sides, mix = Sides(30, 50), {"labelled": 4, "unlabelled": 7}
    order = MixedOrder(sides, mix, seed=1)
    passes = [list(order) for _ in range(3)]
    assert all(len(batches) == 8 for batches in passes)
    for epoch in (2, 0, 1):
        fresh = MixedOrder(sides, mix, seed=1)
        fresh.set_epoch(epoch)
        assert list(fresh) == passes[epoch]
        fresh.set_epoch(epoch)
        assert list(islice(fresh, 3)) == passes[epoch][:3]
        assert list(fresh) == passes[epoch], "a pass that was left early starts again"
        fresh.set_epoch(epoch + 1)
        assert epoch == 2 or list(fresh) == passes[epoch + 1]
    resumed = MixedOrder(sides, mix, seed=9)
    assert list(islice(order, 3)) != passes[0][:3]
    resumed.load_state_dict(order.state_dict())
    resumed.set_epoch(3)
    rest = list(resumed)
    assert list(order)[3:] == rest
    assert (len(resumed), resumed.seed, resumed.epoch, resumed.consumed) == (8, 1, 3, 30)
    resumed.set_epoch(3)
    assert next(iter(resumed)) != rest[0]


def test_each_row_meets_each_row_of_the_other_side_equally_often() -> None:
    """Also if both sides have equally many rows; chance exceeds 4 deviations in 1 of 30,000 tries."""
    rows, epochs = 8, 4000
    order = MixedOrder(Sides(rows, rows), {"labelled": 1, "unlabelled": 1}, seed=2)
    met, at = np.zeros((rows, rows)), np.zeros((rows, rows))
    for _ in range(epochs):
        for place, (labelled, other) in enumerate(order):
            met[labelled, other - rows] += 1
            at[place, other - rows] += 1
    assert chi_square(met, epochs / rows) < 4
    assert chi_square(at, epochs / rows) < 4


def test_a_large_side_takes_no_memory_and_passes_differ_by_seed() -> None:
    sides = Sides(10**12, 10**15)
    batches = [list(islice(MixedOrder(sides, {"labelled": 3, "unlabelled": 5}, seed=seed), 4)) for seed in (0, 0, 1)]
    assert batches[0] == batches[1]
    assert not {row for batch in batches[0] for row in batch} & {row for batch in batches[2] for row in batch}
    order = MixedOrder(sides, {"labelled": 3, "unlabelled": 5})
    order.set_epoch(10**9)
    assert sides.split(next(iter(order)))["unlabelled"]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows with and without a label, in several shards."""
    folder = make_raw(tmp_path_factory.mktemp("mix") / "raw", {"train": LABELLED + UNLABELLED, "val": 2, "test": 2})
    unlabelled(folder, "train", range(1, 2 * UNLABELLED, 2)[:10])
    unlabelled(folder, "train", [0, 2, 4])
    unlabelled(folder, "test", [0, 1])
    return pack(folder.path, folder.path.parent / "out", *KEEP, "--labels", "index", *SMALL_SHARDS)


def read(dataset: SegDataset, rows: list[int]) -> list[torch.Tensor]:
    return [torch.stack(part) for part in zip(*(dataset[row] for row in rows), strict=True)]


@pytest.mark.parametrize("end", SIDES)
@pytest.mark.parametrize("shuffle", [True, False, "window"])
def test_loaders_deliver_the_rows_of_the_order(mixed: Path, end: Side, shuffle: Any) -> None:
    dataset = open_dataset(mixed, "train", fields=("image", "label", "labelled"))
    assert (dataset.labelled_rows, dataset.unlabelled_rows) == (range(10), range(10, 23))
    mix: dict[str, int] = {"labelled": 3, "unlabelled": 4}
    options: Any = {"mix": mix, "mix_end": end, "shuffle": shuffle, "seed": 3}
    loader = dataset.loader(7, **options)
    shuffle = loader.order.shuffle
    order = MixedOrder(dataset, mix, mix_end=end, shuffle=shuffle, seed=3)
    for _ in range(3):
        rows = list(order)
        batches = list(loader)
        assert len(rows) == len(batches) == len(loader) == 4
        for batch, wanted in zip(batches, rows, strict=True):
            assert all(torch.equal(part, other) for part, other in zip(batch, read(dataset, wanted), strict=True))
            assert batch[2].tolist() == [row < 10 for row in wanted]
            if len(batch[2]) == 7:
                assert batch[2].tolist() == [True] * 3 + [False] * 4
    assert loader.state_dict() == order.state_dict()
    assert "{'labelled': 3, 'unlabelled': 4}" in repr(loader)


def test_samplers_of_pytorchs_loaders_give_the_same_batches(mixed: Path) -> None:
    dataset = open_dataset(mixed, "train", fields=("image", "label", "labelled"))
    mix: dict[str, int] = {"labelled": 2, "unlabelled": 5}
    wanted = list(dataset.loader(7, mix=mix, shuffle=True, seed=4))
    order = MixedOrder(dataset, mix, seed=4)
    for loader in (DataLoader(dataset, batch_sampler=order), SlotDataLoader(dataset, batch_sampler=order)):
        order.set_epoch(0)
        assert len(loader) == len(wanted)
        for batch, other in zip(loader, wanted, strict=True):
            assert all(torch.equal(part, same) for part, same in zip(batch, other, strict=True))
    order.set_epoch(0)
    resumed = MixedOrder(dataset, mix)
    state = order.state_dict()
    resumed.load_state_dict(order.state_dict(batches=3))
    assert order.state_dict() == state
    list(islice(order, 3))
    assert resumed.state_dict() == order.state_dict()


@same_pack
@given(st.lists(st.tuples(WORLD, st.integers(0, 2)), min_size=2, max_size=3), ENDS, st.booleans())
def test_loaders_resume_twice_with_other_ranks(
    mixed: Path, stops: list[tuple[int, int]], end: Side, cropped: bool
) -> None:
    """The state counts received batches, and crops and flips are the same."""
    dataset = open_dataset(mixed, "train", fields=("image", "labelled"))
    options: Any = {"mix": {"labelled": 1, "unlabelled": 2}, "mix_end": end, "shuffle": True, "pad": False}
    options |= {"crop": (9, 11), "flip": True} if cropped else {}
    whole = list(dataset.loader(3, **options))
    sides = [torch.cat([image[labelled == side] for image, labelled in whole]) for side in (True, False)]
    state = dataset.loader(3, **options).state_dict()
    received = 0
    for world_size, steps in stops:
        loaders = [dataset.loader(3, rank=rank, world_size=world_size, **options) for rank in range(world_size)]
        for loader in loaders:
            loader.load_state_dict(state)
        passes = [iter(loader) for loader in loaders]
        for _ in range(min(steps, ((10 if end == "labelled" else 6) - received) // world_size)):
            batches = [next(batches) for batches in passes]
            for many, side, images in zip((1, 2), (True, False), sides, strict=True):
                parts = [image[labelled == side] for image, labelled in batches]
                got = torch.stack(parts, 1).flatten(0, 1)
                first = many * received
                assert torch.equal(got, images[first : first + many * world_size])
            received += world_size
        (state,) = [json.loads(text) for text in {json.dumps(loader.state_dict()) for loader in loaders}]
    last = dataset.loader(3, **options)
    last.load_state_dict(state)
    if received < len(whole):
        rest = list(last)
        for batch, wanted in zip(rest, whole[received:], strict=True):
            assert all(torch.equal(part, other) for part, other in zip(batch, wanted, strict=True))


def test_crops_are_those_of_the_epoch_of_each_side(mixed: Path) -> None:
    """Rows with a label are cropped as by a loader of them alone; a row that comes twice in a batch, in two ways."""
    dataset = open_dataset(mixed, "train")
    options: Any = {"shuffle": True, "seed": 8, "crop": (7, 8), "flip": True}
    alone = open_dataset(mixed, "train", labelled=True).loader(4, **options)
    loader = dataset.loader(44, mix={"labelled": 4, "unlabelled": 40}, **options)
    for batch, other in zip(loader, alone, strict=True):
        labelled = len(batch[0]) - 40
        assert all(torch.equal(part[:labelled], same) for part, same in zip(batch, other, strict=True))
        assert len({image.numpy().tobytes() for image in batch[0][labelled:]}) > 30
    centered = dataset.loader(44, mix={"labelled": 4, "unlabelled": 40}, crop=CenterCrop((7, 8)), flip=False)
    assert len({image.numpy().tobytes() for image in next(iter(centered))[0][4:]}) == 13


def test_batches_on_the_device_and_one_hot_labels(mixed: Path) -> None:
    dataset = open_dataset(mixed, "train", fields=("image", "label", "labelled"))
    mix: dict[str, int] = {"labelled": 3, "unlabelled": 4}
    wanted = list(dataset.loader(7, mix=mix, labels="onehot", shuffle=True))
    seen = []

    def augment(images: torch.Tensor, labels: torch.Tensor, labelled: torch.Tensor) -> Any:
        seen.append(labelled)
        return images, labels, labelled

    loader = dataset.loader(7, mix=mix, labels="onehot", shuffle=True)
    device = loader.to("cpu", dtype=torch.float32, augment=augment)
    for number, (batch, other) in enumerate(zip(device, wanted, strict=True)):
        assert torch.equal(batch[0], other[0].float() / 255)
        assert torch.equal(batch[1], other[1])
        assert not batch[1][~batch[2]].any()
        assert batch[1][batch[2]].sum(1).eq(1).all()
        assert torch.equal(seen[number], batch[2])
    state = device.state_dict()
    device.load_state_dict(state)
    assert state == loader.state_dict()


def test_impossible_mixes_are_refused(mixed: Path, tmp_path: Path) -> None:
    dataset = open_dataset(mixed, "train")
    good: Any = {"labelled": 3, "unlabelled": 4}
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (good, {"batch_size": 8}, "makes batches of 7 rows, but batch_size=8"),
        ({"labelled": 7}, {}, "expected the rows of each side"),
        ({"labelled": 7, "others": 3}, {}, "expected the rows of each side"),
        ([3, 4], {}, "expected the rows of each side"),
        ({"labelled": 3.5, "unlabelled": 3.5}, {}, "as whole numbers"),
        ({"labelled": 7, "unlabelled": 0}, {}, "to read one side alone, open the data set with labelled="),
        (good, {"mix_end": "both"}, 'neither "labelled" nor "unlabelled"'),
        (None, {"mix_end": "unlabelled"}, "needs mix="),
        (good, {"shuffle": "windows"}, "expected True, False"),
        (good, {"rank": 2, "world_size": 2}, "expected 0 to 1"),
    ]
    for mix, options, words in refused:
        with pytest.raises(RequestError, match=words):
            dataset.loader(**{"batch_size": 7, "mix": mix, **options})
    for split, labelled, words in (
        ("train", True, "no row here lacks a label: open the data set without labelled="),
        ("train", False, "no row here has a label"),
        ("val", None, "lacks a label.*--missing keep"),
        ("test", None, "has a label"),
        ("all", None, "name one split"),
    ):
        with pytest.raises(RequestError, match=words):
            open_dataset(mixed, split, labelled=labelled).loader(7, mix=good)
    order = MixedOrder(dataset, good)
    state = order.state_dict()
    for wrong, words in (
        (Order(10).state_dict(), "not the state of a mixed order"),
        ({**state, "unlabelled": 3}, "not the state of a mixed order"),
        (
            {"labelled": {**state["labelled"], "epoch": 8}, "unlabelled": Order(9).state_dict()},
            "unlabelled rows: .* rows is 13 here",
        ),
        ({**state, "labelled": {}}, "labelled rows: this is not the state"),
    ):
        with pytest.raises(RequestError, match=words):
            order.load_state_dict(wrong)
    assert order.state_dict() == state
    with pytest.raises(RequestError, match="not the state of an order"):
        dataset.loader(7).load_state_dict(state)
