"""Windows for evaluation: all of them in order with their keys, on many ranks, resumed, scaled and flipped."""

from __future__ import annotations

import json
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import SMALL_SHARDS, make_raw, make_varied_raw, pack
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from test_readers_scaled import whole, windowed
from test_readers_volumes import build, make_tiff

from readers import RequestError, SegDataset, SlidingWindows, open_dataset, stitch_all
from readers.contract.tiles import tile_starts
from readers.crop import scaled_sides
from readers.window_order import WindowOrder, WindowPass

pytestmark = pytest.mark.usefixtures("in_process")
SIZES = [(20, 30), (41, 22), (8, 9), (33, 47), (64, 10), (17, 17), (25, 60)]
Parts = list[tuple[torch.Tensor, ...]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("windows")
    pack(make_raw(path / "raw" / "fixed", {"val": 7}).path, path / "fixed", "--labels", "index", *SMALL_SHARDS)
    varied = make_varied_raw(path / "raw" / "varied", {"val": SIZES}).path
    pack(varied, path / "native", "--labels", "index", "--size", "native", *SMALL_SHARDS)
    tiles = [each for field in ("image", "label") for each in ("--encode", f"{field}=tiles-zstd:16x16")]
    pack(varied, path / "tiled", "--labels", "onehot", "--size", "native", *tiles)
    build(make_tiff(path / "raw" / "volumes"), path / "volumes", "--labels", "index")
    return path


def opened(folder: Path, name: str) -> SegDataset:
    return open_dataset(folder / name, None if name == "volumes" else "val")


def each(loader: Any) -> list[tuple[str, tuple[torch.Tensor, ...]]]:
    """Return the key and the parts of each window."""
    return [(key, tuple(part[number] for part in parts)) for keys, *parts in loader for number, key in enumerate(keys)]


def same(one: Any, other: Any) -> bool:
    return len(one) == len(other) and all(
        key == same_key and all(torch.equal(part, same_part) for part, same_part in zip(parts, same_parts, strict=True))
        for (key, parts), (same_key, same_parts) in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("name", ["fixed", "native", "tiled", "volumes"])
def test_the_windows_are_those_of_each_row_in_order(folder: Path, name: str, threads: int) -> None:
    data = opened(folder, name)
    size = (2, 16, 13) if name == "volumes" else (16, 13)
    overlap = 1 if name == "volumes" else 5
    wanted = [(key, tuple(parts)) for row in range(len(data)) for key, parts in data.windows(row, size, overlap)]
    for batch_size in (1, 4, 9):
        loader = data.loader(batch_size, windows=SlidingWindows(size, overlap=overlap), threads=threads)
        found = each(loader)
        assert same(found, wanted)
        assert len(loader) == -(-len(wanted) // batch_size)
        assert same(each(loader), wanted), "every pass is the same"
    plain = [key for row in range(len(data)) for key, _ in data.windows(row, size)]
    assert [key for key, _ in each(data.loader(3, windows=size))] == plain


@pytest.mark.parametrize("name", ["fixed", "native"])
def test_ranks_have_whole_rows_and_every_window_once(folder: Path, name: str) -> None:
    data = opened(folder, name)
    windows = SlidingWindows((11, 12), overlap=4)
    wanted = each(data.loader(5, windows=windows))
    ranks = [each(data.loader(5, windows=windows, rank=rank, world_size=3)) for rank in range(3)]
    for rank, found in enumerate(ranks):
        rows = {key.partition("@")[0] for key, _ in found}
        assert rows == {data.key(row) for row in range(rank, len(data), 3)}
        assert [key for key, _ in found] == [key for key, _ in wanted if key.partition("@")[0] in rows]
    assert same(
        sorted((part for found in ranks for part in found), key=lambda part: part[0]),
        sorted(wanted, key=lambda part: part[0]),
    )


@pytest.mark.parametrize("name", ["fixed", "native"])
def test_a_loader_is_resumed_after_every_batch_also_with_another_batch_size(folder: Path, name: str) -> None:
    data = opened(folder, name)
    options: Any = {"windows": SlidingWindows((16, 16), overlap=3, scale=0.8, flip=True), "rank": 1, "world_size": 2}
    loader = data.loader(3, threads=4, **options)
    wanted, states = each(loader), []
    loader = data.loader(3, **options)
    states.append(loader.state_dict())
    for _ in loader:
        states.append(loader.state_dict())
    for step, state in enumerate(states):
        for size in (3, 5):
            resumed = data.loader(size, **options)
            resumed.load_state_dict(json.loads(json.dumps(state)))
            resumed.set_epoch(0)
            assert same(each(resumed), wanted[3 * step :])
            assert same(each(resumed), wanted), "the next pass is whole"
    assert same(each(islice(loader, 2)), wanted[:6])
    assert same(each(loader), wanted), "a pass that was left early starts again"
    for wrong, words in (
        ({}, "not the state of an order of windows"),
        ({**states[1], "consumed": "3"}, "not the state of an order of windows"),
        ({**states[1], "consumed": -1}, "the state is of other windows"),
        ({**states[1], "world_size": 3}, "world_size is 2 here and was 3"),
        ({**states[1], "windows": "SlidingWindows(9x9)"}, "windows is SlidingWindows"),
    ):
        with pytest.raises(RequestError, match=words):
            loader.load_state_dict(wrong)


def scaled(pixels: torch.Tensor, to: tuple[int, ...], linear: bool) -> torch.Tensor:
    """Return a picture (…, H, W) of this size, by the rule of scaled crops."""
    planes = pixels.numpy().reshape(-1, *pixels.shape[-2:])
    sides = whole((planes.shape[1], planes.shape[2]), (to[0], to[1]))
    return torch.from_numpy(windowed(planes, sides, linear=linear)).reshape(*pixels.shape[:-2], *to)


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("scale", [0.5, 1, 1.3, 2])
@pytest.mark.parametrize("name", ["fixed", "native", "tiled"])
def test_stitched_windows_are_the_scaled_picture(folder: Path, name: str, scale: float, flip: bool) -> None:
    data = opened(folder, name)
    windows = SlidingWindows((16, 20), overlap=6, scale=scale, flip=flip)
    parts = each(data.loader(4, windows=windows, threads=2))
    for part, linear in ((0, True), (1, False)):
        pictures = dict(stitch_all((key, windows.undo(window[part])) for key, window in parts))
        assert list(pictures) == [data.key(row) for row in range(len(data))]
        for row, picture in enumerate(pictures.values()):
            to = tuple(scaled_sides(np.array(data.size(row)), np.array(float(scale))).tolist())
            wanted = data[row][part] if scale == 1 else scaled(data[row][part], to, linear)
            assert torch.equal(torch.from_numpy(picture), wanted)


def test_undo_mirrors_arrays_and_tensors_back() -> None:
    pixels = np.arange(24).reshape(2, 3, 4)
    for given_pixels in (pixels, torch.from_numpy(pixels)):
        assert np.array_equal(SlidingWindows((3, 4), flip=True).undo(given_pixels), pixels[..., ::-1])
        assert SlidingWindows((3, 4)).undo(given_pixels) is given_pixels


SIDE = st.integers(1, 90)


@given(
    st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=9),
    SIDE,
    SIDE,
    st.integers(0, 89),
    st.sampled_from([1, 0.37, 2.5]),
)
def test_windows_begin_where_tiles_do(
    sizes: list[tuple[int, int]], down: int, across: int, overlap: int, scale: float
) -> None:
    windows = SlidingWindows((down, across), overlap=overlap % min(down, across), scale=scale)
    rows = np.array(sizes, np.int64)
    counts = windows.counts(rows)
    for size, scaled_size, count in zip(rows, windows.scaled(rows).tolist(), counts.tolist(), strict=True):
        starts = [
            tile_starts(side, part, windows.overlap, shifted=False)
            for side, part in zip(scaled_size, windows.size, strict=True)
        ]
        found = windows.starts(np.repeat(size[None], count, 0), np.arange(count))
        assert [tuple(start) for start in found.tolist()] == list(product(*starts))


@given(st.lists(st.integers(1, 40), min_size=0, max_size=60), st.integers(1, 9), st.integers(1, 4), st.data())
def test_a_pass_can_begin_at_any_window(sides: list[int], size: int, world_size: int, data: st.DataObject) -> None:
    table = np.array([(side, 8) for side in sides], np.int64).reshape(-1, 2)
    windows, rank = SlidingWindows((8, 8)), data.draw(st.integers(0, world_size - 1))
    expected = [(row, number) for row in range(rank, len(sides), world_size) for number in range(-(-sides[row] // 8))]
    start = data.draw(st.integers(0, len(expected)))
    passed = WindowPass(len(sides), lambda rows: table[rows], windows, start, rank, world_size)
    batches = list(passed.batches(size))
    assert [
        pair for batch in batches for pair in zip(batch.rows.tolist(), batch.numbers.tolist(), strict=True)
    ] == expected[start:]
    assert (passed.count, passed.batch_count(size)) == (len(expected) - start, len(batches))
    assert all(len(batch.rows) == size for batch in batches[:-1])


def test_a_large_data_set_takes_no_memory() -> None:
    def sizes(rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.broadcast_to(np.array([100_000, 100_000]), (len(rows), 2))

    order = WindowOrder(10**12, sizes, SlidingWindows((512, 512), overlap=128), 3, 8)
    batch = next(order.begin().batches(16))
    assert batch.rows.tolist() == [3] * 16
    assert batch.numbers.tolist() == list(range(16))


@pytest.mark.parametrize("name", ["fixed", "tiled"])
def test_windows_travel_to_the_device_with_their_keys(folder: Path, name: str) -> None:
    data = opened(folder, name)
    options: Any = {"windows": SlidingWindows((16, 16)), "labels": "onehot"}
    mean, std = (torch.tensor(numbers)[:, None, None] for numbers in (data.mean, data.std))
    sent = data.loader(4, **options).to("cpu", normalize=True)
    for (keys, images, labels), (same_keys, stored, same_labels) in zip(sent, data.loader(4, **options), strict=True):
        assert keys == same_keys
        assert torch.allclose(images, (stored.float() / 255 - mean) / std, atol=1e-5)
        assert torch.equal(labels, same_labels)
    (keys, images, _), *_ = data.loader(4, output="numpy", **options)
    assert isinstance(images, np.ndarray)
    assert len(keys) == len(images) == 4
    only = open_dataset(folder / name, "val", fields=("image",))
    assert len(next(iter(only.loader(4, windows=(8, 8), drop_behind=True)))) == 2
    with pytest.raises(RequestError, match="leave it out"):
        data.loader(4, **options).to("cpu", augment=lambda *parts: parts)


@pytest.mark.parametrize("name", ["fixed", "native", "tiled", "volumes"])
def test_windows_are_normalised_while_they_are_read(folder: Path, name: str) -> None:
    rows, bands = opened(folder, name), 1 if name == "volumes" else 3
    normalize = ([0.4] * bands, [0.2] * bands)
    windows = SlidingWindows((4, 12, 12) if name == "volumes" else (12, 14), flip=True)
    ours = rows.loader(3, windows=windows, normalize=normalize, dtype=torch.float16)
    theirs = rows.loader(3, windows=windows).to("cpu", normalize=normalize, dtype=torch.float16)
    for (keys, images, labels), (same_keys, same_images, same_labels) in zip(ours, theirs, strict=True):
        assert keys == same_keys
        assert images.dtype == same_images.dtype
        assert torch.allclose(images, same_images, atol=0.01)
        assert torch.equal(labels, same_labels)


def test_other_options_are_refused_by_name(folder: Path) -> None:
    data, volumes = opened(folder, "fixed"), opened(folder, "volumes")
    refused: list[dict[str, Any]] = [
        {"shuffle": True},
        {"crop": (8, 8)},
        {"flip": True},
        {"partners": 1},
        {"pad": True},
        {"drop_last": True},
    ]
    for options in refused:
        with pytest.raises(RequestError, match=f"leave out {next(iter(options))}"):
            data.loader(2, windows=(8, 8), **options)
    for windows in [(8, 8, 8), (8,), 8, "8x8", (0, 8), (8.5, 8)]:
        with pytest.raises(RequestError, match=r"expected"):
            data.loader(2, windows=windows)  # type: ignore[arg-type]
    with pytest.raises(RequestError, match=r"the rows are volumes"):
        volumes.loader(2, windows=(8, 8))
    with pytest.raises(RequestError, match="scales pictures"):
        SlidingWindows((8, 8, 8), scale=2)
    for wrong in (
        {"overlap": 8},
        {"overlap": -1},
        {"overlap": 1.5},
        {"scale": 0},
        {"scale": float("nan")},
        {"scale": 65},
        {"scale": "2"},
        {"flip": "all"},
    ):
        with pytest.raises(RequestError, match=next(iter(wrong))):
            SlidingWindows((8, 8), **wrong)
    with pytest.raises(RequestError, match="batch_size=0"):
        data.loader(0, windows=(8, 8))
    with pytest.raises(RequestError, match="rank=2 of world_size=2"):
        data.loader(2, windows=(8, 8), rank=2, world_size=2)
