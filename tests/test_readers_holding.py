"""Windows drawn by the classes in them: their shares, what they hold, and the same for any threads and ranks."""

from __future__ import annotations

import math
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from class_scenes import COUNT, NAMES, RIDER, SIDES, TRAIN, VOLUME, label, make_pack
from conftest import make_varied_raw, pack
from numpy.typing import NDArray
from torch.utils.data import DataLoader, TensorDataset

from readers import Augmentation, Order, RandomCrop, SegDataset, class_index, open_dataset
from readers.batches import Batches
from readers.class_index import CellsOfRow, ClassIndex
from readers.contract.errors import DamagedError, RequestError
from readers.crop import CropAndFlip, window_of
from readers.epoch import BatchRows, Run
from readers.holding import NONE, TRIES, Holding, largest_shares
from readers.loader import Loader
from readers.row_ranges import RowRanges
from readers.row_weights import RowWeights

pytestmark = pytest.mark.usefixtures("in_process")

SIZE = (64, 96)
DRAWS = 100_000
MANY = 5000
"""The slots of a batch whose windows are drawn without reading it."""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pack(tmp_path_factory.mktemp("classes") / "out", shard_size="200KB")


@pytest.fixture(scope="module")
def volumes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pack(tmp_path_factory.mktemp("volumes") / "out", sides=VOLUME, shard_size="200KB")


@pytest.fixture(scope="module")
def train(out: Path) -> SegDataset:
    return open_dataset(out, "train")


def batches_of(dataset: SegDataset, crop: RandomCrop, **options: Any) -> Batches:
    return own_batches(dataset.loader(1, crop=crop, **options))


def own_batches(loader: Loader) -> Batches:
    assert isinstance(loader._batches, Batches)
    return loader._batches


def slots(first: int, count: int = MANY) -> BatchRows:
    """Return a batch of many slots, more than a data set has: their numbers decide what they draw."""
    return BatchRows(np.arange(first, first + count), [Run(7, 0, count)], (count,))


def drawn(batches: Batches, count: int = DRAWS) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield rows and classes of many slots, whose own rows go round the data set."""
    assert batches.holding is not None
    for first in range(0, count, MANY):
        batch = slots(first)
        held = batches.holding.replaced(batch, batches.rows.at(batch.rows % len(batches.rows)))
        assert held.classes is not None
        yield held.rows, held.classes


def is_binomial(count: int, of: int, chance: float) -> bool:
    """Return whether a count is within five deviations of what its chance says."""
    return abs(count - of * chance) <= 5 * math.sqrt(of * chance * (1 - chance))


def having(dataset: SegDataset, number: int) -> dict[int, int]:
    """Return the rows of a pack with a class, and their pixels of it, counted from the labels."""
    pixels = {dataset._row(index): int((dataset[index][1] == number).sum()) for index in range(len(dataset))}
    return {row: count for row, count in pixels.items() if count}


@pytest.mark.parametrize("by_row", [False, True])
def test_the_draws_follow_the_shares(train: SegDataset, by_row: bool) -> None:
    crop = RandomCrop(SIZE, holds={"rider": 0.25, TRAIN: 0.1}, holds_rows="uniform" if by_row else "share")
    parts = list(drawn(batches_of(train, crop)))
    rows, classes = (np.concatenate(each) for each in zip(*parts, strict=True))
    for number, share in ((RIDER, 0.25), (TRAIN, 0.1)):
        mine, expected = rows[classes == number], having(train, number)
        assert is_binomial(len(mine), DRAWS, share)
        assert set(mine.tolist()) == set(expected)
        for row, pixels in expected.items():
            chance = 1 / len(expected) if by_row else pixels / sum(expected.values())
            assert is_binomial(int((mine == row).sum()), len(mine), chance)
    own = np.concatenate([train._rows.at(slots(first).rows % len(train)) for first in range(0, DRAWS, MANY)])
    assert (rows[classes == NONE] == own[classes == NONE]).all()


def test_the_cells_follow_their_pixels_and_the_starts_are_uniform(train: SegDataset) -> None:
    batches = batches_of(train, RandomCrop((80, 80), holds={"rider": 1.0}))
    holding, batch = batches.holding, slots(0, 4000)
    assert holding is not None
    row = next(iter(having(train, RIDER)))
    held = holding.replaced(batch, np.full(4000, row))._replace(rows=np.full(4000, row))
    windows = holding.windows(batch, held, np.broadcast_to(np.array(SIDES), (4000, 2))).windows
    assert windows is not None
    cells = holding.index.of_row(row)
    assert cells is not None
    numbers, counts = cells.of_class(RIDER)
    if len(numbers) == 1:
        line, column = divmod(int(numbers[0]), -(-SIDES[1] // 64))
        first = [max(0, min(64 * at + 64, side) - 80) for at, side in zip((line, column), SIDES, strict=True)]
        last = [min(side - 80, 64 * at) for at, side in zip((line, column), SIDES, strict=True)]
        starts = np.array(windows.starts)
        for axis in range(2):
            values = np.unique(starts[:, axis])
            assert values.min() == first[axis]
            assert values.max() == last[axis]
            for value in values:
                assert is_binomial(int((starts[:, axis] == value).sum()), 4000, 1 / (last[axis] - first[axis] + 1))
    assert counts.sum() == (label(row) == RIDER).sum()


@pytest.mark.parametrize("size", [(64, 96), (8, 9), (200, 300), (200, 10), (1, 1)])
@pytest.mark.parametrize("field", [{}, {"encode": ["label=tiles-zstd:64"]}, {"labels": "onehot"}])
def test_each_window_for_a_class_holds_it(tmp_path: Path, size: tuple[int, int], field: dict[str, Any]) -> None:
    dataset = open_dataset(make_pack(tmp_path / "out", **field), "train")
    loader = dataset.loader(4, shuffle=True, crop=RandomCrop(size, holds={"rider": 0.5, "train": 0.5}), flip=True)
    batch = slots(0, 40)
    batches = own_batches(loader)
    held = batches.held(BatchRows(batch.rows % len(dataset), batch.runs, (40,)))
    assert held.classes is not None
    labels = batches.read(BatchRows(batch.rows % len(dataset), batch.runs, (40,)), np.empty)[1]
    for number, index in zip(held.classes.tolist(), labels, strict=True):
        assert number in (RIDER, TRAIN)
        assert (index[number] == 1).any() if "labels" in field else (index == number).any()


@pytest.mark.parametrize("size", [(16, 16, 16), (30, 20, 60), (3, 5, 7)])
def test_windows_of_volumes_hold_a_class_besides_the_first(volumes: Path, size: tuple[int, int, int]) -> None:
    dataset = open_dataset(volumes, "train")
    batches = batches_of(dataset, RandomCrop(size, foreground=1.0))
    batch = BatchRows(np.arange(len(dataset)), [Run(1, 0, len(dataset))], (len(dataset),))
    for index, row in zip(batches.read(batch, np.empty)[1], batches.in_pack(batch), strict=True):
        has_other = ((label(row, VOLUME) > 0) & (label(row, VOLUME) < 255)).any()
        assert ((index > 0) & (index < 255)).any() or not has_other


def test_a_third_of_the_windows_are_over_the_foreground(train: SegDataset) -> None:
    crop = RandomCrop((1, 1), foreground=1 / 3)
    batches, plain = batches_of(train, crop), batches_of(train, RandomCrop((1, 1)))
    assert batches.crop is not None
    count = moved = 0
    for first in range(0, 6000, 1000):
        batch = slots(first, 1000)
        rows = BatchRows(batch.rows, batch.runs, (1000,))
        own = batches.rows.at(batch.rows % len(train))
        assert batches.holding is not None
        assert plain.crop is not None
        sizes = np.broadcast_to(np.array(SIDES), (1000, 2))
        held = batches.holding.replaced(rows, own)
        windows = batches.holding.windows(rows, held, sizes).windows
        assert windows is not None
        other = plain.crop.windows(rows.rows, rows.runs, sizes)
        moved += sum(one != two for one, two in zip(windows.starts, other.starts, strict=True))
        count += 1000
    assert is_binomial(moved, count, 1 / 3)


def test_the_largest_class_is_bounded_where_a_try_finds_a_window(train: SegDataset) -> None:
    loader = train.loader(5, shuffle=True, crop=RandomCrop((64, 64), most=0.6))
    plain = train.loader(5, shuffle=True, crop=RandomCrop((64, 64)))

    def above(labels: torch.Tensor) -> int:
        shares = [np.bincount(index.numpy()[index.numpy() < 255], minlength=5) for index in labels]
        return sum(share.max() > 0.6 * share.sum() for share in shares)

    bounded = free = 0
    for (_, labels), (_, others) in zip(loader, plain, strict=True):
        bounded += above(labels)
        free += above(others)
    assert bounded < free
    assert 0 < loader.drawn.above <= loader.drawn.again <= loader.drawn.windows
    assert TRIES == 10


def share_in(cells: CellsOfRow, part: list[tuple[int, int]]) -> float:
    begins, ends = (np.array([each], np.float64) for each in zip(*part, strict=True))
    (share,) = largest_shares([cells], np.array([SIDES]), begins, ends)
    return share


@pytest.mark.parametrize("kernel", [True, False])
def test_the_share_of_the_largest_class_is_exact_on_the_borders_of_cells(
    train: SegDataset, kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kernel:
        monkeypatch.setattr(class_index, "KERNEL", None)
    index = ClassIndex.of(train._pack)
    for row in range(8):
        cells, pixels = index.of_row(row), label(row)
        assert cells is not None
        for top, left, bottom, right in ((0, 0, 64, 64), (64, 64, 128, 192), (0, 64, 150, 220), (128, 192, 150, 220)):
            counts = np.bincount(pixels[top:bottom, left:right].reshape(-1), minlength=256)[:5]
            expected = counts.max() / counts.sum() if counts.sum() else 0
            assert share_in(cells, [(top, bottom), (left, right)]) == pytest.approx(expected)
        inside = share_in(cells, [(10, 140), (13, 200)])
        counts = np.bincount(pixels[10:140, 13:200].reshape(-1), minlength=256)[:5]
        assert inside == pytest.approx(counts.max() / counts.sum(), abs=0.1)


CROPS = {
    "holds": RandomCrop(SIZE, holds={"rider": 0.25, "train": 0.25}, most=0.75),
    "scaled": RandomCrop(SIZE, scale=(0.5, 2.0), holds={"rider": 0.5}, foreground=0.3),
    "small": RandomCrop((9, 9), scale=(0.5, 2.0), holds={"rider": 0.5}, most=0.9),
}


def received(loader: Any) -> list[tuple[NDArray[Any], ...]]:
    return [tuple(np.asarray(part).copy() for part in batch) for batch in loader]


def are_equal(one: list[tuple[NDArray[Any], ...]], other: list[tuple[NDArray[Any], ...]]) -> bool:
    return len(one) == len(other) and all(
        np.array_equal(x, y) for a, b in zip(one, other, strict=True) for x, y in zip(a, b, strict=True)
    )


@pytest.mark.parametrize("crop", CROPS.values(), ids=CROPS)
@pytest.mark.parametrize("weights", [None, "repeat-factor", "class-uniform"])
def test_threads_ranks_and_resumption_change_nothing(train: SegDataset, crop: RandomCrop, weights: str | None) -> None:
    options: dict[str, Any] = {"shuffle": True, "seed": 3, "crop": crop, "flip": True, "weights": weights}
    every = received(train.loader(4, threads=1, **options))
    assert are_equal(every, received(train.loader(4, threads=4, ahead=5, **options)))
    ranks = [received(train.loader(2, rank=rank, world_size=2, **options)) for rank in range(2)]
    joined = [
        tuple(np.stack([first, second], 1).reshape(-1, *first.shape[1:]) for first, second in zip(*pair, strict=True))
        for pair in zip(*ranks, strict=True)
    ]
    assert are_equal(every, joined)
    for stop in (1, 3):
        loader = train.loader(4, **options)
        batches = iter(loader)
        before = [tuple(np.asarray(part).copy() for part in next(batches)) for _ in range(stop)]
        again = train.loader(4, **options)
        again.load_state_dict(loader.state_dict())
        assert are_equal(every, [*before, *received(again)])


def test_a_plain_crop_draws_what_it_drew_before(train: SegDataset) -> None:
    """The slots that ask for nothing get the windows of the same crop without `holds`."""
    one = train.loader(4, shuffle=True, seed=1, crop=RandomCrop(SIZE, holds={"rider": 0.2}))
    other = train.loader(4, shuffle=True, seed=1, crop=RandomCrop(SIZE))
    same = 0
    for batch, (mine, theirs) in zip(
        one.order.coming().batches(4),
        zip(one, other, strict=True),
        strict=True,
    ):
        held = own_batches(one).held(batch)
        assert held.classes is not None
        for slot in np.flatnonzero(held.classes == NONE):
            assert torch.equal(mine[0][slot], theirs[0][slot])
            same += 1
    assert same > 0


def test_weights_repeat_rare_classes(out: Path) -> None:
    dataset = open_dataset(out, "all")
    riders, trains = (having(dataset, number) for number in (RIDER, TRAIN))
    weights = RowWeights.of(ClassIndex.of(dataset._pack), dataset._rows, ("repeat-factor", 0.5))
    factors = np.diff(weights.ends, prepend=0)
    for row in range(COUNT):
        shares = [
            1.0,
            *([len(riders) / COUNT] if row in riders else []),
            *([len(trains) / COUNT] if row in trains else []),
        ]
        wall = (label(row) == 1).any()
        assert wall or row < COUNT
        assert factors[row] == pytest.approx(max(1, *(math.sqrt(0.5 / share) for share in shares)))
    epochs = 200
    counts = np.zeros(COUNT)
    order = Order(dataset, weights=("repeat-factor", 0.5), seed=5)
    for _ in range(epochs):
        rows = list(order)
        assert len(rows) == COUNT
        times = np.bincount(rows, minlength=COUNT)
        expected = factors / factors.sum() * COUNT
        assert ((times == np.floor(expected)) | (times == np.ceil(expected))).all()
        counts += times
    assert np.abs(counts / epochs - expected).max() < 5 * 0.5 / math.sqrt(epochs)


def test_class_uniform_weights_draw_each_class_equally_often(out: Path) -> None:
    dataset = open_dataset(out, "all")
    weights = RowWeights.of(ClassIndex.of(dataset._pack), dataset._rows, "class-uniform")
    factors = np.diff(weights.ends, prepend=0)
    of_class = {number: having(dataset, number) for number in range(4)}
    for row in range(COUNT):
        assert factors[row] == pytest.approx(sum(1 / len(rows) for rows in of_class.values() if row in rows))
    assert factors.sum() == pytest.approx(4)


def test_a_weighted_order_joins_ranks_and_goes_on(train: SegDataset) -> None:
    options: dict[str, Any] = {"weights": "class-uniform", "seed": 2}
    every = list(Order(train, **options))
    ranks = [list(Order(train, rank=rank, world_size=3, **options)) for rank in range(3)]
    assert [row for rows in zip(*ranks, strict=True) for row in rows][: len(every)] == every
    order = Order(train, **options)
    rows = iter(order)
    begun = [next(rows) for _ in range(7)]
    again = Order(train, **options)
    again.load_state_dict(order.state_dict())
    assert begun + list(again) == every
    with pytest.raises(RequestError, match="weights is None here and was 'class-uniform'"):
        Order(train).load_state_dict(order.state_dict())
    with pytest.raises(RequestError, match="weights is 'repeat-factor' here and was None"):
        Order(train, weights="repeat-factor").load_state_dict(Order(train).state_dict())
    assert [
        int(row)
        for (batch,) in DataLoader(TensorDataset(torch.arange(len(train))), 4, sampler=Order(train, **options))
        for row in batch
    ] == every


def test_what_was_drawn_is_counted(train: SegDataset) -> None:
    loader = train.loader(4, shuffle=True, crop=RandomCrop(SIZE, holds={"rider": 1.0}))
    received(loader)
    assert (loader.drawn.windows, loader.drawn.counted) == (20, 4)
    assert loader.drawn.asked.tolist() == [0, 0, 20, 0, 0]
    assert loader.drawn.having[RIDER] == 4
    first = next(iter(train.loader(4, shuffle=True, crop=RandomCrop(SIZE, holds={"rider": 1.0}))))[1].numpy()
    assert loader.drawn.pixels.tolist() == np.bincount(first.reshape(-1), minlength=256)[:5].tolist()
    text = repr(loader.drawn)
    assert "20 windows" in text
    assert all(name in text for name in NAMES)
    onehot = train.loader(4, shuffle=True, crop=RandomCrop(SIZE, holds={"rider": 1.0}), labels="onehot")
    received(onehot)
    assert onehot.drawn.pixels.tolist() == loader.drawn.pixels.tolist()
    on_device = train.loader(4, shuffle=True, crop=RandomCrop(SIZE, holds={"rider": 1.0}), labels="onehot")
    assert len(received(on_device.to("cpu"))) == 5
    assert on_device.drawn.pixels.tolist() == loader.drawn.pixels.tolist()
    loader.drawn.clear()
    assert repr(loader.drawn) == "0 windows"
    plain = train.loader(4)
    received(plain)
    assert repr(plain.drawn) == "20 windows"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: t.loader(2, crop=RandomCrop(SIZE, holds={"bus": 0.5})), "there is no class 'bus'"),
        (lambda t: t.loader(2, crop=RandomCrop(SIZE, holds={9: 0.5})), "there is no class 9"),
        (lambda t: t.loader(2, crop=RandomCrop(SIZE, holds={"boat": 0.5})), "no row of this data set has 'boat'"),
        (lambda t: t.loader(2, crop=RandomCrop(SIZE, holds={"rider": 0.5, 2: 0.1})), "names a class twice"),
        (lambda t: RandomCrop(SIZE, holds={"rider": 0.6, "train": 0.5}), "sum up to 1 at most"),
        (lambda t: RandomCrop(SIZE, holds={"rider": -0.1}), "from 0 on"),
        (lambda t: RandomCrop(SIZE, holds=cast(Any, ["rider"])), 'such as {"rider": 0.25}'),
        (lambda t: RandomCrop(SIZE, holds=cast(Any, {"rider": "often"})), 'such as {"rider": 0.25}'),
        (lambda t: RandomCrop(SIZE, scale=cast(Any, 2)), "expected two numbers above 0"),
        (lambda t: RandomCrop(SIZE, most=cast(Any, "half")), "most='half'"),
        (lambda t: RandomCrop(SIZE, holds_rows=cast(Any, "any")), 'expected "share" or "uniform"'),
        (lambda t: RandomCrop(SIZE, most=0), "most=0"),
        (lambda t: RandomCrop(SIZE, foreground=2), "foreground=2"),
        (lambda t: window_of(RandomCrop(SIZE, foreground=0.5), np.array(SIDES)), "use loader"),
        (lambda t: t.loader(2, weights="rare"), "weights='rare'"),
        (lambda t: t.loader(2, weights=("repeat-factor", 0)), "weights="),
        (lambda t: t.loader(2, weights=cast(Any, ("repeat-factor", "rare"))), "weights="),
        (lambda t: Order(5, weights="class-uniform"), "needs a data set"),
        (lambda t: t.loader(2, weights="class-uniform", mix={"labelled": 1, "unlabelled": 1}), "mix="),
    ],
)
def test_what_cannot_be_drawn_is_refused_by_name(
    train: SegDataset, make: Callable[[SegDataset], object], message: str
) -> None:
    with pytest.raises(RequestError, match=message):
        make(train)


def test_samples_do_not_follow_classes(out: Path) -> None:
    samples = open_dataset(out, "train", transform=Augmentation(crop=RandomCrop(SIZE, holds={"rider": 1.0})))
    with pytest.raises(RequestError, match="use loader"):
        samples[0]


def test_a_field_that_is_not_read_is_refused(out: Path) -> None:
    with pytest.raises(RequestError, match="needs the field 'label', which is not read"):
        open_dataset(out, "train", fields=("image",)).loader(2, crop=RandomCrop(SIZE, foreground=0.5))


def test_rows_without_a_label_keep_their_slots(tmp_path: Path) -> None:
    from packer import Rows, build_pack

    def load(key: str) -> dict[str, NDArray[Any]]:
        number = int(key)
        row = {"image": np.full(SIDES, number, np.uint8)}
        return row if number % 2 else {**row, "label": np.where(label(2 * number + 1) > 200, 0, label(2 * number + 1))}

    keys = [f"{number:03}" for number in range(COUNT)]
    rows = Rows(keys, load, sizes=SIDES, without={"label": [key for key in keys if int(key) % 2]})
    build_pack(rows, tmp_path / "out", classes=NAMES, labels="index", size="native")
    dataset = open_dataset(tmp_path / "out")
    mix = {"labelled": 2, "unlabelled": 2}
    loader = dataset.loader(4, shuffle=True, mix=mix, crop=RandomCrop(SIZE, holds={"rider": 1.0}, most=0.99))
    for images, labels in loader:
        assert (images[:2, 0, 0, 0] % 2 == 0).all()
        assert (images[2:, 0, 0, 0] % 2 == 1).all()
        assert (labels[:2] == RIDER).any(dim=(1, 2)).all()
    assert loader.drawn.asked[RIDER] == loader.drawn.windows // 2


def test_damaged_cells_are_refused_and_missing_ones_named(tmp_path: Path) -> None:
    out = make_pack(tmp_path / "out")
    crop = RandomCrop((9, 9), holds={"rider": 1.0})
    received(open_dataset(out, "train").loader(2, crop=crop))
    for path in (out / "cells").glob("train-*"):
        whole = path.read_bytes()
        for change in (whole[:50], whole[:-4], whole + b"\0", whole[:8] + b"\2" + whole[9:], b"", whole[:128] * 2):
            path.write_bytes(change)
            with pytest.raises(DamagedError, match="packer index writes it again"):
                received(open_dataset(out, "train").loader(2, crop=crop))
        path.unlink()
    with pytest.raises(RequestError, match="packer index"):
        open_dataset(out, "train").loader(2, crop=crop)
    with pytest.raises(RequestError, match="packer index"):
        open_dataset(out, "train").loader(2, weights="class-uniform")
    assert len(received(open_dataset(out, "train").loader(2, crop=SIZE))) == 10


def test_cells_of_another_label_are_noticed_where_they_are_read(tmp_path: Path) -> None:
    dataset = open_dataset(make_pack(tmp_path / "out"), "train")
    index = ClassIndex.of(dataset._pack)
    window = CropAndFlip.of(RandomCrop((3, 3), holds={"rider": 1.0}), False)
    assert window is not None
    assert isinstance(window.crop, RandomCrop)
    holding = Holding.of(index, RowRanges([range(20)]), window, window.crop)
    with pytest.raises(DamagedError, match="do not fit its label"):
        holding._pixel(1, 4, np.array([0, 0]), np.array([64, 64]), 5)


def test_a_pack_that_is_read_through_a_cache_draws_the_same(out: Path, tmp_path: Path) -> None:
    crop = RandomCrop(SIZE, holds={"rider": 0.5}, most=0.9)
    cached = open_dataset(out, "train", cache=tmp_path / "cache", cache_bytes="100MB")
    options: dict[str, Any] = {"shuffle": True, "crop": crop, "weights": "class-uniform"}
    assert are_equal(received(cached.loader(4, **options)), received(open_dataset(out, "train").loader(4, **options)))
    shutil.rmtree(shutil.copytree(out, tmp_path / "copy") / "cells")
    bare = open_dataset(tmp_path / "copy", "train", cache=tmp_path / "cache", cache_bytes="100MB")
    with pytest.raises(RequestError, match="packer index"):
        bare.loader(4, **options)


def test_rows_of_many_sizes_and_splits_are_drawn(tmp_path: Path) -> None:
    sides = [(40, 300), (150, 70), (64, 64), (500, 30), (7, 9)]
    raw = make_varied_raw(tmp_path / "raw", {"train": sides, "val": sides[::-1], "test": sides[:2]})
    out = pack(raw.path, tmp_path / "out", "--labels", "index", "--size", "native")
    for split in ("train", "val", "all"):
        dataset = open_dataset(out, split)
        name = dataset.classes.names[1]
        loader = dataset.loader(3, shuffle=True, crop=RandomCrop((50, 60), holds={name: 1.0}, most=0.9))
        for batch, (_, labels) in zip(loader.order.coming().batches(3), loader, strict=True):
            assert (labels == 1).any(dim=2).any(dim=1).all()
            rows = {dataset._rows.at(np.arange(len(dataset)))[index] for index in range(len(dataset))}
            assert set(own_batches(loader).in_pack(batch)) <= rows


def test_an_order_says_what_it_is(train: SegDataset) -> None:
    order = Order(train, weights="repeat-factor", seed=7, rank=1, world_size=2)
    rows = f"{len(train):,} rows"
    assert repr(order) == f"Order({rows}, shuffle=True, seed=7, weights='repeat-factor', epoch 0, rank 1 of 2)"
    assert repr(Order(5, shuffle=False)) == "Order(5 rows, shuffle=False, seed=0, epoch 0)"


def test_a_weighted_order_can_be_sent_to_other_processes(train: SegDataset) -> None:
    order = Order(train, weights="repeat-factor", seed=9)
    assert list(pickle.loads(pickle.dumps(order))) == list(order)  # noqa: S301 - it is our own
