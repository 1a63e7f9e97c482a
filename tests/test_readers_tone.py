"""The tone of pictures while they are read: one rule, with and without the kernels, in every way to read a window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from packer import Rows, build_pack
from readers import Augmentation, Colour, RandomCrop, open_dataset, scaled, tone, windows
from readers.colour import GRAY
from readers.contract.errors import RequestError
from readers.contract.fields import picture_field
from readers.epoch import Run
from readers.tone import BatchTones, FloatName, Tone, to_bfloat16
from readers.windows import BatchWindows, HowToCopy

pytestmark = pytest.mark.usefixtures("in_process")
NAMES: tuple[FloatName | None, ...] = (None, "float32", "float16", "bfloat16")


@contextmanager
def without_kernels() -> Iterator[None]:
    kept = tone.KERNEL, scaled.KERNEL, windows.KERNEL, windows.SWAP_KERNEL
    tone.KERNEL = scaled.KERNEL = windows.KERNEL = windows.SWAP_KERNEL = None
    try:
        yield
    finally:
        tone.KERNEL, scaled.KERNEL, windows.KERNEL, windows.SWAP_KERNEL = kept


def tones_of(dice: np.random.Generator, channels: int, name: FloatName | None, has_colour: bool) -> BatchTones:
    field = picture_field("image", "|u1", None, ("band",) * channels)
    mean_std = None
    if name is not None and dice.random() < 0.5:
        mean_std = tuple(dice.random(channels)), tuple(dice.random(channels) / 2 + 0.001)
    mixes = 0.4 if channels == len(GRAY) else 0
    colour = Colour(0.5, 0.5, mixes, channels=0.2, gray=mixes / 2) if has_colour else None
    weights = None if colour is None else colour.drawn(dice.random((4 + channels, 1)), channels)
    return BatchTones(Tone(field, colour, mean_std, name), weights)


def a_window(seed: int, name: FloatName | None, has_colour: bool) -> Callable[[], NDArray[Any]]:
    """Return a function that reads a random window, perhaps scaled, turned and partly outside of its picture."""
    dice = np.random.default_rng(seed)
    channels, square = int(dice.choice([1, 2, 3, 3])), int(dice.integers(1, 80))
    size = (square, square) if dice.random() < 0.5 else (int(dice.integers(1, 40)), square)
    sides = (int(dice.integers(1, 90)), int(dice.integers(1, 120)))
    scales = [[max(1, round(side * dice.uniform(0.3, 2.5))) for side in sides]] if dice.random() < 0.6 else None
    swaps = [bool(dice.integers(2))] if size[0] == size[1] else None
    cut = BatchWindows(size, 7, [dice.integers(-20, 50, 2).tolist()], [int(dice.integers(4))], scales, swaps)
    pixels = dice.integers(0, 256, (channels, *sides)).astype(np.uint8)
    tones = tones_of(dice, channels, name, has_colour)

    def read() -> NDArray[Any]:
        out = np.empty((channels, *size), tones.tone.dtype)
        how = HowToCopy(is_linear=True, tone=tones.of_row(0))
        cut.copy(0, sides, lambda part: pixels[(slice(None), *part)], out, how)
        return out

    return read


@pytest.mark.parametrize("has_colour", [False, True])
@pytest.mark.parametrize("name", NAMES)
@given(st.integers(0, 1 << 32))
def test_the_kernels_and_numpy_give_the_same_bytes(name: FloatName | None, has_colour: bool, seed: int) -> None:
    read = a_window(seed, name, has_colour)
    ours = read()
    with without_kernels():
        assert ours.tobytes() == read().tobytes()


def exactly(pixels: NDArray[np.uint8], factors: Sequence[float]) -> NDArray[np.float64]:
    """Return what torchvision's functions of brightness, contrast and saturation do, with the middle 0.5."""
    brightness, contrast, saturation, *gains = factors
    numbers = pixels / 255 * np.array(gains)[:, None, None] * brightness
    numbers = contrast * numbers + (1 - contrast) * 0.5
    gray = np.tensordot(np.array(GRAY), numbers, 1)
    exact: NDArray[np.float64] = (255 * (saturation * numbers + (1 - saturation) * gray)).clip(0, 255)
    return exact


@given(st.integers(0, 1 << 32))
def test_colours_are_those_of_exact_sums_within_one(seed: int) -> None:
    dice = np.random.default_rng(seed)
    pixels = dice.integers(0, 256, (3, 9, 70)).astype(np.uint8)
    colour, drawn = Colour(0.4, 0.4, 0.4, channels=0.1), dice.random((7, 1))
    tones = BatchTones(Tone(picture_field("image", "|u1", None), colour), colour.drawn(drawn, 3))
    out = np.empty_like(pixels)
    tones.of_row(0)(out, pixels)
    ranges = [(0.6, 1.4)] * 3 + [(0.9, 1.1)] * 3
    factors = [low + (high - low) * n for (low, high), n in zip(ranges, np.delete(drawn[:, 0], 3), strict=True)]
    assert np.abs(out - exactly(pixels, factors)).max() < 1


def test_without_colours_a_byte_stays_what_it_is() -> None:
    pixels = np.arange(256, dtype=np.uint8).reshape(1, 4, 64)
    field = picture_field("image", "|u1", None, ("gray",))
    out = np.empty(pixels.shape, np.float32)
    BatchTones(Tone(field, None, None, "float32"), None).of_row(0)(out, pixels)
    assert np.abs(out * 255 - pixels).max() < 1e-4
    neutral = BatchTones(Tone(field, Colour()), Colour().drawn(np.full((5, 1), 0.5), 1))
    same = np.empty_like(pixels)
    neutral.of_row(0)(same, pixels)
    assert np.array_equal(same, pixels)


@given(st.lists(st.floats(width=32), min_size=1, max_size=20))
def test_bfloat16_is_that_of_pytorch(numbers: list[float]) -> None:
    array = np.array(numbers, np.float32)
    theirs = torch.from_numpy(array).bfloat16()
    ours = torch.from_numpy(to_bfloat16(array)).view(torch.bfloat16)
    assert torch.equal(ours.nan_to_num(), theirs.nan_to_num())
    assert torch.equal(ours.isnan(), theirs.isnan())


def packed(tmp: Path, dtype: str = "u1", bands: int = 3, **options: Any) -> Path:
    """Return a pack of pictures whose label is the upper half of the first band."""
    dice = np.random.default_rng(7)

    def load(key: str) -> dict[str, NDArray[Any]]:
        gray = np.repeat(np.repeat(dice.integers(0, 200, (6, 8, bands)), 8, 0), 8, 1).astype(dtype)
        return {"image": gray, "label": (gray[..., 0] >= 100).astype(np.uint8)}

    rows = Rows([f"{number:02}" for number in range(12)], load)
    build_pack(rows, tmp / "out", classes="2", labels="index", workers=1, **{"bands": "all", **options})
    return tmp / "out"


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed(tmp_path_factory.mktemp("tone"))


COLOUR = Colour(brightness=0.3, contrast=0.3, saturation=0.3, gray=0.2)
CROP = RandomCrop((24, 24), scale=(0.5, 2.0))


@pytest.mark.parametrize("crop", [None, (24, 24), (60, 24), CROP])
@pytest.mark.parametrize("turn", [False, True])
def test_a_batch_is_the_plain_batch_with_its_tones(pack: Path, crop: Any, turn: bool) -> None:
    """Also where windows are padded, and of one channel as of all."""
    rows = open_dataset(pack, label="index")
    if turn and crop in (None, (60, 24)):
        with pytest.raises(RequestError, match="quarter turns need squares"):
            rows.loader(4, crop=crop, turn=True)
        return
    options: dict[str, Any] = {"shuffle": True, "seed": 3, "crop": crop, "flip": "all", "turn": turn, "output": "numpy"}
    loader = rows.loader(4, colour=COLOUR, normalize=True, dtype=torch.float16, **options)
    made = loader._batches.tone
    assert made is not None
    assert made.mean_std is not None
    for batch, (images, labels), (plain, same) in zip(
        loader.order.coming().batches(4), loader, rows.loader(4, **options), strict=True
    ):
        assert images.dtype == np.float16
        assert np.array_equal(labels, same)
        tones = made.of_batch(batch.rows, batch.runs)
        expected = np.empty(plain.shape, np.float16)
        for target, picture in enumerate(plain):
            tones.of_row(target)(expected[target], picture)
        assert np.array_equal(images, expected)


def test_numbers_are_those_that_the_device_makes(pack: Path) -> None:
    rows = open_dataset(pack, label="index")
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        ours = rows.loader(4, crop=(24, 24), normalize=True, dtype=dtype)
        theirs = rows.loader(4, crop=(24, 24)).to("cpu", normalize=True, dtype=dtype)
        for (one, _), (two, _) in zip(ours, theirs, strict=True):
            assert one.dtype == two.dtype == dtype
            assert torch.allclose(
                one.float(), two.float(), rtol=2**-7 if dtype == torch.bfloat16 else 2**-10, atol=1e-5
            )


def test_the_same_batches_for_threads_ranks_and_after_a_stop(pack: Path) -> None:
    def loader(**options: Any) -> Any:
        rows = open_dataset(pack, label="index")
        return rows.loader(3, shuffle=True, seed=5, crop=CROP, flip=True, colour=COLOUR, output="numpy", **options)

    def images(batches: Any) -> list[bytes]:
        return [image.tobytes() for batch in batches for image in batch[0]]

    alone = images(loader(threads=1))
    assert images(loader(threads=4)) == alone
    ranks = [*images(loader(rank=0, world_size=2)), *images(loader(rank=1, world_size=2))]
    assert sorted(ranks) == sorted(alone)
    begun = loader()
    passing = iter(begun)
    next(passing)
    again = loader()
    again.load_state_dict(begun.state_dict())
    assert images(again) == alone[3:]


def test_other_pictures_count_from_0_to_1(tmp_path: Path) -> None:
    rows = open_dataset(packed(tmp_path, "u2", 2), label="index")
    images = next(iter(rows.loader(4, crop=(24, 24), output="numpy")))[0]
    numbers = next(iter(rows.loader(4, crop=(24, 24), dtype=torch.float32, output="numpy")))[0]
    low, high = rows.fields[0].range or (0, 1)
    assert np.allclose(numbers, (images - low) / (high - low), atol=1e-6)
    brighter = next(iter(rows.loader(4, crop=(24, 24), colour=Colour((2.0, 2.0)), output="numpy")))[0]
    assert brighter.dtype == images.dtype
    assert np.abs(brighter - 2.0 * images).max() <= 1


@pytest.mark.parametrize(("dtype", "fill"), [("|u1", 0), ("<f4", "nan"), ("<u2", 9)])
def test_pixels_without_data_stay_so_and_are_the_mean(dtype: str, fill: float | str) -> None:
    field = replace(picture_field("image", dtype, None), fill=fill, no_data=True)
    pixels = np.random.default_rng(2).integers(0, 3, (3, 8, 40)).astype(dtype)
    missing = pixels == 0
    pixels = pixels / np.float32(10) if dtype == "<f4" else pixels
    pixels[missing] = float(fill)
    bright, normal = np.empty_like(pixels), np.empty(pixels.shape, np.float32)
    colour = Colour((3.0, 3.0))
    weights = colour.drawn(np.full((7, 1), 0.5), 3)
    BatchTones(Tone(field, colour), weights).of_row(0)(bright, pixels)
    BatchTones(Tone(field, colour, ((0.5,) * 3, (0.5,) * 3), "float32"), weights).of_row(0)(normal, pixels)
    assert np.array_equal(bright[missing], pixels[missing], equal_nan=True)
    assert np.allclose(bright[~missing], 3.0 * pixels[~missing])
    assert (normal[missing] == 0).all()
    assert (normal[~missing] != 0).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"colour": Colour(saturation=0.3)}, "saturation and gray need red, green and blue"),
        ({"normalize": ((0.5,), (0.5,))}, "expected 2 numbers"),
        ({"normalize": ((0.5, 0.5), (0.5, 0.0))}, "deviations above 0"),
        ({"normalize": (0.5, 0.5)}, "a number for each channel"),
        ({"normalize": "each"}, "expected True or"),
        ({"colour": 0.3}, r"such as Colour\(brightness=0.3\)"),
        ({"dtype": torch.int32}, "expected torch.float32"),
        ({"dtype": torch.bfloat16, "output": "numpy"}, "NumPy has no such numbers"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    rows = open_dataset(packed(tmp_path, bands=2), label="index")
    with pytest.raises(RequestError, match=words):
        rows.loader(4, crop=(8, 8), **options)


def test_wrong_factors_are_refused() -> None:
    wrong: list[Any] = [-1, float("nan"), "much", (0.5, 1, 1.5)]
    for brightness in wrong:
        with pytest.raises(RequestError, match="expected a number from 0 on"):
            Colour(brightness=brightness)
    with pytest.raises(RequestError, match="less than 4"):
        Colour(2, 2)
    with pytest.raises(RequestError, match="from 0 to 1"):
        Colour(gray=2)


def test_factors_are_spread_over_their_range() -> None:
    weights = Colour(brightness=(0.5, 1.5), gray=0.25).weights(np.arange(4000), [Run(1, 0, 4000)], 3)
    grays = weights[:, 0] == 0
    assert 0.22 < grays.mean() < 0.28
    brightness = np.where(grays, weights[:, 3:6].sum(1), weights[:, 0])
    assert brightness.min() >= 0.5
    assert brightness.max() <= 1.5
    assert np.histogram(brightness, 10, (0.5, 1.5))[0].min() > 300


@pytest.mark.parametrize("dtype", [None, torch.bfloat16, torch.float16])
def test_a_transform_gives_the_samples_of_a_loader(
    pack: Path, dtype: torch.dtype | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same random numbers make the same sample; PyTorch's seed decides them."""
    given: dict[str, Any] = {
        "crop": CROP,
        "flip": "all",
        "turn": True,
        "colour": COLOUR,
        "normalize": dtype is not None,
    }
    rows = open_dataset(pack, label="index")
    samples = open_dataset(pack, label="index", transform=Augmentation(dtype=dtype, **given))
    torch.manual_seed(3)
    first = [sample.image.clone() for sample in samples]
    torch.manual_seed(3)
    assert all(torch.equal(one, sample.image) for one, sample in zip(first, samples, strict=True))
    assert not torch.equal(first[0], samples[0].image)
    monkeypatch.setattr(torch, "randint", lambda *_: torch.tensor(5))
    ours = samples[0]
    image, label = next(iter(rows.loader(1, seed=5, dtype=dtype, **given)))
    assert torch.equal(ours.image, image[0])
    assert torch.equal(ours.label, label[0])
    assert ours.image.dtype == (dtype or torch.uint8)
    monkeypatch.undo()  # PyTorch 2.3 calls it when it sends a tensor
    workers = torch.utils.data.DataLoader(samples, batch_size=4, num_workers=1)
    assert sum(len(images) for images, _ in workers) == len(samples)


def test_a_transform_that_draws_by_classes_is_refused(pack: Path) -> None:
    for transform in (RandomCrop((8, 8), foreground=0.5), Augmentation(crop=RandomCrop((8, 8), most=0.5))):
        with pytest.raises(RequestError, match="use loader"):
            open_dataset(pack, label="index", transform=transform)[0]


def test_an_augmentation_inside_of_another_transform_is_refused(pack: Path) -> None:
    inner = Augmentation(crop=(8, 8))
    with pytest.raises(RequestError, match="not inside of another transform"):
        open_dataset(pack, label="index", transform=lambda *parts: inner(*parts))[0]
