"""--decode fast: JPEG at a half, a quarter or an eighth of its size, as strict as before, not below the stored size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from conftest import errors_of, good, make_raw, pack
from handmade import encoded_as, exif, jpeg_with
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from packer.decoding.decode import decode_image
from packer.decoding.rules import FAST, ImageRules
from packer.errors import BadPair
from packer.pixels.choices import FITS
from packer.pixels.class_lookup import IGNORE
from packer.pixels.resize import Geometry
from readers import open_dataset
from readers.contract.json_entry import Entry
from readers.contract.manifest import Manifest

pytestmark = pytest.mark.usefixtures("in_process")

RULES = ImageRules()
SIDES = st.integers(64, 300) | st.integers(8, 40).map(lambda number: number * 8)


def smooth(height: int, width: int) -> NDArray[np.uint8]:
    """Return a picture whose pixels differ little from their neighbours, as in a large photograph."""
    coarse = np.random.default_rng(height).integers(0, 256, (height // 16 + 2, width // 16 + 2, 3)).astype(np.uint8)
    return np.asarray(cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC), np.uint8)


@pytest.mark.parametrize("reduction", [1, 2, 4, 8])
@pytest.mark.parametrize(("height", "width"), [(64, 64), (65, 121), (333, 70)])
def test_a_jpeg_is_decoded_smaller(reduction: int, height: int, width: int) -> None:
    photo = smooth(height, width)
    for data in (encoded_as(".jpg", photo), encoded_as(".jpg", photo, cv2.IMWRITE_JPEG_PROGRESSIVE, 1)):
        pixels = decode_image(data, RULES, reduction)
        assert pixels.shape == (-(-height // reduction), -(-width // reduction), 3)
        turned = decode_image(jpeg_with(data, b"Exif\0\0" + exif(6)), RULES, reduction)
        assert np.array_equal(turned, np.rot90(pixels, -1))
    gray = decode_image(encoded_as(".jpg", photo[..., 0]), RULES, reduction)
    assert gray.shape == pixels.shape
    assert decode_image(encoded_as(".png", photo), RULES, reduction).shape == photo.shape


@pytest.mark.parametrize("progressive", [0, 1])
def test_a_damaged_jpeg_is_refused_at_every_size(progressive: int) -> None:
    data = encoded_as(".jpg", smooth(200, 300), cv2.IMWRITE_JPEG_PROGRESSIVE, progressive)
    dice = np.random.default_rng(0)
    for _ in range(60):
        damaged = bytearray(data if dice.random() < 0.5 else data[: dice.integers(700, len(data))] + b"\xff\xd9")
        damaged[dice.integers(600, len(damaged))] ^= 1 << int(dice.integers(8))
        outcomes = {_outcome(bytes(damaged), reduction) for reduction in (1, 2, 4, 8)}
        assert len(outcomes) == 1


def _outcome(data: bytes, reduction: int) -> str:
    try:
        decode_image(data, RULES, reduction)
    except BadPair as bad:
        return str(bad)
    return ""


@given(st.tuples(SIDES, SIDES), st.tuples(st.integers(1, 99), st.integers(1, 99)), st.sampled_from(FITS))
def test_no_picture_is_decoded_below_the_size_it_is_scaled_to(
    source: tuple[int, int], size: tuple[int, int], fit: str
) -> None:
    geometry = Geometry(None if fit == "native" else size, fit)
    reduction = geometry.reduction(source)
    decoded = source[0] // reduction, source[1] // reduction
    assert (decoded[0] * reduction, decoded[1] * reduction) == source
    if fit in ("tile", "native", "crop-or-pad"):
        assert reduction == 1
        return
    image = geometry.image(np.full((*decoded, 3), 200, np.uint8), source=source)
    assert np.array_equal(image[0] == 0, geometry.label(np.zeros(source, np.uint16)) == IGNORE)
    if fit == "stretch":
        assert decoded[0] >= min(size[0], source[0])
        assert decoded[1] >= min(size[1], source[1])


def test_only_area_means_may_start_from_fewer_pixels() -> None:
    source, size = (400, 400), (50, 50)
    found = {
        name: Geometry(size, interpolation=name).reduction(source) for name in ("area", "cubic", "linear", "nearest")
    }
    assert found == {"area": 8, "cubic": 8, "linear": 1, "nearest": 1}
    assert [Geometry((side, side)).reduction(source) for side in (51, 100, 101, 200, 201)] == [4, 4, 2, 2, 1]
    assert Geometry((1, 1)).reduction((56, 800)) == 1
    assert [Geometry((9, 9)).reduction((400, side)) for side in (400, 404, 402, 401)] == [8, 4, 2, 1]


def test_a_fast_build_is_near_an_exact_one_and_says_so_in_its_recipe(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 2}, height=208, width=328)
    for number in range(2):
        (raw.path / f"train/images/street_{number:03d}.png").unlink()
        (raw.path / f"train/images/street_{number:03d}.jpg").write_bytes(encoded_as(".jpg", smooth(208, 328)))
    options = ("--size", "40x60", "--fit", "letterbox")
    exact, fast = (pack(raw.path, tmp_path / way, *options, "--decode", way) for way in ("exact", "fast"))
    for (image, label), (other, same) in zip(open_dataset(exact), open_dataset(fast), strict=True):
        assert cv2.PSNR(image.numpy(), other.numpy()) > 40
        assert not np.array_equal(image, other)
        assert np.array_equal(label, same)
    assert "decode" not in Manifest.load(exact).recipe["fields"][0]["read"]
    assert Manifest.load(fast).recipe["fields"][0]["read"]["decode"] == "fast"
    assert "image.decode" in good("build", *options, "--decode", "fast", raw.path, exact).stderr


def test_rules_are_read_back() -> None:
    problems: list[Any] = []
    for rules in (ImageRules(), ImageRules(decode=FAST)):
        assert ImageRules.from_json(Entry(rules.to_json(), "", problems)) == rules
    ImageRules.from_json(Entry({**ImageRules().to_json(), "decode": "slow"}, "", problems))
    assert [str(problem) for problem in problems] == ["decode: expected one of exact, fast, found 'slow'"]


@pytest.mark.parametrize(
    "options",
    [(), ("--size", "native"), ("--size", "9x9", "--fit", "tile"), ("--size", "9x9", "--interpolation", "linear")],
)
def test_fast_needs_a_size_to_scale_to(tmp_path: Path, options: tuple[str, ...]) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 1})
    errors = errors_of(2, "build", "--decode", "fast", *options, raw.path, tmp_path / "out")
    assert "--decode fast: needs --size" in errors
