"""`Rows` that are volumes: arrays of a function, in all formats, in tiles, in nights, and arrays that are none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import run
from drills.published import same
from test_sources_rows import in_process

from packer import (
    IdsField,
    InputError,
    Rows,
    UsageError,
    ValuesField,
    build_pack,
    diff_pack,
    repair_pack,
    verify_pack,
)
from packer.building import Summary
from readers import open_dataset

__all__ = ["in_process"]
KEYS = [f"case {number}" for number in range(20)]
NAMES = ["air", "cell", "wall"]
FORMATS = ("npy", "hdf5", "arrow", "lmdb")


def size_of(key: str) -> tuple[int, int, int]:
    return 1 + int(key.split()[1]) % 5, 9, 11


def volume_of(key: str) -> dict[str, Any]:
    """Return an image of two bands and class numbers, which depend on the key alone."""
    rng = np.random.default_rng(list(key.encode()))
    image = rng.normal(0, 100, (*size_of(key), 2)).astype(np.float32)
    return {"image": image, "label": rng.integers(0, len(NAMES), size_of(key))}


def gray_of(key: str) -> dict[str, Any]:
    """Return a volume of one band and whole numbers; all have one size."""
    rng = np.random.default_rng(list(key.encode()))
    return {"image": rng.integers(-500, 500, (4, 6, 8)).astype(np.int16), "label": rng.integers(0, 3, (4, 6, 8))}


def version_of(key: str) -> str:
    return key


def packed(out: Path, rows: Rows, **options: Any) -> Summary:
    options = {"classes": NAMES, "labels": "index", "shard_size": "8KB", "workers": 2, **options}
    return build_pack(rows, out, volumes=True, **options)


def check(out: Path, load: Callable[[str], dict[str, Any]] = volume_of) -> None:
    """Compare each voxel of a pack with what the function returned."""
    rows = open_dataset(out, label="index")
    assert len(rows) == len(KEYS)
    for number, (image, label) in enumerate(rows):
        given = load(rows.key(number))
        planes = np.moveaxis(given["image"], -1, 0) if given["image"].ndim == 4 else given["image"][None]
        assert image.numpy().dtype == planes.dtype
        assert np.array_equal(image, planes)
        assert np.array_equal(label, given["label"])


def test_worker_processes_load_them(tmp_path: Path) -> None:
    assert packed(tmp_path / "out", Rows(KEYS, volume_of, sizes=size_of)).rows == len(KEYS)
    check(tmp_path / "out")


@pytest.mark.parametrize("store", FORMATS)
def test_each_voxel_is_that_of_the_array_in_each_format(tmp_path: Path, in_process: None, store: str) -> None:
    """The sizes differ, and a window is a part of the array."""
    summary = packed(tmp_path / "out", Rows(KEYS, volume_of, sizes=size_of), format=store)
    assert (summary.rows, summary.rejects, verify_pack(tmp_path / "out", deep=True)) == (len(KEYS), (), [])
    check(tmp_path / "out")
    rows = open_dataset(tmp_path / "out", label="index")
    image, label = rows.window(4, (1, 2, 3), (2, 4, 5))
    given = volume_of(rows.key(4))
    assert rows.size(4) == size_of(rows.key(4))
    assert np.array_equal(image, np.moveaxis(given["image"], -1, 0)[:, 1:3, 2:6, 3:8])
    assert np.array_equal(label, given["label"][1:3, 2:6, 3:8])


@pytest.mark.parametrize("encoding", ["zstd", "tiles:2x16x16", "tiles-zstd:2x16x16"])
def test_encoded_volumes_are_the_same(tmp_path: Path, in_process: None, encoding: str) -> None:
    encode = [f"image={encoding}", f"label={encoding}"]
    packed(tmp_path / "out", Rows(KEYS, volume_of, sizes=size_of), encode=encode)
    check(tmp_path / "out")


def test_gray_volumes_of_one_size_need_no_sizes(tmp_path: Path, in_process: None) -> None:
    packed(tmp_path / "out", Rows(KEYS, gray_of))
    packed(tmp_path / "stated", Rows(KEYS, gray_of, sizes=(4, 6, 8)))
    check(tmp_path / "out", gray_of)
    check(tmp_path / "stated", gray_of)
    band = packed(
        tmp_path / "band", Rows(KEYS, lambda key: {**gray_of(key), "image": gray_of(key)["image"][..., None]})
    )
    assert band.rejects == ()
    check(tmp_path / "band", gray_of)


def test_volumes_have_other_fields_and_may_lack_some(tmp_path: Path, in_process: None) -> None:
    def load(key: str) -> dict[str, Any]:
        given = gray_of(key)
        fields = {**given, "lesion": given["label"] * 300}
        return fields if key == KEYS[3] else {**fields, "dose": given["image"] / np.float32(8)}

    fields = [ValuesField("dose"), IdsField("lesion")]
    packed(tmp_path / "out", Rows(KEYS, load, without={"dose": [KEYS[3]]}), fields=fields)
    rows = open_dataset(tmp_path / "out", fields=("dose", "lesion"))
    assert len(rows) == len(KEYS)
    for number in range(len(rows)):
        given = load(rows.key(number))
        assert np.array_equal(rows[number][0], given.get("dose", np.full((4, 6, 8), np.nan)), equal_nan=True)
        assert np.array_equal(rows[number][1], given["lesion"])


def test_a_night_loads_new_volumes_alone_and_equals_a_fresh_build(tmp_path: Path, in_process: None) -> None:
    rows = [Rows(keys, volume_of, version_of, size_of) for keys in (KEYS[:-1], KEYS)]
    packed(tmp_path / "out", rows[0], shard_size="1KB")
    summary = packed(tmp_path / "out", rows[1], shard_size="1KB")
    packed(tmp_path / "fresh", rows[1], shard_size="1KB", workers=1)
    assert summary.reused == len(KEYS) - 1
    assert same(tmp_path / "out", tmp_path / "fresh")
    assert packed(tmp_path / "out", rows[1], shard_size="1KB").reused == len(KEYS)


def test_damaged_volumes_are_built_again_from_the_function(tmp_path: Path, in_process: None) -> None:
    rows = Rows(KEYS, volume_of, version_of, size_of)
    packed(tmp_path / "out", rows)
    assert diff_pack(tmp_path / "out", rows).changed == ()
    path = next((tmp_path / "out" / "shards").glob("*.image.npy"))
    damaged = bytearray(path.read_bytes())
    damaged[-4] ^= 255
    path.chmod(0o644)
    path.write_bytes(damaged)
    assert len(verify_pack(tmp_path / "out", deep=True)) > 0
    repair_pack(tmp_path / "out", rows)
    assert verify_pack(tmp_path / "out", deep=True) == []
    check(tmp_path / "out")


def loads_to(folder: Path, keys: list[str], **more: Any) -> Rows:
    """Return rows that leave a file for each key that was loaded."""

    def load(key: str) -> dict[str, Any]:
        (folder / key).touch()
        return volume_of(key)

    folder.mkdir(exist_ok=True)
    return Rows(keys, load, version_of, size_of, **more)


def test_with_types_only_what_is_new_is_loaded(tmp_path: Path, in_process: None) -> None:
    types = {"image": np.zeros((1, 1, 1, 2), np.float32), "label": np.zeros((1, 1, 1), np.int64)}
    for name, more in (("sampled", {}), ("stated", {"types": types})):
        packed(tmp_path / name, loads_to(tmp_path / f"{name} first", KEYS[:-1], **more), shard_size="1KB")
        second = tmp_path / f"{name} second"
        packed(tmp_path / name, loads_to(second, KEYS, **more), shard_size="1KB")
        loaded = {path.name for path in second.iterdir()}
        assert KEYS[-1] in loaded
        assert len(loaded) == (1 if more else 16)
    assert same(tmp_path / "sampled", tmp_path / "stated")


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"image": np.zeros((1, 1, 1, 2), np.float32)}, "types: has no label; name an array for each of image, label"),
        (
            {"image": np.zeros((1, 1)), "label": np.zeros((1, 1, 1), int)},
            r"types: image has the shape \(1, 1\), ",
        ),
    ],
)
def test_types_are_arrays_of_all_fields(tmp_path: Path, types: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        packed(tmp_path / "out", Rows(KEYS, volume_of, version_of, size_of, types=types))


def test_a_volume_of_another_type_than_stated_costs_its_row(tmp_path: Path, in_process: None) -> None:
    types: dict[str, Any] = {"image": np.zeros((1, 1, 1, 2), np.float32), "label": np.zeros((1, 1, 1), np.int64)}
    rows = Rows(KEYS, lambda key: volume_of(key) | wrong_at(key), sizes=size_of, types=types)
    summary = packed(tmp_path / "out", rows, on_bad="skip")
    assert [key for _, key, _ in summary.rejects] == [KEYS[7]]


def wrong_at(key: str) -> dict[str, Any]:
    return {"image": np.zeros((*size_of(key), 3), np.float32)} if key == KEYS[7] else {}


def test_the_command_shows_and_extracts_them(tmp_path: Path, in_process: None) -> None:
    packed(tmp_path / "out", Rows(KEYS, gray_of))
    assert "4x6x8" in run("inspect", str(tmp_path / "out"), KEYS[3]).output
    assert run("extract", "--all", str(tmp_path / "out"), str(tmp_path / "files")).exit_code == 0
    assert len(list((tmp_path / "files").rglob("*.nii.gz"))) == 2 * len(KEYS)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a picture": ({"label": np.zeros((6, 8), np.uint8)}, "[label]: has the shape (6, 8), and the rows are volumes; "),
    "five sides": ({"image": np.zeros((4, 6, 8, 2, 2))}, "[image]: has the shape (4, 6, 8, 2, 2), and the rows are "),
    "no slices": ({"image": np.zeros((0, 6, 8), np.int16)}, "[image]: has the shape (0, 6, 8), and the rows are vol"),
    "a file": ({"image": b"II*"}, "[image]: is the bytes of a file, and the rows are volumes; expected (D, H, W), or"),
    "planes first": (
        {"image": np.zeros((2, 4, 6, 88), np.int16)},
        "[image]: has the shape (4, 6, 88); expected (H, W), or (H, W, B) with 1 to 512 bands. Bands come last",
    ),
    "a label in bands": ({"label": np.zeros((4, 6, 8, 2), np.uint8)}, "[label]: slice 0: has 2 bands; a label has "),
    "another depth": (
        {"label": np.zeros((3, 6, 8), np.uint8)},
        "[image] is 4x6x8, its label case 7[label] is 3x6x8 (depth x height x width); they must have the same size",
    ),
    "another size": (
        {"image": np.zeros((5, 6, 8), np.int16), "label": np.zeros((5, 6, 8), np.uint8)},
        "[label] is 5x6x8, not 4x6x8 as sizes or the sample say; give the size of each: Rows(keys, load, sizes=...)",
    ),
    "negative": ({"label": gray_of("a")["label"] - 1}, "[label]: has the number -1 at ("),
    "no class": ({"label": gray_of("a")["label"] + 1}, "[label]: slice 0: has a value in no class (3: "),
    "another type": ({"image": np.zeros((4, 6, 8), np.int32)}, "[image]: "),
}


@pytest.mark.parametrize("case", BAD)
def test_an_array_that_cannot_be_a_volume_costs_its_row_alone(tmp_path: Path, in_process: None, case: str) -> None:
    wrong, reason = BAD[case]
    rows = Rows(KEYS, lambda key: {**gray_of(key), **(wrong if key == KEYS[7] else {})})
    summary = packed(tmp_path / "out", rows, on_bad="skip")
    assert [key for _, key, _ in summary.rejects] == [KEYS[7]]
    assert summary.rejects[0][2].startswith(f"{KEYS[7]}{reason}"), summary.rejects[0][2]


def test_several_sizes_need_the_size_of_each(tmp_path: Path, in_process: None) -> None:
    with pytest.raises(InputError, match=r"(?s)several sizes \(depth x height x width\); give Rows .*  1x9x11: "):
        packed(tmp_path / "out", Rows(KEYS, volume_of))
    with pytest.raises(UsageError, match=r"\(9, 11\) is not a \(depth, height, width\); give one, or build w"):
        packed(tmp_path / "out", Rows(KEYS, gray_of, sizes=(9, 11)))
    with pytest.raises(InputError, match=r"returned no size: expected \(depth, height, width\), found \(9, 11\)"):
        packed(tmp_path / "out", Rows(KEYS, gray_of, sizes=lambda key: (9, 11)))
    with pytest.raises(UsageError, match=r"is not a \(height, width\); give one, or build with volumes=True"):
        build_pack(Rows(KEYS, gray_of, sizes=(4, 6, 8)), tmp_path / "out", classes=NAMES)
    with pytest.raises(UsageError, match="volumes keep their own sizes"):
        packed(tmp_path / "out", Rows(KEYS, gray_of), size=(4, 4))
    assert not (tmp_path / "out").exists()
