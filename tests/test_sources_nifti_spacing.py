"""Volumes that are scaled to a spacing: sizes, numbers, places, and the same rows slab by slab."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import errors_of, good, run
from drills.published import same
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from test_build_giant import counted, lower
from test_sources_nifti_axes import AFFINE, CODES, SIDES, in_axes, save, scan

from packer import build_pack, verify_pack
from packer.sources.volumes.volume import Volume
from packer.sources.volumes.volume_scaling import CUBIC, LINEAR, NEAREST, VolumeScaling, taps
from readers import open_dataset, write_prediction

pytestmark = pytest.mark.usefixtures("in_process")

nibabel: Any = pytest.importorskip("nibabel")

SPACING = (2.0, 3.1, 0.7)
"""From slice to slice, row to row, column to column; the files have 3, 2 and 1.5 mm."""
SCALED = (8, 6, 15)
TILES = ("--encode", "image=tiles:2x16x16", "--encode", "label=tiles-zstd:3x16x16")


def make(raw: Path, suffix: str = ".nii.gz", dtype: str = "i2") -> tuple[NDArray[Any], NDArray[Any]]:
    """Write a case whose label has other axes; return its numbers as rows have them."""
    image, label = scan(1, 900, dtype), scan(2, 3, "u1")
    save(raw / f"imagesTr/a_0000{suffix}", image)
    save(raw / f"labelsTr/a{suffix}", in_axes(label, "SRA"))
    return np.asarray(image.dataobj).T, np.asarray(label.dataobj).T


def build(raw: Path, out: Path, **options: Any) -> Path:
    build_pack(raw, out, classes="3", labels="index", bands="all", spacing=SPACING, **options)
    return out


def by_points(numbers: NDArray[Any], size: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the linear interpolation of numbers at the centres of the voxels of another size, point by point."""
    steps = [source / side for source, side in zip(numbers.shape, size, strict=True)]
    scaled = np.empty(size)
    for index in np.ndindex(*size):
        at = [
            min(max((i + 0.5) * step - 0.5, 0), side - 1)
            for i, step, side in zip(index, steps, numbers.shape, strict=True)
        ]
        low = [min(int(each), side - 2) if side > 1 else 0 for each, side in zip(at, numbers.shape, strict=True)]
        total = 0.0
        for corner in np.ndindex(2, 2, 2):
            weight = np.prod(
                [each - first if up else 1 - each + first for each, first, up in zip(at, low, corner, strict=True)]
            )
            if weight:
                total += weight * numbers[tuple(first + up for first, up in zip(low, corner, strict=True))]
        scaled[index] = total
    return scaled


@pytest.mark.parametrize("dtype", ["i2", "f4"])
def test_a_volume_has_the_spacing(dtype: str, tmp_path: Path) -> None:
    numbers, labels = make(tmp_path / "raw", dtype=dtype)
    rows = open_dataset(build(tmp_path / "raw", tmp_path / "out", volumes=True))
    expected = by_points(numbers, SCALED)
    assert rows[0].image.shape == (1, *SCALED)
    assert np.abs(rows[0].image.numpy()[0] - expected).max() <= (0.5 + 1e-9 if dtype == "i2" else 1e-3)
    nearest = [
        (2 * np.arange(side) + 1) * source // (2 * side) for side, source in zip(SCALED, numbers.shape, strict=True)
    ]
    assert np.array_equal(rows[0].label.numpy(), labels[np.ix_(*nearest)])
    place = rows.place(0)
    assert place is not None
    assert np.allclose(
        place.spacing,
        [step * side / scaled for step, side, scaled in zip((3, 2, 1.5), SIDES[::-1], SCALED, strict=True)],
        atol=1e-4,
    )
    for corner in np.ndindex(2, 2, 2):  # corners stay on corners
        ours, theirs = (np.array(corner) * size - 0.5 for size in (SCALED, SIDES[::-1]))
        assert np.allclose(place.at(*ours), (AFFINE @ [*theirs[::-1], 1])[:3], atol=1e-4)
    write_prediction(tmp_path / "p.nii.gz", rows[0].label.numpy(), place)
    assert np.allclose(nibabel.load(tmp_path / "p.nii.gz").affine, place.affine, atol=1e-5)
    assert verify_pack(tmp_path / "out", deep=True) == []


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_slices_are_the_slices_of_the_scaled_volume(axis: int, tmp_path: Path) -> None:
    make(tmp_path / "raw")
    whole = open_dataset(build(tmp_path / "raw", tmp_path / "whole", volumes=True, axis=axis, orient="LPS"))
    rows = open_dataset(build(tmp_path / "raw", tmp_path / "slices", size="native", axis=axis, orient="LPS"))
    assert len(rows) == whole[0].image.shape[1]
    volume_place = whole.place(0)
    for index in range(len(rows)):
        place = rows.place(index)
        assert place is not None
        assert volume_place is not None
        assert np.array_equal(rows[index].image.numpy(), whole[0].image.numpy()[:, index])
        assert np.array_equal(rows[index].label.numpy(), whole[0].label.numpy()[index])
        assert np.allclose(place.at(3, 2), volume_place.at(index, 3, 2))


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
@pytest.mark.parametrize("orient", ["none", "RAS", "SPL"])
@pytest.mark.parametrize("spacing", ["2,3.1,0.7", "5,1,9"])
def test_scaled_volumes_are_the_same_in_slabs(
    spacing: str, orient: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tmp_path / "raw"
    make(raw, suffix)
    save(raw / f"imagesTr/a_0001{suffix}", in_axes(scan(3, 900, "i2"), CODES[20]))
    for interpolation in ("area", "cubic", "nearest"):
        options = ("--from", raw, "--volumes", "--classes", 3, *TILES, "--orient", orient, "--spacing", spacing)
        scaled = ("--interpolation", interpolation)
        good("build", *options, *scaled, tmp_path / f"whole{interpolation}")
        with monkeypatch.context() as context:
            lower(context)
            names = counted(context)
            context.delattr(Volume, "all_bytes")
            good("build", *options, *scaled, tmp_path / f"slabs{interpolation}")
        assert len(names) == 2
        assert same(tmp_path / f"whole{interpolation}", tmp_path / f"slabs{interpolation}")


@given(
    st.tuples(*[st.integers(1, 9)] * 3), st.tuples(*[st.integers(1, 20)] * 3), st.sampled_from([LINEAR, CUBIC, NEAREST])
)
def test_flat_volumes_stay_flat_and_planes_stay_planes(
    source: tuple[int, int, int], size: tuple[int, int, int], kind: str
) -> None:
    scaling = VolumeScaling(source, size, kind)
    flat = np.full(source, 77, np.int16)
    assert all((scaling.slice(flat.__getitem__, number) == 77).all() for number in range(size[0]))
    ends = [scaling.end(number) for number in range(size[0] + 1)]
    assert ends == sorted(ends)
    assert ends[-1] <= source[0]
    weights = taps(source[0], size[0], kind).weights
    assert np.allclose(weights.sum(0), 1)
    ramp = np.broadcast_to(np.arange(source[2], dtype=np.float64), source)
    scaled = scaling.slice(ramp.__getitem__, 0)
    centres = (np.arange(size[2]) + 0.5) * source[2] / size[2] - 0.5
    inside = (centres >= 1) & (centres <= source[2] - 2)
    if kind != NEAREST:
        assert np.allclose(scaled[0, inside], centres[inside])


def test_whole_numbers_are_clipped_where_cubic_overshoots() -> None:
    numbers = np.array([0, 255, 255, 0], np.uint8).reshape(1, 1, 4)
    scaled = VolumeScaling((1, 1, 4), (1, 1, 9), CUBIC).slice(numbers.__getitem__, 0)
    assert scaled.dtype == np.uint8
    assert scaled[0, 4] == 255
    largest = np.full((1, 1, 2), np.iinfo(np.int64).max)
    assert (VolumeScaling((1, 1, 2), (1, 1, 3), LINEAR).slice(largest.__getitem__, 0) == largest[0, 0, 0]).all()


def test_simple_itk_scales_so(tmp_path: Path) -> None:
    """Within 0.02 of 900: SimpleITK keeps the centres of the first and last voxels, too, beyond which it has zeros."""
    sitk: Any = pytest.importorskip("SimpleITK")
    numbers, _ = make(tmp_path / "raw", dtype="f4")
    rows = open_dataset(build(tmp_path / "raw", tmp_path / "out", volumes=True))
    place = rows.place(0)
    assert place is not None
    write_prediction(tmp_path / "grid.nii.gz", rows[0].image.numpy()[0], place)
    image, grid = (
        sitk.ReadImage(str(path)) for path in (tmp_path / "raw/imagesTr/a_0000.nii.gz", tmp_path / "grid.nii.gz")
    )
    expected = sitk.GetArrayFromImage(sitk.Resample(image, grid, sitk.Transform(), sitk.sitkLinear, -1.0))
    inside = expected >= 0
    for axis, (side, source) in enumerate(zip(SCALED, numbers.shape, strict=True)):
        centres = (np.arange(side) + 0.5) * source / side - 0.5
        beyond = (centres < 0) | (centres > source - 1)
        inside &= ~np.expand_dims(beyond, tuple(other for other in range(3) if other != axis))
    assert inside.mean() > 0.3
    assert np.abs(expected - rows[0].image.numpy()[0])[inside].max() < 0.02


def test_a_spacing_is_for_volumes_and_has_limits(tmp_path: Path) -> None:
    make(tmp_path / "raw")
    options = ("--from", tmp_path / "raw", "--volumes", "--classes", 3)
    for wrong in ("1,1", "1,1,0", "1,1,-1", "nan,1,1", "1e300,1,1", "1"):
        assert "expected" in errors_of(2, "build", *options, "--spacing", wrong, tmp_path / "out")
    errors = errors_of(1, "build", *options, "--spacing", "0.0001,1,2", tmp_path / "out")
    assert "imagesTr/a_0000.nii.gz: has 150000x18x5 voxels with --spacing 0.0001,1,2; up to 9,999 slices" in errors
    (tmp_path / "photos/images").mkdir(parents=True)
    assert "--spacing: is for scans" in errors_of(
        2, "build", "--spacing", "1,1,1", tmp_path / "photos", tmp_path / "out"
    )
    save(tmp_path / "raw/labelsTr/a.nii.gz", nibabel.Nifti1Image(np.zeros((*SIDES[:2], 8), np.uint8), AFFINE))
    assert "they must have the same size" in errors_of(1, "build", *options, "--spacing", "2,3.1,0.7", tmp_path / "out")


def test_another_spacing_packs_everything_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("packer.sources.volumes.volume_source.is_young", lambda state: False)
    make(tmp_path / "raw")
    for number, spacing in enumerate(("2,2,2", "1,2,2", "1,2,2.5", "1,2,2.50000001", "2,2,2")):
        options = ("--from", tmp_path / "raw", "--volumes", "--classes", 3, "--spacing", spacing)
        for out in (tmp_path / "out", tmp_path / f"fresh{number}"):
            assert run("build", *options, out).exit_code == 0
        assert same(tmp_path / "out", tmp_path / f"fresh{number}")


def test_a_volume_is_scaled_in_little_memory() -> None:
    """Four channels of 240 x 240 x 155 have 286 MB as float64; a slice of one needs a few planes."""
    volume = np.random.default_rng(1).integers(0, 900, (155, 240, 240)).astype(np.int16)
    scaling = VolumeScaling((155, 240, 240), (310, 200, 300), CUBIC)
    tracemalloc.start()
    for number in range(0, 310, 31):
        scaling.slice(volume.__getitem__, number)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 << 20
