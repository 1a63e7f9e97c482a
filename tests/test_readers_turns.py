"""Flips of every axis and quarter turns: all fields of a row move together, and each pose is equally likely."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from packer import Rows, build_pack
from readers import RandomCrop, open_dataset, windows
from readers.contract.errors import RequestError
from readers.crop import CropAndFlip, Flip
from readers.epoch import Run
from readers.windows import FLIPS, copy_pixels, flipped, swap

pytestmark = pytest.mark.usefixtures("in_process")
SIDE = st.integers(1, 40)


@given(st.integers(1, 3), SIDE, SIDE, st.sampled_from(["u1", "u2", "f4"]), st.integers(0, 7), st.integers(0, 99))
def test_a_window_is_turned_as_numpy_turns_it(
    planes: int, height: int, width: int, dtype: str, flip: int, seed: int
) -> None:
    """Pictures, labels and volumes, with the kernels and without."""
    kernels = windows.KERNEL, windows.SWAP_KERNEL
    for shape in ((2, planes, height, width), (planes, height, width), (height, width)):
        pixels = np.random.default_rng(seed).integers(0, 256, shape).astype(dtype)
        flip = flip if len(shape) > 2 else flip % 4
        plain, turned = flipped(pixels, flip), flipped(pixels.swapaxes(-1, -2), flip)
        for chosen in (kernels, (None, None)):
            windows.KERNEL, windows.SWAP_KERNEL = chosen
            copied, swapped = np.empty_like(pixels), np.empty(turned.shape, dtype)
            try:
                copy_pixels(copied, pixels, flip)
                swap(pixels, swapped, flip)
            finally:
                windows.KERNEL, windows.SWAP_KERNEL = kernels
            assert np.array_equal(copied, plain)
            assert np.array_equal(swapped, turned)


def poses(flip: Flip, turn: bool, axes: int = 2) -> Counter[bytes]:
    """Return how often each pose of a small picture or volume is drawn for 8,000 rows."""
    cut = CropAndFlip.of(None, flip, turn, (2,) * axes)
    assert cut is not None
    drawn = cut.windows(np.arange(8000), [Run(5, 1, 8000)], np.full((8000, axes), 2))
    corner = np.arange(2**axes).reshape((2,) * axes)
    swaps = drawn.swaps or [False] * 8000
    return Counter(
        np.ascontiguousarray(flipped(corner.swapaxes(-1, -2) if swapped else corner, flip_)).tobytes()
        for flip_, swapped in zip(drawn.flips, swaps, strict=True)
    )


POSES: list[tuple[Flip, bool, int, int]] = [
    (True, False, 2, 2),
    ("all", False, 2, 4),
    (False, True, 2, 4),
    (True, True, 2, 8),
    ("all", True, 2, 8),
    (True, False, 3, 2),
    ("all", False, 3, 8),
    ("all", True, 3, 16),
]


@pytest.mark.parametrize(("flip", "turn", "axes", "count"), POSES)
def test_each_pose_is_equally_likely(flip: Flip, turn: bool, axes: int, count: int) -> None:
    found = poses(flip, turn, axes)
    assert len(found) == count
    assert max(abs(times - 8000 / count) for times in found.values()) < 5 * (8000 / count) ** 0.5


def test_quarter_turns_are_rotations() -> None:
    picture = np.arange(4).reshape(2, 2)
    assert set(poses(False, True)) == {np.ascontiguousarray(np.rot90(picture, number)).tobytes() for number in range(4)}


def packed(tmp_path: Path, **options: Any) -> Path:
    dice = np.random.default_rng(3)

    def load(key: str) -> dict[str, NDArray[Any]]:
        gray = dice.integers(0, 256, (40, 56), np.uint8)
        return {"image": np.repeat(gray[..., None], 3, 2), "label": gray // 16}

    rows = Rows([f"{number:02}" for number in range(16)], load)
    build_pack(rows, tmp_path / "out", classes="16", workers=1, **options)
    return tmp_path / "out"


@pytest.mark.parametrize("encoding", ["raw", "zstd", "tiles:16"])
@pytest.mark.parametrize("label", ["onehot", "index"])
def test_fields_move_together(tmp_path: Path, encoding: str, label: Any) -> None:
    out = packed(tmp_path, encode=[f"image={encoding}", f"label={encoding}"], labels="index")
    rows = open_dataset(out, label=label)
    for options in ({"flip": "all"}, {"flip": "all", "turn": True}, {"turn": True}):
        crop = RandomCrop((24, 24))
        seen: set[bytes] = set()
        for images, labels in rows.loader(4, crop=crop, seed=9, output="numpy", **options):
            numbers = labels if label == "index" else labels.argmax(1)
            assert np.array_equal(images[:, 0] // 16, numbers)
            seen.update(image.tobytes() for image in images)
        assert len(seen) == len(rows)


def test_a_wrong_flip_and_a_turn_of_other_rows_are_refused(tmp_path: Path) -> None:
    rows = open_dataset(packed(tmp_path))
    with pytest.raises(RequestError, match='"all"'):
        rows.loader(4, flip="both")  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="found 40x56"):
        rows.loader(4, turn=True)
    assert set(FLIPS) == {-1, -2, -3}
