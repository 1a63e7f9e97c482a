"""Windows of scaled pictures: one rule, with and without the kernel, in the loader and as a transform."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from packer import Rows, build_pack
from readers import RandomCrop, open_dataset, scaled
from readers.contract.errors import RequestError
from readers.crop import CropAndFlip
from readers.epoch import Run
from readers.scaled import ScaledSide, scale_window

pytestmark = pytest.mark.usefixtures("in_process")
SIDE = st.integers(1, 60)
DTYPES = ("u1", "u2", "i2", "f2", "f4")
NEITHER = st.booleans()


def whole(size: tuple[int, int], to: tuple[int, int]) -> list[ScaledSide]:
    return [ScaledSide(side, scaled_side, 0, scaled_side) for side, scaled_side in zip(size, to, strict=True)]


def windowed(pixels: NDArray[Any], sides: list[ScaledSide], **options: Any) -> NDArray[Any]:
    """Return the window of a picture (C, H, W)."""
    down, across = sides
    out = np.empty((len(pixels), down.stop - down.start, across.stop - across.start), pixels.dtype)
    how = {"flip": False, "linear": True, "fill": None, **options}
    scale_window(pixels[:, down.part, across.part], sides, out, **how)
    return out


@st.composite
def scaled_side(draw: st.DrawFn) -> ScaledSide:
    side, to = draw(SIDE), draw(SIDE)
    start = draw(st.integers(0, to - 1))
    return ScaledSide(side, to, start, draw(st.integers(start + 1, to)))


@given(scaled_side(), scaled_side(), st.sampled_from(DTYPES), NEITHER, NEITHER, st.integers(0, 99))
def test_a_window_is_a_part_of_the_scaled_picture(
    down: ScaledSide, across: ScaledSide, dtype: str, linear: bool, flip: bool, seed: int
) -> None:
    """With the kernel and without it, mirrored or not."""
    pixels = np.random.default_rng(seed).integers(0, 256, (2, down.source, across.source)).astype(dtype)
    kernel, sides = scaled.KERNEL, [down, across]
    every = windowed(pixels, whole(pixels.shape[1:], (down.scaled, across.scaled)), linear=linear)
    expected = every[:, down.start : down.stop, across.start : across.stop]
    expected = expected[..., ::-1] if flip else expected
    assert np.array_equal(windowed(pixels, sides, linear=linear, flip=flip), expected)
    try:
        scaled.KERNEL = None
        assert np.array_equal(windowed(pixels, sides, linear=linear, flip=flip), expected)
    finally:
        scaled.KERNEL = kernel


@given(SIDE, SIDE, SIDE, SIDE, st.integers(0, 99))
def test_pictures_are_those_of_opencv_within_two(height: int, width: int, to: int, across: int, seed: int) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (1, height, width)).astype(np.uint8)
    theirs = cv2.resize(pixels[0].astype(np.float32), (across, to), interpolation=cv2.INTER_LINEAR)
    ours = windowed(pixels, whole((height, width), (to, across)))[0]
    assert np.abs(ours - theirs).max() < 2


@given(SIDE, SIDE, st.floats(-9, 9))
def test_a_picture_of_one_number_stays_one(height: int, width: int, number: float) -> None:
    for dtype in DTYPES:
        pixels = np.full((1, 7, 9), abs(number) * 3, dtype)
        assert (windowed(pixels, whole((7, 9), (height, width))) == pixels[0, 0, 0]).all()


def test_labels_have_the_nearest_pixel_of_the_packer() -> None:
    index = np.arange(10, dtype=np.uint8)[None, :, None] * np.ones((1, 1, 3), np.uint8)
    half = windowed(index, whole((10, 3), (5, 3)), linear=False)
    assert half[0, :, 0].tolist() == [(2 * i + 1) * 10 // 10 for i in range(5)]
    assert windowed(index, whole((10, 3), (20, 3)), linear=False)[0, :, 0].tolist() == [i // 2 for i in range(20)]


@pytest.mark.parametrize("fill", [np.nan, 0])
def test_numbers_without_data_change_no_others(fill: float) -> None:
    pixels = np.full((1, 8, 8), 5, np.float32)
    pixels[0, :4] = fill
    out = windowed(pixels, whole((8, 8), (12, 12)), fill=fill)
    assert (out[0, :6] == fill).all() or np.isnan(out[0, :6]).all()
    assert (out[0, 6:] == 5).all()


def size_of(key: str) -> tuple[int, int]:
    return 40 + 3 * int(key), 70 - 2 * int(key)


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of several sizes, whose label is a sixteenth of their gray."""
    dice = np.random.default_rng(4)

    def load(key: str) -> dict[str, NDArray[Any]]:
        height, width = size_of(key)
        gray = cv2.resize(dice.integers(0, 256, (5, 6), np.uint8), (width, height), interpolation=cv2.INTER_NEAREST)
        return {"image": np.repeat(gray[..., None], 3, 2), "label": gray // 16}

    out = tmp_path_factory.mktemp("scaled") / "out"
    rows = Rows([f"{number:02}" for number in range(20)], load, sizes=size_of)
    build_pack(rows, out, classes="16", size="native", labels="index", workers=1)
    return out


CROP = RandomCrop((24, 32), scale=(0.5, 2.0))


def test_a_batch_is_the_same_for_threads_and_ranks_and_after_a_stop(pack: Path) -> None:
    def batches(**options: Any) -> list[list[Any]]:
        rows = open_dataset(pack, label="index")
        loader = rows.loader(4, shuffle=True, seed=3, crop=CROP, flip=True, output="numpy", **options)
        return [[array.copy() for array in batch] for batch in loader]

    first, others = batches(threads=1), batches(threads=4)
    for ours, theirs in zip(first, others, strict=True):
        assert all(np.array_equal(one, two) for one, two in zip(ours, theirs, strict=True))
    loader = open_dataset(pack, label="index").loader(4, shuffle=True, seed=3, crop=CROP, flip=True, output="numpy")
    passing = iter(loader)
    next(passing), next(passing)
    again = open_dataset(pack, label="index").loader(4, shuffle=True, seed=3, crop=CROP, flip=True, output="numpy")
    again.load_state_dict(loader.state_dict())
    assert np.array_equal(next(iter(again))[0], first[2][0])
    ranks = [batches(rank=rank, world_size=2) for rank in range(2)]
    rows = sorted(image.tobytes() for batch in first for image in batch[0])
    assert rows == sorted(image.tobytes() for batch in [*ranks[0], *ranks[1]] for image in batch[0])


def test_fields_stay_together_and_labels_have_only_their_classes(pack: Path) -> None:
    rows = open_dataset(pack, label="index")
    known = {number for index in range(len(rows)) for number in np.unique(np.asarray(rows[index].label)).tolist()}
    apart = seen = 0
    for images, labels in rows.loader(4, shuffle=True, seed=5, crop=CROP, flip=True, output="numpy"):
        assert set(np.unique(labels).tolist()) <= {*known, 255}
        inside = labels != 255
        apart += int((np.abs(images[:, 0].astype(int) // 16 - labels)[inside] > 0).sum())
        seen += int(inside.sum())
        assert (images[:, 0][~inside] == 0).all()
    assert seen > 5000
    assert apart < seen / 4  # at edges a picture has numbers between two


def test_scales_are_spread_evenly() -> None:
    cut = CropAndFlip.of(RandomCrop((1, 1), scale=(0.5, 2.0)), flip=False)
    assert cut is not None
    windows = cut.windows(np.arange(4000), [Run(0, 0, 4000)], np.full((4000, 2), 10_000))
    scales = np.array(windows.scaled)[:, 0] / 10_000
    assert (scales.min(), scales.max()) == pytest.approx((0.5, 2.0), abs=0.01)
    assert np.abs(np.histogram(scales, 10)[0] - 400).max() < 100


@pytest.mark.parametrize("encode", ["raw", "zstd", "tiles:16", "tiles-zstd:16"])
def test_encoded_rows_have_the_same_windows(encode: str, pack: Path, tmp_path: Path) -> None:
    build_pack(pack, tmp_path / "out", encode=[f"image={encode}", f"label={encode}"], workers=1)
    loaders = (open_dataset(out, label="index").loader(5, crop=CROP, seed=1) for out in (pack, tmp_path / "out"))
    for ours, theirs in zip(*loaders, strict=True):
        assert torch.equal(ours[0], theirs[0])
        assert torch.equal(ours[1], theirs[1])


@pytest.mark.parametrize("form", ["index", "onehot"])
def test_a_transform_has_the_same_pixels(form: Any, pack: Path) -> None:
    plain, cut = open_dataset(pack, label=form), open_dataset(pack, label=form, transform=CROP)
    for row in range(len(plain)):
        torch.manual_seed(row)
        image, label = CROP(*plain[row])
        torch.manual_seed(row)
        theirs = cut[row]
        assert image.shape == (3, 24, 32)
        assert torch.equal(image, theirs[0])
        assert torch.equal(label, theirs[1])


@pytest.mark.parametrize("scale", [(0, 1), (2, 1), (1, 100), (1,), (-1, 1)])
def test_impossible_scales_are_refused(scale: Any) -> None:
    with pytest.raises(RequestError, match="expected two numbers above 0"):
        RandomCrop((8, 8), scale=scale)
    with pytest.raises(RequestError, match="is a window of volumes"):
        RandomCrop((8, 8, 8), scale=(0.5, 2))
