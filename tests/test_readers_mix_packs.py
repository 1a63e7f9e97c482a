"""Several packs in one loader: exact counts for every batch and prefix, every rank and resumed; classes by name."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import NAMES, SMALL_SHARDS, examples, make_raw, make_varied_raw, pack
from hypothesis import given, settings
from hypothesis import strategies as st

from readers import Colour, MixedPacks, RandomCrop, RequestError, SegDataset, Window, mix_packs, open_dataset
from readers.class_change import ClassChange
from readers.contract.classes import ClassTable, SegClass
from readers.fair_shares import FairShares
from readers.pack_order import PackOrder
from readers.stores.ahead import Ahead

WEIGHTS = st.lists(st.integers(1, 30), min_size=1, max_size=6)
WORLD = st.integers(1, 5)
ENDINGS: Any = st.sampled_from([{"pad": True}, {"pad": False}, {"drop_last": True}])


def table(*names: str) -> ClassTable:
    return ClassTable(tuple(map(SegClass, names)))


@given(WEIGHTS, st.integers(1, 33), st.integers(0, 200))
def test_each_batch_and_all_batches_up_to_it_have_the_share_of_each_side(
    weights: list[int], size: int, later: int
) -> None:
    shares, total = FairShares(weights, size), sum(weights)
    count = min(shares.period, 200) + 3
    lines = shares.counts(0, count)
    assert (lines.sum(1) == size).all()
    for side, weight in enumerate(weights):
        share = Fraction(size * weight, total)
        assert all(abs(rows - share) < 1 for rows in lines[:, side].tolist())
        assert all(abs(rows - n * share) < 1 for n, rows in enumerate(lines[:, side].cumsum().tolist(), 1))
        rows = later * weight
        least = shares.least(side, rows)
        assert shares.before(least)[side] >= rows > (shares.before(least - 1)[side] if least else -1)
    assert [shares.before(n + 1) for n in range(count)] == [tuple(line) for line in lines.cumsum(0).tolist()]
    assert (shares.counts(later, later + 5) == [shares.counts(n, n + 1)[0] for n in range(later, later + 5)]).all()


def orders(rows: list[int], weights: list[int], size: int, world_size: int, **options: Any) -> list[PackOrder]:
    """Return the order of each rank, of packs that are named by their numbers."""
    names = [f"pack {number}" for number in range(len(rows))]
    end = names[options.pop("end", 0) % len(names)]
    shuffles = dict.fromkeys(names, options.pop("shuffle", True))
    shares = dict(zip(names, weights, strict=False))
    many = dict(zip(names, rows, strict=True))
    return [
        PackOrder(many, shares, size, end=end, shuffle=shuffles, rank=rank, world_size=world_size, **options)
        for rank in range(world_size)
    ]


def by_pack(batch: list[int], rows: list[int]) -> list[list[int]]:
    """Return the rows of each pack in a batch, which lie pack by pack."""
    firsts = [sum(rows[:number]) for number in range(len(rows))]
    parts = [
        [row - first for row in batch if first <= row < first + many] for first, many in zip(firsts, rows, strict=True)
    ]
    assert batch == [row + first for part, first in zip(parts, firsts, strict=True) for row in part]
    return parts


def in_turns(passes: list[list[list[int]]], rows: list[int], number: int) -> list[int]:
    """Return the rows of a pack in the order in which all ranks together get them."""
    found = []
    for step in range(max(map(len, passes))):
        batch = [by_pack(batches[step], rows)[number] for batches in passes if step < len(batches)]
        found += [part[turn] for turn in range(max(map(len, batch))) for part in batch if turn < len(part)]
    return found


SIDES: Any = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 9)), min_size=1, max_size=4)


@given(SIDES, st.integers(1, 12), WORLD, st.integers(0, 3), ENDINGS, st.booleans())
def test_all_ranks_keep_the_ratio_and_an_epoch_has_each_row_of_the_pack_that_ends_it_once(
    sides: list[tuple[int, int]], size: int, world_size: int, end: int, ending: Any, shuffle: bool
) -> None:
    rows, weights = [many for many, _ in sides], [weight for _, weight in sides]
    ranks = orders(rows, weights, size, world_size, end=end, shuffle=shuffle, seed=3, **ending)
    end %= len(rows)
    streams: list[list[int]] = [[] for _ in rows]
    for _ in range(3):
        passes = [list(order) for order in ranks]
        assert [len(batches) for batches in passes] == [len(order) for order in ranks]
        together = [batches[step] for step in range(len(passes[-1])) for batches in passes]
        sums = np.zeros(len(rows))
        for number, batch in enumerate(together[:-world_size], 1):
            counts = np.array([len(part) for part in by_pack(batch, rows)])
            sums += counts
            share = size * np.array(weights) / sum(weights)
            assert counts.sum() == size
            assert (abs(counts - share) < 1).all()
            assert (abs(sums - number * share) < 1 + 1e-9).all()
        got = in_turns(passes, rows, end) if any(passes) else []
        if ending == {"pad": False}:
            assert sorted(got) == list(range(rows[end]))
        elif ending == {"pad": True}:
            assert set(got) == set(range(rows[end]))
            assert len(got) == rows[end] + ranks[0].padding
            assert len({len(batches) for batches in passes}) == 1
        else:
            assert len(set(got)) == len(got) <= rows[end]
            assert all(len(batch) == size for batches in passes for batch in batches)
        for number, stream in enumerate(streams):
            stream += in_turns(passes, rows, number) if number != end and any(passes) else []
        states = [order.state_dict() for order in ranks]
        assert all(state == states[0] for state in states)
    for many, stream in zip(rows, streams, strict=True):
        for first in range(0, len(stream), many):
            epoch = stream[first : first + many]
            assert len(set(epoch)) == len(epoch), "all rows of a pack come before one of them comes again"


@settings(max_examples=examples(10))
@given(SIDES, st.integers(1, 9), st.integers(0, 3), st.booleans(), WORLD, WORLD)
def test_an_order_is_resumed_after_every_batch_also_with_other_ranks(
    sides: list[tuple[int, int]], size: int, end: int, pad: bool, before: int, after: int
) -> None:
    rows, weights = [many for many, _ in sides], [weight for _, weight in sides]
    options: Any = {"end": end, "seed": 11, "pad": pad}
    whole = [[list(order), list(order)] for order in orders(rows, weights, size, before, **options)]
    first = orders(rows, weights, size, before, **options)
    running = [iter(order) for order in first]
    for step in range(len(whole[-1][0])):
        state = json.loads(json.dumps(first[0].state_dict()))
        assert first[0].state_dict(batches=step) == state
        resumed = orders(rows, weights, size, before, **options)
        for order, epochs in zip(resumed, whole, strict=True):
            order.load_state_dict(state)
            order.set_epoch(0)
            assert list(order) == epochs[0][step:]
            assert list(order) == epochs[1]
        others = orders(rows, weights, size, after, **options)
        for order in others:
            order.load_state_dict(state)
        rest = in_turns([list(order) for order in others], rows, end % len(rows))
        wanted = in_turns([epochs[0][step:] for epochs in whole], rows, end % len(rows))
        assert rest[: len(wanted)] == wanted[: len(rest)]
        for batches in running:
            next(batches)


def test_sides_of_equal_size_do_not_march_in_step() -> None:
    (order,) = orders([50, 50], [1, 1], 10, 1, seed=5)
    met = [tuple(map(tuple, by_pack(batch, [50, 50]))) for batch in order]
    assert all(first != second for first, second in met)
    assert order.state_dict()["rows"] == 100


def test_an_epoch_can_be_chosen_and_left_early() -> None:
    rows, weights = [30, 17, 9], [5, 3, 2]
    (order,) = orders(rows, weights, 7, 1, seed=1)
    passes = [list(order) for _ in range(3)]
    for epoch in (2, 0, 1):
        (fresh,) = orders(rows, weights, 7, 1, seed=1)
        fresh.set_epoch(epoch)
        assert list(islice(fresh, 3)) == passes[epoch][:3]
        assert list(fresh) == passes[epoch]
    for state in ({}, {"packs": {}, "rows": 1}, {"packs": [], "rows": 0}, {**order.state_dict(), "rows": -1}):
        with pytest.raises(RequestError, match="not the state of"):
            order.load_state_dict(state)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Packs with the classes of the raw folders, renamed, in another order, one-hot, and of other sizes."""
    path = tmp_path_factory.mktemp("packs")
    raw = {name: make_raw(path / "raw" / name, {"train": many}).path for name, many in (("city", 11), ("own", 14))}
    lines = (raw["own"] / "class_dict.csv").read_text().replace("car", "lorry").splitlines()
    (raw["own"] / "class_dict.csv").write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    pack(raw["city"], path / "city", "--labels", "index", *SMALL_SHARDS)
    pack(raw["city"], path / "onehot", "--labels", "onehot")
    pack(raw["own"], path / "own", "--labels", "index", "--ignore", "sky")
    pack(raw["own"], path / "tiled", "--labels", "index", "--encode", "label=tiles-zstd:16x16")
    pack(raw["city"], path / "small", "--labels", "index", "--size", "16x24")
    varied = make_varied_raw(path / "raw" / "varied", {"train": [(20, 30), (31, 22), (18, 40)]})
    pack(varied.path, path / "native", "--labels", "index", "--size", "native")
    return path


def opened(folder: Path, *names: str, **options: Any) -> list[SegDataset]:
    return [open_dataset(folder / name, "train", **options) for name in names]


MAPPING = {"own": {"lorry": "car"}}


def expected(mixed: MixedPacks, rows: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a batch made of samples of each pack alone, its classes changed by their names."""
    datasets, images, labels = list(mixed.packs.items()), [], []
    for row in rows:
        number = 0
        while row >= len(datasets[number][1]):
            row, number = row - len(datasets[number][1]), number + 1
        name, data = datasets[number]
        image, label = open_dataset(data.root, "train", label="index")[row]
        changed = torch.full_like(label, 255)
        for index, own in enumerate(data.classes.names):
            target = MAPPING.get(name, {}).get(own, own)
            changed[label == index] = mixed.classes.names.index(target)
        images.append(image)
        labels.append(changed)
    return torch.stack(images), torch.stack(labels)


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("names", [("city", "own"), ("onehot", "own"), ("city", "tiled", "onehot")])
def test_every_pixel_has_the_class_of_the_common_list(folder: Path, names: tuple[str, ...], threads: int) -> None:
    shares = [0.5, 0.3, 0.2][: len(names)]
    mapping = MAPPING if "own" in names else {"tiled": MAPPING["own"]}
    packs = [(data, share) for data, share in zip(opened(folder, *names), shares, strict=True)]
    mixed = mix_packs(packs, mapping=mapping)
    assert (mixed.classes.names, len(mixed)) == (NAMES, sum(len(data) for data, _ in packs))
    loader = mixed.loader(5, shuffle=True, seed=7, labels="index", threads=threads)
    planes = mixed.loader(5, shuffle=True, seed=7, labels="onehot", threads=threads)
    device = mixed.loader(5, shuffle=True, seed=7, labels="onehot", threads=threads).to("cpu")
    rows = [batch.rows.tolist() for batch in loader.order.coming().batches(5)]
    changes = {**MAPPING, "tiled": MAPPING["own"]}
    for batch, onehot, sent, wanted in zip(loader, planes, device, rows, strict=True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("test_readers_mix_packs.MAPPING", changes)
            images, labels = expected(mixed, wanted)
        assert torch.equal(batch[0], images)
        assert torch.equal(batch[1], labels)
        assert torch.equal(onehot[1], (labels[:, None] == torch.arange(4)[:, None, None]).to(torch.uint8))
        assert torch.equal(sent[1], onehot[1])
    assert loader.state_dict() == planes.state_dict() == device.state_dict()


def test_crops_and_flips_are_those_of_the_first_pack_alone(folder: Path) -> None:
    city, native = opened(folder, "city", "native")
    options: Any = {"shuffle": True, "seed": 4, "crop": RandomCrop((9, 11), scale=(0.5, 2.0)), "flip": True}
    mixed = mix_packs([(city, 0.5), (native, 0.5)]).loader(6, threads=2, **options)
    for batch, alone in zip(mixed, city.loader(3, **options), strict=True):
        many = len(alone[0])
        assert all(torch.equal(part[:many], other) for part, other in zip(batch, alone, strict=True))
        assert len(batch[0]) == many + 3


@pytest.mark.parametrize("cropped", [False, True])
def test_two_ranks_joined_are_one_and_a_loader_is_resumed_after_every_batch(folder: Path, cropped: bool) -> None:
    mixed = mix_packs(list(zip(opened(folder, "city", "own"), (2, 1), strict=True)), mapping=MAPPING)
    options: Any = {"shuffle": True, "seed": 2, "pad": False, **({"crop": (8, 8), "flip": True} if cropped else {})}
    whole = list(mixed.loader(6, **options))
    ranks = [list(mixed.loader(3, rank=rank, world_size=2, **options)) for rank in (0, 1)]
    for number, (images, labels) in enumerate(whole):
        parts = [rank[number] for rank in ranks if number < len(rank)]
        for part, wanted in ((0, images), (1, labels)):
            joined = torch.cat([batch[part] for batch in parts])
            assert sorted(row.numpy().tobytes() for row in joined) == sorted(row.numpy().tobytes() for row in wanted)
    loader = mixed.loader(6, threads=4, **options)
    states = [loader.state_dict()]
    for _ in loader:
        states.append(loader.state_dict())
    for step, state in enumerate(states[: len(whole)]):
        resumed = mixed.loader(6, threads=1, **options)
        resumed.load_state_dict(json.loads(json.dumps(state)))
        rest = list(resumed)
        assert len(rest) == len(whole) - step
        assert all(
            torch.equal(a, b)
            for batch, other in zip(rest, whole[step:], strict=True)
            for a, b in zip(batch, other, strict=True)
        )


@pytest.mark.parametrize("partners", [0, 1])
def test_packs_in_caches_are_fetched_ahead(folder: Path, tmp_path: Path, partners: int) -> None:
    options: Any = {"shuffle": True, "seed": 6, "partners": partners, "threads": 1}
    here, there = opened(folder, "city", "own"), opened(folder, "city", "own", cache=tmp_path / "cache")
    begun = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ahead, "received", lambda self: begun.append(self))
        wanted, cached = (
            list(mix_packs(list(zip(packs, (1, 1), strict=True)), mapping=MAPPING).loader(4, **options))
            for packs in (here, there)
        )
    for batch, other in zip(cached, wanted, strict=True):
        assert all(torch.equal(part, same) for part, same in zip(batch, other, strict=True))
    assert 2 <= len(set(begun)) <= 2 * (1 + partners), "the shards of each pack, and of partners that are not there yet"
    assert len(begun) == len(set(begun)) * len(cached)


def doubled(*parts: torch.Tensor) -> list[torch.Tensor]:
    return [torch.cat([part, part]) for part in parts]


def test_images_are_normalised_by_one_statistic_or_by_each_packs_own(folder: Path) -> None:
    city, own = opened(folder, "city", "small")
    crop: Any = {"crop": (9, 9), "shuffle": True, "seed": 1}
    mixed = mix_packs([(city, 0.25), (own, 0.75)])
    mean = [0.25 * a + 0.75 * b for a, b in zip(city.mean, own.mean, strict=True)]
    square = [
        0.25 * (a * a + s * s) + 0.75 * (b * b + t * t)
        for a, s, b, t in zip(city.mean, city.std, own.mean, own.std, strict=True)
    ]
    assert mixed.mean == pytest.approx(mean)
    assert mixed.std == pytest.approx([(whole - part * part) ** 0.5 for whole, part in zip(square, mean, strict=True)])
    plain = list(mixed.loader(4, **crop))
    for normalize, numbers in ((True, [(mixed.mean, mixed.std)] * 2), ("each", [(d.mean, d.std) for d in (city, own)])):
        for channels_last in (False, True):
            sent = mixed.loader(4, **crop).to("cpu", normalize=normalize, channels_last=channels_last)  # type: ignore[arg-type]
            for (images, labels), (stored, same) in zip(sent, plain, strict=True):
                means, stds = (
                    torch.cat([torch.tensor(numbers[0][part])[None]] + [torch.tensor(numbers[1][part])[None]] * 3)
                    for part in (0, 1)
                )
                many = len(images) - 3
                means, stds = (torch.cat([part[:1]] * many + [part[1:]])[..., None, None] for part in (means, stds))
                assert torch.allclose(images, (stored.float() / 255 - means) / stds, atol=1e-5)
                assert torch.equal(labels, same)
                assert images.is_contiguous(memory_format=torch.channels_last) == channels_last
    twice = mixed.loader(4, **crop).to("cpu", normalize="each", augment=doubled)
    with pytest.raises(RequestError, match="augment made 8 images of 4"):
        next(iter(twice))
    halved = mixed.loader(4, **crop).to("cpu", normalize="each", augment=lambda images, labels: (images / 2, labels))
    assert len(next(iter(halved))[0]) == 4
    with pytest.raises(RequestError, match="only batches of mix_packs"):
        city.loader(2).to("cpu", normalize="each")
    with pytest.raises(RequestError, match="expected True"):
        city.loader(2).to("cpu", normalize="mean")  # type: ignore[arg-type]


def test_colours_and_numbers_are_made_as_rows_are_read(folder: Path) -> None:
    mixed = mix_packs([(data, 1) for data in opened(folder, "city", "small")])
    crop: Any = {"crop": (9, 9), "shuffle": True, "seed": 1, "flip": "all", "turn": True}
    colour: Any = {"colour": Colour(0.2, 0.2, 0.2)}
    ours = mixed.loader(4, normalize=True, dtype=torch.bfloat16, **colour, **crop)
    theirs = mixed.loader(4, **colour, **crop).to("cpu", normalize=True)
    for (images, labels), (plain, same) in zip(ours, theirs, strict=True):
        assert images.dtype == torch.bfloat16
        assert torch.allclose(images.float(), plain, atol=0.1)  # bytes between are rounded in one of them
        assert torch.equal(labels, same)
    with pytest.raises(RequestError, match="state it once"):
        ours.to("cpu", normalize=True)


def test_what_does_not_fit_is_named_at_once(folder: Path) -> None:
    city, own, small, native = opened(folder, "city", "own", "small", "native")
    with pytest.raises(RequestError) as refused:
        mix_packs(
            [(city, 0.5), (own, -1), (open_dataset(folder / "city", "train", transform=tuple), 0.5)],
            classes="nobody",
            mapping={"own": {"person": "sun", "cat": None}, "rural": {}},
            end="rural",
        )
    for words in (
        "own: the share -1 is no number",
        "city-2: has a transform",
        "classes='nobody': the packs are city, own, city-2",
        "own: mapping names 'cat'",
        "own: mapping leads to 'sun'",
        "own: 'lorry': no class of the common list",
        "mapping names 'rural': the packs are",
        "end='rural': the packs are",
    ):
        assert words in str(refused.value)
    only = open_dataset(folder / "own", "train", fields=("image",))
    with pytest.raises(RequestError, match="own: the fields are image, and image, label of city"):
        mix_packs([(city, 1), (only, 1)])
    gray = pack(folder / "raw" / "city", folder / "gray", "--labels", "index", "--bands", "1")
    with pytest.raises(RequestError, match=r"gray: image has planes \(1,\), and \(3,\) in city"):
        mix_packs([(city, 1), (open_dataset(gray, "train"), 1)])
    with pytest.raises(RequestError, match=r"different sizes.*crop="):
        mix_packs([(city, 1), (small, 1)]).loader(4)
    with pytest.raises(RequestError, match=r"different sizes.*native sizes of their own"):
        mix_packs([(city, 1), (native, 1)]).loader(4)
    with pytest.raises(RequestError, match="leave out apart="):
        mix_packs([(city, 1)]).loader(4, shuffle=Window(apart=True))
    with pytest.raises(RequestError, match="batch_size=0"):
        mix_packs([(city, 1)]).loader(0)
    with pytest.raises(RequestError, match="neither"):
        mix_packs([(city, 1)]).loader(2, labels="planes")  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [0, -0.1, float("nan"), float("inf"), "half", None, True, 1e-9])
def test_a_share_must_be_a_number_above_zero(folder: Path, share: Any) -> None:
    with pytest.raises(RequestError, match="the share"):
        mix_packs([(open_dataset(folder / "city", "train"), share)])


@pytest.mark.parametrize("packs", [[], {}, [1], [("city", 1)], [(None, 1)]])
def test_packs_are_data_sets_with_their_shares(packs: Any) -> None:
    with pytest.raises(RequestError, match="expected data sets with their shares"):
        mix_packs(packs)


@pytest.mark.parametrize(
    "mapping", [["own"], {"own": ["lorry"]}, {"own": {"lorry": 3}}, {"own": {"lorry": ["car"]}}, {3: {}}]
)
def test_hostile_mappings_are_refused(folder: Path, mapping: Any) -> None:
    with pytest.raises(RequestError, match="cannot be mixed"):
        mix_packs(list(zip(opened(folder, "city", "own"), (1, 1), strict=True)), mapping=mapping)


@pytest.mark.parametrize("classes", [[], ["sky", "sky"], [3], "rural"])
def test_hostile_class_lists_are_refused(folder: Path, classes: Any) -> None:
    with pytest.raises(RequestError, match="classes="):
        mix_packs([(open_dataset(folder / "city", "train"), 1)], classes=classes)


def test_classes_of_another_pack_a_table_or_names_are_the_common_list(folder: Path) -> None:
    packs = list(zip(opened(folder, "city", "own"), (0.5, 0.5), strict=True))
    back = {"city": {"car": "lorry", "sky": None}}
    mixed = mix_packs(packs, classes="own", mapping=back)
    assert mixed.classes == packs[1][0].classes
    names = ("person", "sky", "vehicle", "road")
    mapping: Any = {"city": {"car": "vehicle"}, "own": {"lorry": "vehicle"}}
    for classes in (names, table(*names)):
        assert mix_packs(packs, classes=classes, mapping=mapping).classes.names == names
    many = table(*(f"class {number}" for number in range(300)), *names)
    wide = mix_packs(packs, classes=many, mapping=mapping)
    (images, labels), (_, narrow) = (
        next(iter(mix.loader(4))) for mix in (wide, mix_packs(packs, classes=names, mapping=mapping))
    )
    assert labels.dtype == torch.uint16
    assert torch.equal(torch.where(narrow == 255, 65535, narrow.int() + 300), labels.int())
    assert len(images) == 4
    text = repr(mixed)
    assert "25 rows" in text
    assert "city   50.0 %  11 rows, which end an epoch" in text
    assert "{'city': 1, 'own': 1}" in repr(mixed.loader(2))


@given(st.integers(1, 300), st.integers(1, 300), st.data())
def test_a_change_of_classes_is_right_for_every_number(own: int, common: int, data: st.DataObject) -> None:
    first, second = table(*map(str, range(own))), table(*(str(number) for number in reversed(range(common))))
    lacking = {str(number): None for number in range(common, own)}
    moved = data.draw(
        st.dictionaries(st.integers(0, own - 1).map(str), st.one_of(st.none(), st.integers(0, common - 1).map(str)))
    )
    names = {**lacking, **moved}
    change, problems = ClassChange.of(first, second, names)
    assert not problems
    numbers = np.arange(own + 3).astype(first.index_dtype)[None]
    numbers[0, -1] = first.ignore_index
    out = np.empty(numbers.shape, second.index_dtype)
    if change is None:
        assert first.names == second.names
        numbers, out = numbers[:, :own], numbers[:, :own]
    else:
        change.apply(numbers, out)
    for number, found in zip(numbers[0].tolist(), out[0].tolist(), strict=True):
        target = names.get(str(number), str(number)) if number < own else None
        assert found == (second.ignore_index if target is None else second.names.index(target))
