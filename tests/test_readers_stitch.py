"""Stitching gives each picture back bit for bit if its tiles agree, and a mean or the nearest tile if they do not."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from conftest import make_raw, pack
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from readers import open_dataset, stitch, stitch_all, stitch_stripes
from readers.band import Weight
from readers.contract.errors import RequestError
from readers.contract.tiles import tile_starts

WEIGHTS: tuple[Weight, ...] = ("clip", "average", "gaussian")
SEEDS = st.integers(0, 99)
Parts = list[tuple[str, NDArray[Any]]]


class Cut(NamedTuple):
    """The tiles of a picture or a volume."""

    size: tuple[int, ...]
    tile: tuple[int, ...]
    overlap: int
    shifted: bool

    @property
    def origins(self) -> list[tuple[int, ...]]:
        sides = zip(self.size, self.tile, strict=True)
        return list(product(*(tile_starts(side, part, self.overlap, self.shifted) for side, part in sides)))

    def area(self, origin: tuple[int, ...]) -> Any:
        return (..., *(slice(at, at + side) for at, side in zip(origin, self.tile, strict=True)))

    def key(self, origin: tuple[int, ...], name: str = "a/b@c") -> str:
        return f"{name}@{'+'.join(f'{at:06d}' for at in origin)}of{'x'.join(map(str, self.size))}"

    def tiles(self, picture: NDArray[Any], name: str = "a/b@c") -> Parts:
        """Cut a picture whose sides come last; beyond it a tile has the bits of all ones."""
        beyond = [(0, 0)] * (picture.ndim - len(self.tile)) + [(0, side) for side in self.tile]
        bits = np.pad(picture.view(f"u{picture.itemsize}"), beyond, constant_values=2 ** (8 * picture.itemsize) - 1)
        return [(self.key(origin, name), bits[self.area(origin)].view(picture.dtype)) for origin in self.origins]


@st.composite
def cuts(draw: st.DrawFn) -> Cut:
    axes = draw(st.integers(2, 3))
    size, tile = (tuple(draw(st.lists(st.integers(1, 40 // axes), min_size=axes, max_size=axes))) for _ in range(2))
    return Cut(size, tile, draw(st.integers(0, min(tile) - 1)), draw(st.booleans()))


@settings(max_examples=40)
@given(cuts(), st.sampled_from(["u1", "i1", "u2", "i4", "u4", "f4", "f8"]), st.sampled_from([(), (2,)]), SEEDS)
def test_tiles_that_agree_are_the_picture_bit_for_bit(cut: Cut, dtype: str, lead: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 256, (*lead, *cut.size, np.dtype(dtype).itemsize), np.uint8)
    picture = bits.view(dtype)[..., 0]  # any numbers of the dtype
    if dtype[0] == "f":
        for number in (-0.0, -np.inf, np.nan):
            picture[rng.random(picture.shape) < 0.2] = number
    for weight in WEIGHTS:
        found = stitch(cut.tiles(picture), weight=weight)
        assert (found.dtype, found.shape) == (picture.dtype, picture.shape)
        assert found.tobytes() == picture.tobytes(), weight


@pytest.mark.parametrize("dtype", ["?", "i8", "u8", "f2", "c8", "S3"])
def test_clip_takes_anything(dtype: str) -> None:
    numbers = np.arange(35).reshape(5, 7)
    parts = [(key, tile.astype(dtype)) for key, tile in Cut(numbers.shape, (3, 4), 2, True).tiles(numbers)]
    assert stitch(parts).tobytes() == numbers.astype(dtype).tobytes()


@settings(max_examples=40)
@given(cuts())
def test_clip_takes_each_pixel_from_the_tile_whose_middle_is_nearest(cut: Cut) -> None:
    parts = [(cut.key(origin), np.full(cut.tile, number)) for number, origin in enumerate(cut.origins)]
    middles = np.array(cut.origins) + np.array(cut.tile) / 2
    pixels = np.stack(np.meshgrid(*map(np.arange, cut.size), indexing="ij"), -1) + 0.5
    distances = ((pixels[..., None, :] - middles) ** 2).sum(-1)
    assert np.array_equal(stitch(parts), distances.argmin(-1))


@settings(max_examples=40)
@given(cuts(), st.sampled_from([("f4", 1e-6), ("f8", 1e-14)]), SEEDS)
def test_a_mean_is_the_sum_over_the_weights(cut: Cut, precision: tuple[str, float], seed: int) -> None:
    rng, (dtype, error) = np.random.default_rng(seed), precision
    parts = [(cut.key(origin), rng.random((3, *cut.tile)).astype(dtype)) for origin in cut.origins]
    bells = [np.exp(-0.5 * ((np.arange(side) + 0.5 - side / 2) / (side / 8)) ** 2) for side in cut.tile]
    bell = np.prod(np.stack(np.meshgrid(*bells, indexing="ij")), axis=0)
    kinds: list[tuple[Weight, NDArray[Any]]] = [("average", np.ones(cut.tile)), ("gaussian", np.maximum(bell, 1e-3))]
    for weight, weights in kinds:
        total, sums = (np.zeros((*lead, *np.add(cut.size, cut.tile))) for lead in ((3,), ()))
        for origin, (_, pixels) in zip(cut.origins, parts, strict=True):
            total[cut.area(origin)] += pixels * weights
            sums[cut.area(origin)] += weights
        inside: Any = (..., *map(slice, cut.size))
        found = stitch(parts, weight=weight)
        assert found.dtype == dtype
        assert np.abs(found - total[inside] / sums[inside]).max() < error


def test_means_of_whole_numbers_are_rounded() -> None:
    parts = [("a@0+0of1x3", np.array([[1, 255]], np.uint8)), ("a@0+1of1x3", np.array([[252, 3]], np.uint8))]
    assert stitch(parts, weight="average").tolist() == [[1, 254, 3]]
    assert stitch([(key, tile.astype("f2")) for key, tile in parts], weight="average").tolist() == [[1, 253.5, 3]]


def test_pictures_follow_each_other() -> None:
    pictures = {name: np.random.default_rng(0).random((2, 9, side)) for name, side in (("b", 8), ("a", 5), ("c", 8))}
    parts = [
        part
        for name, picture in pictures.items()
        for part in Cut(picture.shape[1:], (4, 4), 1, False).tiles(picture, name)
    ]
    found = list(stitch_all(iter(parts), weight="gaussian"))
    assert [name for name, _ in found] == ["b", "a", "c"]
    assert all(np.array_equal(pixels, pictures[name]) for name, pixels in found)
    assert not [*stitch_all([]), *stitch_stripes([])]


def test_stripes_need_the_memory_of_the_tiles_in_a_row(tmp_path: Path) -> None:
    tile, rows = np.ones((4, 16, 64), np.float32), 4_000

    def predictions() -> Iterator[tuple[str, NDArray[Any]]]:
        for top in range(0, rows - 8, 8):
            yield f"a@{top:06d}+000000of{rows}x64", tile

    labels = np.lib.format.open_memmap(tmp_path / "labels.npy", "w+", np.uint8, (rows, 64))
    tracemalloc.start()
    try:
        for stripe in stitch_stripes(predictions(), weight="gaussian"):
            labels[stripe.area] = stripe.pixels.argmax(0) + 1
        assert tracemalloc.get_traced_memory()[1] < 500_000  # the scores have 4 MB
    finally:
        tracemalloc.stop()
    assert (labels == 1).all()


TILE = np.zeros((2, 2))
ERRORS = {
    "'a@0\\+0of2x4' comes twice": [("a@0+0of2x4", TILE), ("a@0+0of2x4", TILE)],
    "'a@0\\+0of2x4' comes after 'a@0\\+2of2x4'": [("a@0+2of2x4", TILE), ("a@0+0of2x4", TILE)],
    "'a': tiles are missing, 4 pixels .* rows 0 to 1, last came 'a@0\\+2of4x4'": [
        ("a@0+2of4x4", TILE),
        ("a@2+0of4x4", TILE),
    ],
    "'a': tiles are missing, 8 pixels .* rows 2 to 3": [
        ("a@0+0of4x4", TILE),
        ("a@0+2of4x4", TILE),
        ("b@0+0of2x2", TILE),
    ],
    "'a@0\\+0of2x2' comes after tiles of other": [("a@0+0of2x2", TILE), ("b@0+0of2x2", TILE), ("a@0+0of2x2", TILE)],
    "'a@0\\+2of2x5' is a tile of another picture": [("a@0+0of2x4", TILE), ("a@0+2of2x5", TILE)],
    "'a@0\\+2of2x4' has \\(1, 2, 2\\) numbers": [("a@0+0of2x4", TILE), ("a@0+2of2x4", TILE[None])],
    "'a@0\\+2of2x4' has \\(2, 2\\) numbers of int8": [("a@0+0of2x4", TILE), ("a@0+2of2x4", TILE.astype("i1"))],
    "'a@0\\+4of2x4' begins outside": [("a@0+4of2x4", TILE)],
    "'a@0\\+0\\+0of2x2x2': \\(2, 2\\) has no pixels for 3 sides": [("a@0+0+0of2x2x2", TILE)],
    "'a@0\\+0\\+0of2x2' is not the key of a tile": [("a@0+0+0of2x2", TILE)],
    "names a picture of 99999x99999 pixels; stitch_stripes": [("a@0+0of99999x99999", TILE)],
}


@pytest.mark.parametrize("message", ERRORS)
def test_tiles_that_do_not_fit_are_named(message: str) -> None:
    with pytest.raises(RequestError, match=message):
        list(stitch_all(ERRORS[message]))


@pytest.mark.parametrize("dtype", ["?", "i8", "u8"])
def test_numbers_without_an_exact_mean_are_refused(dtype: str) -> None:
    with pytest.raises(RequestError, match='no exact mean; use weight="clip"'):
        stitch([("a@0+0of2x2", TILE.astype(dtype))], weight="average")


def test_another_weight_is_refused() -> None:
    with pytest.raises(RequestError, match="weight='mean' is none of"):
        stitch([("a@0+0of2x2", TILE)], weight="mean")  # type: ignore[arg-type]


@pytest.mark.parametrize("weight", WEIGHTS)
def test_rows_without_tiles_are_filled(weight: Weight) -> None:
    parts = [("a@1+1of9x4", np.full((2, 2), 7, np.uint8)), ("a@7+2of9x4", np.full((2, 2), 8, np.uint8))]
    wanted = np.full((9, 4), 255)
    wanted[1:3, 1:3], wanted[7:, 2:] = 7, 8
    assert np.array_equal(stitch(parts, 255, weight), wanted)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("edge", ["pad", "shift"])
def test_what_a_loader_gives_is_stitched(tmp_path: Path, edge: str) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 3}, height=30, width=50)
    options = ("--fit", "tile", "--overlap", 5, "--edge", edge, "--labels", "index", "--shard-size", "9KB")
    train = open_dataset(pack(raw.path, tmp_path / "out", "--size", "16x16", *options), label="index")
    for weight in WEIGHTS:
        for field, wanted in ((0, raw.images), (1, raw.labels)):
            rows = (row for batch in train.loader(5) for row in batch[field])
            found = dict(stitch_all(zip(map(train.key, range(len(train))), rows, strict=True), weight=weight))
            assert found.keys() == {key for _, key in wanted}
            for key, pixels in found.items():
                assert np.array_equal(pixels if field else pixels.transpose(1, 2, 0), wanted["train", key])


def test_tensors_with_gradients_are_taken() -> None:
    tensor = torch.ones(1, 2, 2, requires_grad=True)
    assert stitch([("a@0+0of2x2", tensor)], weight="average").tolist() == [[[1, 1], [1, 1]]]
