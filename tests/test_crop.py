"""Crops: one window of image and label, the same of both, and what is ignored where there is no picture."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from readers import CenterCrop, RandomCrop, RequestError

SIDE = st.one_of(st.integers(1, 4), st.integers(1, 70))


@given(st.tuples(SIDE, SIDE), st.tuples(SIDE, SIDE), st.integers(0, 1000), st.sampled_from(["|u1", "<u2"]))
def test_a_random_crop_is_one_window_of_image_and_label(
    source: tuple[int, int], size: tuple[int, int], seed: int, dtype: str
) -> None:
    """Every pixel names its place, so that a window shows where it lay."""
    height, width = source
    places = np.arange(1, height * width + 1, dtype=np.int32).reshape(source)
    torch.manual_seed(seed)
    image, label = RandomCrop(size, pad=-1)(
        torch.from_numpy(np.stack([places] * 3)), torch.from_numpy((places % 250).astype(dtype))
    )
    assert (image.shape, label.shape) == ((3, *size), size)
    inside = image[0].numpy() > 0
    ignored = np.iinfo(dtype).max
    assert np.array_equal(label.numpy(), np.where(inside, image[0].numpy() % 250, ignored))
    assert inside.sum() == min(height, size[0]) * min(width, size[1])
    rows, columns = np.nonzero(inside)
    steps = image[0].numpy()[inside] - image[0].numpy()[inside][0]
    assert np.array_equal(steps, (rows - rows[0]) * width + columns - columns[0])


def test_random_crops_reach_every_place() -> None:
    image, label = torch.arange(4).view(1, 1, 4).repeat(3, 1, 1), torch.zeros(1, 4, dtype=torch.uint8)
    crops = [RandomCrop((1, 3))(image, label)[0][0, 0].tolist() for _ in range(100)]
    assert {tuple(crop) for crop in crops} == {(0, 1, 2), (1, 2, 3)}
    padded = [RandomCrop((1, 6), pad=9)(image, label)[0][0, 0].tolist() for _ in range(100)]
    assert {tuple(crop) for crop in padded} == {(0, 1, 2, 3, 9, 9), (9, 0, 1, 2, 3, 9), (9, 9, 0, 1, 2, 3)}


def test_a_center_crop_is_the_middle_and_the_odd_pixel_goes_at_the_end() -> None:
    image, label = torch.arange(5).view(1, 1, 5), torch.arange(5, dtype=torch.uint8).view(1, 5)
    assert CenterCrop((1, 2))(image, label)[0].flatten().tolist() == [1, 2]
    assert CenterCrop((1, 8))(image, label)[1].flatten().tolist() == [255, 0, 1, 2, 3, 4, 255, 255]
    planes = torch.ones(4, 1, 5, dtype=torch.uint8)
    assert CenterCrop((2, 5), pad=7)(image, planes)[1].flatten(1).tolist() == [[1] * 5 + [0] * 5] * 4


def test_a_crop_keeps_no_more_than_its_window() -> None:
    image, label = CenterCrop((2, 5))(torch.zeros(3, 100, 5), torch.zeros(100, 5, dtype=torch.uint8))
    assert (image.untyped_storage().nbytes(), label.untyped_storage().nbytes()) == (3 * 2 * 5 * 4, 2 * 5)


def test_a_crop_refuses_what_it_cannot_do() -> None:
    for size in ((0, 3), (3,), (2, 3, 4)):
        with pytest.raises(RequestError, match="expected a height and a width"):
            RandomCrop(size)  # type: ignore[arg-type]
    with pytest.raises(RequestError, match=r"torch\.int64.*crop first"):
        RandomCrop((2, 2))(torch.zeros(3, 4, 4), torch.zeros(4, 4, dtype=torch.int64))
