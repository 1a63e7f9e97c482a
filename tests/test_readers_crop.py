"""Crops: the same window of image and label, with ignored pixels outside of the picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from packer.bench.copy_loop import middle
from readers import CenterCrop, RandomCrop, RequestError
from readers.contract.tile_grid import index_of
from readers.crop import CropAndFlip
from readers.epoch import Run
from readers.windows import HowToCopy, overlap

SIDE = st.one_of(st.integers(1, 4), st.integers(1, 70))


@given(st.tuples(SIDE, SIDE), st.tuples(SIDE, SIDE), st.integers(0, 1000), st.sampled_from(["|u1", "<u2"]))
def test_a_random_crop_is_one_window_of_image_and_label(
    source: tuple[int, int], size: tuple[int, int], seed: int, dtype: str
) -> None:
    """Every pixel holds its own index, so a window shows which part of the picture it is."""
    height, width = source
    numbered = np.arange(1, height * width + 1, dtype=np.int32).reshape(source)
    torch.manual_seed(seed)
    image, label = RandomCrop(size, pad=-1)(
        torch.from_numpy(np.stack([numbered] * 3)), torch.from_numpy((numbered % 250).astype(dtype))
    )
    assert (image.shape, label.shape) == ((3, *size), size)
    inside = image[0].numpy() > 0
    ignored = np.iinfo(dtype).max
    assert np.array_equal(label.numpy(), np.where(inside, image[0].numpy() % 250, ignored))
    assert inside.sum() == min(height, size[0]) * min(width, size[1])
    rows, columns = np.nonzero(inside)
    steps = image[0].numpy()[inside] - image[0].numpy()[inside][0]
    assert np.array_equal(steps, (rows - rows[0]) * width + columns - columns[0])


def test_random_crops_reach_every_position() -> None:
    image, label = torch.arange(4).view(1, 1, 4).repeat(3, 1, 1), torch.zeros(1, 4, dtype=torch.uint8)
    crops = [RandomCrop((1, 3))(image, label)[0][0, 0].tolist() for _ in range(100)]
    assert {tuple(crop) for crop in crops} == {(0, 1, 2), (1, 2, 3)}
    padded = [RandomCrop((1, 6), pad=9)(image, label)[0][0, 0].tolist() for _ in range(100)]
    assert {tuple(crop) for crop in padded} == {(0, 1, 2, 3, 9, 9), (9, 0, 1, 2, 3, 9), (9, 9, 0, 1, 2, 3)}


def test_a_center_crop_drops_or_pads_the_odd_pixel_at_the_end() -> None:
    image, label = torch.arange(5).view(1, 1, 5), torch.arange(5, dtype=torch.uint8).view(1, 5)
    assert CenterCrop((1, 2))(image, label)[0].flatten().tolist() == [1, 2]
    assert CenterCrop((1, 8))(image, label)[1].flatten().tolist() == [255, 0, 1, 2, 3, 4, 255, 255]
    planes = torch.ones(4, 1, 5, dtype=torch.uint8)
    assert CenterCrop((2, 5), pad=7)(image, planes)[1].flatten(1).tolist() == [[1] * 5 + [0] * 5] * 4


def test_a_crop_has_no_more_memory_than_its_window() -> None:
    image, label = CenterCrop((2, 5))(torch.zeros(3, 100, 5), torch.zeros(100, 5, dtype=torch.uint8))
    assert (image.untyped_storage().nbytes(), label.untyped_storage().nbytes()) == (3 * 2 * 5 * 4, 2 * 5)


def test_impossible_crops_are_refused() -> None:
    sizes: tuple[Any, ...] = ((0, 3), (3,), (2, 3, 4, 5), 512, (3.5, 2), ("3", "3"), None)
    for size in sizes:
        with pytest.raises(RequestError, match="expected a height and a width"):
            RandomCrop(size)
    with pytest.raises(RequestError, match=r"torch\.int64.*crop first"):
        RandomCrop((2, 2))(torch.zeros(3, 4, 4), torch.zeros(4, 4, dtype=torch.int64))


@given(st.tuples(SIDE, SIDE), st.tuples(SIDE, SIDE))
def test_all_center_crops_are_the_same_window(source: tuple[int, int], size: tuple[int, int]) -> None:
    """The transform, the loader's windows, and the window that the bench copies."""
    pixels = np.arange(1, source[0] * source[1] + 1, dtype=np.int64).reshape(1, *source)
    image, _ = CenterCrop(size)(torch.from_numpy(pixels), torch.zeros(source, dtype=torch.uint8))
    crop = CropAndFlip.of(CenterCrop(size), flip=False)
    assert crop is not None
    windows, out = crop.windows(np.array([0]), [Run(0, 0, 1)], np.array([source])), np.empty((1, *size), np.int64)
    windows.copy(0, pixels.shape[-2:], lambda part: pixels[index_of(part)], out, HowToCopy(fill=0))
    assert np.array_equal(image.numpy(), out)
    assert np.array_equal(middle(pixels, size).ravel(), out[out > 0])


@given(SIDE, SIDE, st.integers(-80, 80))
def test_the_overlap_of_picture_and_window(side: int, size: int, start: int) -> None:
    inside = [line for line in range(side) if start <= line < start + size]
    if inside:
        part, window = overlap((side, 1), (size, 1), (start, 0))
        assert [*range(side)][part[1]] == inside
        assert [line - start for line in inside] == [*range(size)][window[1]]
