"""Channels of a case are bands: a NIfTI file for each, or one file with four sides, as nibabel reads them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import run
from numpy.typing import NDArray

from packer import build_pack, verify_pack
from packer.errors import InputError, SettingsError, UsageError
from packer.sources.container import Names
from packer.sources.volumes.volume_slices import VolumeSlices
from readers import open_dataset
from readers.contract import giant

pytestmark = pytest.mark.usefixtures("in_process")

nibabel: Any = pytest.importorskip("nibabel")

SIDES = (7, 9, 5)
AFFINE = np.diag([1.5, 2, 3, 1])
DATA_SET: dict[str, dict[str, Any]] = {
    "channel_names": {"0": "T1", "1": "T2", "2": "FLAIR"},
    "labels": {"background": 0, "tumour": 1, "ignore": 2},
}


def save(path: Path, array: NDArray[Any], affine: NDArray[np.float64] = AFFINE) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(array, affine), path)


def case(seed: int, channels: int = 3, dtype: str = "i2") -> NDArray[Any]:
    """Return the channels of a case as the last side."""
    return np.random.default_rng(seed).integers(-300, 900, (*SIDES, channels)).astype(dtype)


def nnu_net(raw: Path, channels: int = 3, suffix: str = ".nii.gz") -> dict[str, NDArray[Any]]:
    """Write a data set of nnU-Net: a file for each channel. Return its cases."""
    cases = {key: case(number, channels) for number, key in enumerate(("brain_a", "brain_0001"))}
    for key, numbers in cases.items():
        for channel in range(channels):
            save(raw / f"imagesTr/{key}_{channel:04}{suffix}", numbers[..., channel])
        save(raw / f"labelsTr/{key}{suffix}", (numbers[..., 0] % 3).astype(np.uint8))
    (raw / "dataset.json").write_text(json.dumps(DATA_SET))
    return cases


def decathlon(raw: Path) -> dict[str, NDArray[Any]]:
    """Write a data set of the Decathlon: the channels are the fourth side. Return its cases."""
    cases = {key: case(number, 3) for number, key in enumerate(("BRATS_001", "BRATS_002"))}
    for key, numbers in cases.items():
        save(raw / f"imagesTr/{key}.nii.gz", numbers)
        save(raw / f"labelsTr/{key}.nii.gz", (numbers[..., 0] % 3).astype(np.uint8))
    by_number = {str(value): name for name, value in DATA_SET["labels"].items()}
    (raw / "dataset.json").write_text(json.dumps({"modality": DATA_SET["channel_names"], "labels": by_number}))
    return cases


@pytest.mark.parametrize("make", [nnu_net, decathlon])
@pytest.mark.parametrize("storage", ["npy", "hdf5", "arrow", "lmdb"])
def test_every_channel_is_a_band_of_the_volume(make: Any, storage: str, tmp_path: Path) -> None:
    cases = make(tmp_path / "raw")
    build_pack(tmp_path / "raw", tmp_path / "out", volumes=True, labels="index", format=storage)
    rows = open_dataset(tmp_path / "out")
    assert rows.fields[0].bands == ("T1", "T2", "FLAIR")
    assert rows.classes.names == ("background", "tumour")
    for index in range(len(rows)):
        numbers = cases[rows.key(index)]
        assert np.array_equal(rows[index].image, numbers.transpose(3, 2, 1, 0))
        label = (numbers[..., 0] % 3).T
        assert np.array_equal(rows[index].label, np.where(label == 2, 255, label))
    assert verify_pack(tmp_path / "out", deep=True) == []


@pytest.mark.parametrize("make", [nnu_net, decathlon])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_every_channel_is_a_band_of_a_slice(make: Any, axis: int, tmp_path: Path) -> None:
    cases = make(tmp_path / "raw")
    build_pack(tmp_path / "raw", tmp_path / "out", size="native", labels="index", bands="all", axis=axis)
    rows = open_dataset(tmp_path / "out")
    assert len(rows) == 2 * SIDES[axis]
    for index in range(len(rows)):
        key, _, number = rows.key(index).rpartition("/")
        assert np.array_equal(rows[index].image, np.moveaxis(cases[key], axis, 0)[int(number)].T)


@pytest.mark.parametrize("make", [nnu_net, decathlon])
@pytest.mark.parametrize("axis", [0, 2])
def test_volumes_that_do_not_fit_into_memory_have_the_same_channels(
    make: Any, axis: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "raw")
    tiles: dict[str, Any] = {"volumes": True, "axis": axis, "encode": ["image=tiles:16", "label=tiles:16"]}
    build_pack(tmp_path / "raw", tmp_path / "out", **tiles)
    monkeypatch.setattr(giant, "GIANT", 0)
    build_pack(tmp_path / "raw", tmp_path / "giant", **tiles)
    whole, parts = (sorted((tmp_path / name / "shards").glob("*.npy")) for name in ("out", "giant"))
    assert [path.read_bytes() for path in whole] == [path.read_bytes() for path in parts]


def test_channels_of_two_types_have_one_that_holds_both(tmp_path: Path) -> None:
    numbers = case(0, 2)
    save(tmp_path / "raw/imagesTr/a_0000.nii", numbers[..., 0])
    save(tmp_path / "raw/imagesTr/a_0001.nii", numbers[..., 1] / np.float32(7))
    save(tmp_path / "raw/labelsTr/a.nii", np.zeros(SIDES, np.uint8))
    build_pack(tmp_path / "raw", tmp_path / "out", volumes=True, classes="2")
    (row,) = open_dataset(tmp_path / "out")
    assert row.image.dtype.is_floating_point
    assert np.array_equal(row.image[0], numbers[..., 0].T)
    assert np.array_equal(row.image[1], (numbers[..., 1] / np.float32(7)).T)


@pytest.mark.parametrize("labels", ["index", "onehot"])
@pytest.mark.parametrize("split", [None, "50/50"])
@pytest.mark.parametrize("make", [nnu_net, decathlon])
def test_extracted_volumes_are_packed_to_the_same_rows(
    make: Any, split: str | None, labels: str, tmp_path: Path
) -> None:
    make(tmp_path / "raw")
    drawn: dict[str, Any] = {} if split is None else {"split": split}
    build_pack(tmp_path / "raw", tmp_path / "out", volumes=True, labels=labels, **drawn)
    extracted = run("extract", "--all", tmp_path / "out", tmp_path / "files")
    assert extracted.exit_code == 0, extracted.stderr
    command = shlex.split(extracted.stderr.partition("again: packer ")[2])
    again = run(*command[:-1], tmp_path / "again")
    assert again.exit_code == 0, again.stderr
    ours, theirs = open_dataset(tmp_path / "out", "all"), open_dataset(tmp_path / "again", "all")
    assert (ours.fields[0].bands, ours.classes.names) == (theirs.fields[0].bands, theirs.classes.names)
    for index in range(len(ours)):
        assert (ours.key(index), ours.place(index)) == (theirs.key(index), theirs.place(index))
        for before, after in zip(ours[index], theirs[index], strict=True):
            assert np.array_equal(before, after)
    for path in (tmp_path / "files").rglob("*.nii.gz"):
        assert np.array_equal(nibabel.load(path).affine, AFFINE)


def test_channels_may_have_names(tmp_path: Path) -> None:
    for name in ("flair", "t1ce"):
        save(tmp_path / f"raw/p1/{name}.nii.gz", case(0, 1)[..., 0])
    save(tmp_path / "raw/p1/seg.nii.gz", np.zeros(SIDES, np.uint8))
    options: dict[str, Any] = {"image": "{key}/{channel}", "label": "{key}/seg", "volumes": True, "classes": "2"}
    build_pack(tmp_path / "raw", tmp_path / "out", **options)
    assert open_dataset(tmp_path / "out")[0].image.shape == (2, 5, 9, 7)


def test_channels_get_their_own_names(tmp_path: Path) -> None:
    """Names of dataset.json count by number, and names in paths are names; 10 comes behind 9."""
    for number in range(12):
        save(tmp_path / f"raw/imagesTr/a_{number}.nii", np.full(SIDES, number, np.int16))
    save(tmp_path / "raw/labelsTr/a.nii", np.zeros(SIDES, np.uint8))
    names = {str(number): f"B{number}" for number in range(12)}
    (tmp_path / "raw/dataset.json").write_text(json.dumps({"channel_names": names}))
    options: dict[str, Any] = {"image": "imagesTr/{key}_{channel}", "label": "labelsTr/{key}", "volumes": True}
    build_pack(tmp_path / "raw", tmp_path / "out", classes="2", **options)
    rows = open_dataset(tmp_path / "out")
    assert rows.fields[0].bands == tuple(names.values())
    assert rows[0].image[:, 0, 0, 0].tolist() == list(range(12))
    for number, name in enumerate(("t1", "t1ce", "flair")):
        save(tmp_path / f"named/imagesTr/a_{name}.nii", np.full(SIDES, number, np.int16))
    save(tmp_path / "named/labelsTr/a.nii", np.zeros(SIDES, np.uint8))
    (tmp_path / "named/dataset.json").write_text(json.dumps(DATA_SET))
    build_pack(tmp_path / "named", tmp_path / "two", classes="2", **options)
    (row,) = rows = open_dataset(tmp_path / "two")
    assert rows.fields[0].bands == ("flair", "t1", "t1ce")
    assert row.image[:, 0, 0, 0].tolist() == [2, 0, 1]


def test_keys_may_end_with_four_digits(tmp_path: Path) -> None:
    for key in ("case_0001", "case_0002"):
        save(tmp_path / f"raw/imagesTr/{key}.nii", case(0, 1)[..., 0])
        save(tmp_path / f"raw/labelsTr/{key}.nii", np.zeros(SIDES, np.uint8))
    build_pack(tmp_path / "raw", tmp_path / "out", volumes=True, classes="2")
    assert len(open_dataset(tmp_path / "out")) == 2


def test_one_channel_alone_has_the_template_that_it_had(tmp_path: Path) -> None:
    nnu_net(tmp_path / "raw", channels=1)
    assert VolumeSlices.at(tmp_path / "raw", Names()).templates == ("imagesTr/{key}_0000", "labelsTr/{key}")
    nnu_net(tmp_path / "three")
    names = {"image": "imagesTr/{key}_0001", "label": "labelsTr/{key}"}
    build_pack(tmp_path / "three", tmp_path / "out", volumes=True, image=names["image"], label=names["label"])
    assert len(open_dataset(tmp_path / "out")[0].image) == 1


def test_a_changed_channel_is_packed_again_alone(tmp_path: Path) -> None:
    cases = nnu_net(tmp_path / "raw", suffix=".nii")
    build_pack(tmp_path / "raw", tmp_path / "out", volumes=True)
    save(tmp_path / "raw/imagesTr/brain_a_0002.nii", cases["brain_a"][..., 2] + 1)
    build_pack(tmp_path / "raw", tmp_path / "out", volumes=True)
    rows = open_dataset(tmp_path / "out")
    assert np.array_equal(rows[rows.index("brain_a")].image[2], cases["brain_a"][..., 2].T + 1)
    build_pack(tmp_path / "raw", tmp_path / "fresh", volumes=True)
    assert {path.name for path in (tmp_path / "fresh/shards").iterdir()} <= {
        path.name for path in (tmp_path / "out/shards").iterdir()
    }


WRONG: dict[str, tuple[dict[str, NDArray[Any]], str]] = {
    "a channel is missing": (
        {"imagesTr/b_0000": case(1, 1)[..., 0], "labelsTr/b": np.zeros(SIDES, np.uint8)},
        "b_0000.nii: no channel 0001",
    ),
    "another size": ({"imagesTr/a_0001": np.zeros((7, 9, 6), np.int16)}, "the channels of a case have one size"),
    "a label of two volumes": ({"labelsTr/a": np.zeros((*SIDES, 2), np.uint8)}, "has 2 volumes; a label has one"),
    "513 volumes": (
        {"imagesTr/a_0001": np.zeros((*SIDES, 513), np.int16)},
        "expected three, and up to 512 volumes",
    ),
    "512 and one": ({"imagesTr/a_0001": np.zeros((*SIDES, 512), np.int16)}, "has 513 channels; at most 512"),
}


@pytest.mark.parametrize("name", WRONG)
def test_cases_that_do_not_fit_are_named(name: str, tmp_path: Path) -> None:
    files, words = WRONG[name]
    good = {"imagesTr/a_0000": case(0, 1)[..., 0], "imagesTr/a_0001": case(1, 1)[..., 0]}
    for path, array in {**good, "labelsTr/a": np.zeros(SIDES, np.uint8), **files}.items():
        save(tmp_path / f"raw/{path}.nii", array)
    result = run("build", "--from", tmp_path / "raw", "--volumes", "--classes", 2, tmp_path / "out")
    assert result.exit_code != 0
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_a_channel_at_another_place_is_a_bad_pair(tmp_path: Path) -> None:
    nnu_net(tmp_path / "raw")
    save(tmp_path / "raw/imagesTr/brain_a_0001.nii.gz", case(0, 1)[..., 0], AFFINE @ np.diag([-1, 1, 1, 1]))
    result = run("build", "--from", tmp_path / "raw", "--volumes", tmp_path / "out")
    assert result.exit_code != 0
    assert "its channel imagesTr/brain_a_0001.nii.gz at" in result.stderr
    assert run("build", "--from", tmp_path / "raw", "--volumes", "--place", "ignore", tmp_path / "out").exit_code == 0
    assert np.array_equal(open_dataset(tmp_path / "out")[1].image[1], case(0, 1)[..., 0].T)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "expected a table with labels and channel_names"),
        ({"labels": {"a": 0, "b": -1}}, "is not a class of its own"),
        ({"labels": {"a": 0, "b": 0}}, "is not a class of its own"),
        ({"labels": {"0": "a", "1": "a"}}, "two classes have one name"),
        ({"labels": {"a\u001b": 0}}, "is not a class of its own"),
        ({"channel_names": {"0": ""}}, "has no name of 1 to 64 plain characters"),
    ],
)
def test_a_broken_file_of_names_is_named(document: object, words: str, tmp_path: Path) -> None:
    nnu_net(tmp_path / "raw")
    (tmp_path / "raw/dataset.json").write_text(json.dumps(document))
    with pytest.raises(SettingsError, match=f"dataset.json: .*{words}"):
        build_pack(tmp_path / "raw", tmp_path / "out", volumes=True)


def test_a_table_of_the_user_counts_before_broken_labels(tmp_path: Path) -> None:
    nnu_net(tmp_path / "raw")
    (tmp_path / "raw/dataset.json").write_text(json.dumps({"labels": {"a": 0, "b": -1}}))
    build_pack(tmp_path / "raw", tmp_path / "out", volumes=True, classes="3")
    assert len(open_dataset(tmp_path / "out")) == 2


def test_regions_need_a_table_of_the_user(tmp_path: Path) -> None:
    nnu_net(tmp_path / "raw")
    (tmp_path / "raw/dataset.json").write_text(json.dumps({**DATA_SET, "labels": {"whole": [1, 2], "background": 0}}))
    with pytest.raises(InputError, match="no class table"):
        build_pack(tmp_path / "raw", tmp_path / "out", volumes=True)
    build_pack(tmp_path / "raw", tmp_path / "out", volumes=True, classes="3")
    assert len(open_dataset(tmp_path / "out").classes) == 3


def test_probe_proposes_what_a_build_takes(tmp_path: Path) -> None:
    nnu_net(tmp_path / "raw")
    probed = run("probe", tmp_path / "raw", "--write", tmp_path / "packer.toml")
    assert "3 of 3 values are in dataset.json" in probed.stdout
    assert "classes   2: background, tumour" in probed.stdout
    options = ("--config", tmp_path / "packer.toml", "--from", tmp_path / "raw")
    assert run("build", *options, tmp_path / "out").exit_code == 0
    assert open_dataset(tmp_path / "out").classes.names == ("background", "tumour")


def test_a_template_of_a_label_has_no_channel(tmp_path: Path) -> None:
    nnu_net(tmp_path / "raw")
    with pytest.raises(UsageError, match="a label has one channel"):
        VolumeSlices.at(tmp_path / "raw", Names(image="imagesTr/{key}_{channel}", label="labelsTr/{key}_{channel}"))
    with pytest.raises(InputError, match="no pairs of the form"):
        VolumeSlices.at(tmp_path / "raw", Names(image="imagesTr/{key}_{channel}", label="labels/{key}"))


def test_files_of_brats_have_the_key_twice(tmp_path: Path) -> None:
    cases = {key: case(number, 4) for number, key in enumerate(("BraTS_00000", "BraTS_00002"))}
    names = ("flair", "t1", "t1ce", "t2")
    for key, numbers in cases.items():
        for channel, name in enumerate(names):
            save(tmp_path / f"raw/{key}/{key}_{name}.nii.gz", numbers[..., channel])
        save(tmp_path / f"raw/{key}/{key}_seg.nii.gz", (numbers[..., 0] % 3).astype(np.uint8))
    options: dict[str, Any] = {"image": "{key}/{key}_{channel}", "label": "{key}/{key}_seg", "classes": "3"}
    build_pack(tmp_path / "raw", tmp_path / "out", volumes=True, labels="index", **options)
    rows = open_dataset(tmp_path / "out")
    assert [rows.key(index) for index in range(2)] == sorted(cases)
    assert rows.fields[0].bands == names
    assert np.array_equal(rows[1].image, cases["BraTS_00002"].transpose(3, 2, 1, 0))
