"""Volumes whose axes point elsewhere: labels are turned to their images, and images to named directions."""

from __future__ import annotations

import json
import math
import struct
from contextlib import suppress
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import errors_of, good, run
from drills.published import same
from drills.volumes import nifti
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from test_build_giant import counted, lower

from packer import build_pack, verify_pack
from packer.decoding.find_axes import axes_like, axes_toward
from packer.decoding.grid import Grid, other_place, turned
from packer.decoding.turn import UNTURNED, Turn
from packer.errors import BadPair
from packer.sources.volumes.volume import Volume
from packer.sources.volumes.volume_rules import MOST_VOXELS, VolumeRules
from readers import open_dataset, write_prediction
from readers.contract.place import NIFTI, System

pytestmark = pytest.mark.usefixtures("in_process")

nibabel: Any = pytest.importorskip("nibabel")
orientations: Any = pytest.importorskip("nibabel.orientations")

SIDES = (7, 9, 5)
ANGLE = np.array([[0.96, -0.28, 0], [0.28, 0.96, 0], [0, 0, 1]])
AFFINE = np.vstack([np.column_stack([ANGLE @ np.diag([-1.5, 2, 3]), [40, -30, 70]]), [0, 0, 0, 1]])
CODES = ["".join(letters) for pairs in permutations(("LR", "PA", "IS")) for letters in product(*pairs)]
TILES = ("--encode", "image=tiles:2x16x16", "--encode", "label=tiles-zstd:3x16x16")


def save(path: Path, image: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(image, path)


def in_axes(image: Any, code: str) -> Any:
    """Return a scan of nibabel with its axes in these directions, and the same voxels at the same points."""
    target = orientations.axcodes2ornt(code)
    return image.as_reoriented(orientations.ornt_transform(orientations.io_orientation(image.affine), target))


def scan(seed: int, most: int, dtype: str, affine: NDArray[np.float64] = AFFINE) -> Any:
    return nibabel.Nifti1Image(np.random.default_rng(seed).integers(0, most, SIDES).astype(dtype), affine)


def make_turned(raw: Path, codes: list[str], suffix: str = ".nii.gz") -> tuple[Any, Any]:
    """Write an image and its label, whose axes are in other directions in each case."""
    image, label = scan(1, 900, "i2"), scan(2, 3, "u1")
    for code in codes:
        save(raw / f"imagesTr/{code}_0000{suffix}", image)
        save(raw / f"labelsTr/{code}{suffix}", in_axes(label, code))
    return image, label


def build(raw: Path, out: Path, **options: Any) -> Path:
    build_pack(raw, out, classes="3", labels="index", bands="all", **options)
    return out


@pytest.mark.parametrize(
    ("volumes", "suffix"), [(True, ".nii.gz"), (True, ".nii"), (False, ".nii.gz"), (False, ".nii")]
)
def test_a_label_in_any_axes_is_turned_to_its_image(volumes: bool, suffix: str, tmp_path: Path) -> None:
    """All 48 orientations, by nibabel."""
    assert len(set(CODES)) == 48
    image, label = make_turned(tmp_path / "raw", CODES, suffix)
    options = {} if volumes else {"size": "native", "axis": 1}
    out = build(tmp_path / "raw", tmp_path / "out", volumes=volumes, **options)
    rows, numbers = open_dataset(out), np.asarray(image.dataobj)
    assert len(rows) == 48 * (1 if volumes else SIDES[1])
    for index in range(len(rows)):
        expected, labels = numbers.T, np.asarray(label.dataobj).T
        if not volumes:
            number = int(rows.key(index)[-4:])
            expected, labels = (array.take(number, 1) for array in (expected, labels))
        assert np.array_equal(rows[index].image.numpy()[0], expected)
        assert np.array_equal(rows[index].label.numpy(), labels)
    receipts = [json.loads(path.read_text()) for path in (out / "shards").glob("*.receipt.json")]
    notes = [text for receipt in receipts for _, text in receipt["notes"]]
    assert len(notes) == 47 * (1 if volumes else SIDES[1])
    assert f"labelsTr/RAS{suffix} is turned to the axes of RAS_0000{suffix}" in notes
    assert verify_pack(out, deep=True) == []


def test_the_mean_under_a_flipped_label_is_as_nibabel_has_it(tmp_path: Path) -> None:
    image, label = make_turned(tmp_path / "raw", ["RAS"])
    rows = open_dataset(build(tmp_path / "raw", tmp_path / "out", volumes=True))
    loaded = in_axes(nibabel.load(tmp_path / "raw/labelsTr/RAS.nii.gz"), "".join(nibabel.aff2axcodes(image.affine)))
    under = np.asarray(image.dataobj)[np.asarray(loaded.dataobj) == 2].mean()
    packed = rows[0].image.numpy()[0][rows[0].label.numpy() == 2].mean()
    assert packed == under
    assert packed != np.asarray(image.dataobj)[np.asarray(label.dataobj)[::-1] == 2].mean()


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
@pytest.mark.parametrize("axis", ["0", "1", "2"])
def test_turned_volumes_are_the_same_in_slabs(
    axis: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A channel and a label of other axes than the image; and all of them turned."""
    raw = tmp_path / "raw"
    image, label = make_turned(raw, CODES[::5], suffix)
    for number, code in enumerate(CODES[::5]):
        save(raw / f"imagesTr/{code}_0001{suffix}", in_axes(scan(3, 900, "i2"), CODES[-number]))
    options = ("--from", raw, "--volumes", "--classes", 3, *TILES, "--axis", axis)
    for orient in ("none", "SPL"):
        names: list[Any] = []
        good("build", *options, "--orient", orient, tmp_path / f"whole{orient}")
        with monkeypatch.context() as context:
            lower(context)
            names = counted(context)
            context.delattr(Volume, "all_bytes")
            good("build", *options, "--orient", orient, tmp_path / f"slabs{orient}")
        assert len(names) == 2 * len(CODES[::5])
        assert same(tmp_path / f"whole{orient}", tmp_path / f"slabs{orient}")
    rows = open_dataset(tmp_path / "slabsnone", label="index")
    expected = [np.moveaxis(np.asarray(each.dataobj), int(axis), 2).T for each in (image, scan(3, 900, "i2"), label)]
    assert np.array_equal(rows[3].image.numpy(), expected[:2])
    assert np.array_equal(rows[3].label.numpy(), expected[2])


@pytest.mark.parametrize(
    "code", [pytest.param(code, marks=() if code in ("RAS", "LPS", "SLA") else pytest.mark.long) for code in CODES]
)
@pytest.mark.parametrize("volumes", [True, False])
def test_volumes_are_turned_to_named_axes(code: str, volumes: bool, tmp_path: Path) -> None:
    """The numbers and the points are what nibabel has of the turned scan; a prediction opens there, too."""
    image, label = make_turned(tmp_path / "raw", ["PIR", "LSA"])
    options = {} if volumes else {"size": "native", "axis": 0}
    rows = open_dataset(build(tmp_path / "raw", tmp_path / "out", volumes=volumes, orient=code, **options))
    expected, labels = in_axes(image, code), in_axes(label, code)
    for index in range(len(rows)):
        pixels, truth = np.asarray(expected.dataobj).T, np.asarray(labels.dataobj).T
        place = rows.place(index)
        assert place is not None
        if volumes:
            assert np.allclose(place.affine, expected.affine, atol=1e-4)
            write_prediction(tmp_path / "p.nii.gz", rows[index].label.numpy(), place)
            written = nibabel.load(tmp_path / "p.nii.gz")
            assert "".join(nibabel.aff2axcodes(written.affine)) == code
            back = in_axes(written, "".join(nibabel.aff2axcodes(AFFINE)))
            assert np.array_equal(np.asarray(back.dataobj), np.asarray(label.dataobj))
            assert np.allclose(back.affine, AFFINE, atol=1e-4)
        else:
            number = int(rows.key(index)[-4:])
            pixels, truth = pixels[..., number], truth[..., number]
            assert np.allclose(place.at(3, 2), (expected.affine @ [number, 2, 3, 1])[:3], atol=1e-4)
        assert np.array_equal(rows[index].image.numpy()[0], pixels)
        assert np.array_equal(rows[index].label.numpy(), truth)


@given(st.lists(st.floats(-2, 2).map(lambda number: round(number, 3)), min_size=9, max_size=9), st.sampled_from(CODES))
def test_the_nearest_axes_are_those_of_nibabel(numbers: list[float], code: str) -> None:
    steps = np.reshape(numbers, (3, 3))
    affine = np.vstack([np.column_stack([steps, [1, 2, 3]]), [0, 0, 0, 1]])
    grid = Grid(SIDES, (("sform", tuple(affine[:3].ravel().tolist())),), System(NIFTI))
    if not np.abs(steps).max(0).all():
        return  # no header has such a grid
    try:
        axes = axes_toward(grid, code)
    except BadPair:
        assert np.linalg.matrix_rank(steps / np.linalg.norm(steps, axis=0), tol=1e-14) < 3
        return
    expected = in_axes(nibabel.Nifti1Image(np.arange(315, dtype=np.int16).reshape(SIDES), affine), code)
    assert np.allclose(turned(grid, axes).transform, expected.affine[:3].ravel())
    assert np.array_equal(axes.apply(np.arange(315).reshape(SIDES).T), np.asarray(expected.dataobj).T)


@given(
    st.permutations(range(3)),
    st.tuples(*[st.booleans()] * 3),
    st.permutations(range(3)),
    st.tuples(*[st.booleans()] * 3),
)
def test_axes_follow_each_other_and_go_back(first: list[int], one: Any, second: list[int], two: Any) -> None:
    axes, more = Turn(tuple(first), one), Turn(tuple(second), two)
    numbers = np.arange(24).reshape(2, 3, 4)
    assert np.array_equal(axes.then(more).apply(numbers), more.apply(axes.apply(numbers)))
    assert axes.then(axes.inverse) == axes.inverse.then(axes) == UNTURNED


@given(
    st.lists(st.one_of(st.floats(), st.sampled_from([1e300, -1e15, 5e-324, 0.0])), min_size=12, max_size=12),
    st.integers(0, 11),
)
def test_hostile_headers_are_bad_pairs(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[float], tail: int
) -> None:
    """Singular matrices, NaN and numbers of any size neither crash nor turn anything to another place."""
    data, good_rows = bytearray(nifti(np.zeros(SIDES, np.uint8), 2)), AFFINE[:3].ravel().tolist()
    struct.pack_into("<ii", data, 344, 0, 2)
    struct.pack_into("<12d", data, 400, *numbers[:tail], *good_rows[tail:])
    path = tmp_path_factory.getbasetemp() / "hostile.nii"
    path.write_bytes(data)
    grid, whole = Volume.open(path).grid, Grid(SIDES, (("sform", tuple(good_rows)),), System(NIFTI))
    for one, other in ((whole, grid), (grid, whole), (grid, grid)):
        axes = axes_like(one, other)
        assert axes == UNTURNED or (other is not None and not other_place("a", one, "b", turned(other, axes), "label"))
    with suppress(BadPair):
        assert sorted(axes_toward(grid, "LPS").order) == [0, 1, 2]
    with suppress(BadPair):
        scaling = VolumeRules(spacing=(1, 2, 3)).scaling_of(Volume.open(path))
        assert scaling is None or 0 < math.prod(scaling.size) <= MOST_VOXELS


def test_a_volume_that_does_not_say_where_its_axes_point_is_bad(tmp_path: Path) -> None:
    make_turned(tmp_path / "raw", ["RAS"])
    for name in ("imagesTr/flat_0000", "labelsTr/flat"):
        affine = AFFINE.copy()
        affine[:, 1] = affine[:, 0]
        path, data = tmp_path / f"raw/{name}.nii", bytearray(nifti(np.zeros(SIDES, "<i2")))
        struct.pack_into("<hh", data, 252, 0, 1)
        struct.pack_into("<12f", data, 280, *affine[:3].ravel())
        path.write_bytes(data)
    for volumes in (("--volumes",), ()):
        options = ("--from", tmp_path / "raw", *volumes, "--classes", 3, "--image-range", "0,900")
        errors = errors_of(1, "build", *options, "--size", "native", "--orient", "ras", tmp_path / "out")
        assert "flat_0000.nii" in errors
        assert "has no three directions in its header, so --orient RAS cannot turn it" in errors
    assert run("build", *options, "--size", "native", tmp_path / "out").exit_code == 0


def test_a_label_that_is_also_moved_is_bad_or_turned_like_the_image(tmp_path: Path) -> None:
    """With places ignored, pixels have the positions of their file, also if the image is turned."""
    image, label = make_turned(tmp_path / "raw", ["LAS"])
    affine = AFFINE.copy()
    affine[0, 3] += 1
    save(tmp_path / "raw/labelsTr/LAS.nii.gz", nibabel.Nifti1Image(np.asarray(label.dataobj), affine))
    options = ("--from", tmp_path / "raw", "--volumes", "--classes", 3, "--labels", "index", "--orient", "RAS")
    assert "--place ignore" in errors_of(1, "build", *options, tmp_path / "out")
    built = good("build", "--json", *options, "--place", "ignore", tmp_path / "out")
    assert json.loads(built.stdout)["note_totals"] == {"rows of fields at different places, by their headers": 1}
    rows = open_dataset(tmp_path / "out", label="index")
    for pixels, file in ((rows[0].image.numpy()[0], image), (rows[0].label.numpy(), label)):
        assert np.array_equal(pixels, np.asarray(in_axes(file, "RAS").dataobj).T)


def test_a_pack_follows_the_affines_and_the_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build after a change of an affine, of --orient or of --axis is the same as a fresh one."""
    monkeypatch.setattr("packer.sources.volumes.volume_source.is_young", lambda state: False)
    raw = tmp_path / "raw"
    make_turned(raw, ["RAS", "LPS"])
    label = scan(2, 3, "u1")
    changes: list[tuple[str, tuple[str, ...]]] = [
        ("", ()),
        ("SRA", ()),
        ("LAS", ("--orient", "LPS")),
        ("LAS", ("--orient", "SRA")),
        ("RAS", ("--axis", "0", "--orient", "SRA")),
        ("RAS", ("--axis", "0")),
        ("RAS", ()),
    ]
    for volumes in (("--volumes",), ("--size", "native", "--image-range", "0,900")):
        for number, (code, options) in enumerate(changes):
            if code:
                save(raw / "labelsTr/RAS.nii.gz", in_axes(label, code))
            given_options = ("--from", raw, "--classes", 3, *volumes, *options)
            out, fresh = tmp_path / f"out{len(volumes)}", tmp_path / f"fresh{len(volumes)}{number}"
            assert run("build", *given_options, out).exit_code == 0
            assert run("build", *given_options, fresh).exit_code == 0
            assert same(out, fresh), (code, options)


def test_directions_are_for_volumes(tmp_path: Path) -> None:
    (tmp_path / "raw/images").mkdir(parents=True)
    assert "--orient RAS: is for scans such as NIfTI" in errors_of(
        2, "build", "--orient", "ras", tmp_path / "raw", tmp_path / "o"
    )
    for wrong in ("RAR", "RA", "XYZ"):
        assert "expected a letter of L and R" in errors_of(
            2, "build", "--orient", wrong, tmp_path / "raw", tmp_path / "o"
        )
