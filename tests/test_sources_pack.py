"""A pack as a source: rows of any format become equal rows of any other, and rows that did not change are not read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import RawFolder, make_raw, make_varied_raw, pack, write_png
from drills.published import same

from packer.building import Summary, build
from packer.errors import InputError, RejectedError, UsageError
from packer.packs.diff import difference
from packer.packs.garbage import delete_garbage
from packer.packs.repair import repair_pack
from packer.plan.make_plan import make_plan
from packer.plan.request import Request, request_of
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Loaded, PackedPixels
from packer.sources.pack import PackSource
from packer.sources.reopen import reopen
from packer.workers.in_process import InProcess
from readers import open_dataset
from readers.contract.errors import DamagedError
from readers.contract.manifest import STORAGES, Manifest
from readers.contract.receipt import Receipt

pytestmark = pytest.mark.usefixtures("in_process")

SMALL = 30_000
ROWS = 23 + 9


def converting(source: PackSource, out: Path, storage: str = "npy", skip: bool = False, **options: Any) -> Request:
    options = {"classes": source.classes, "shard_size": SMALL, "on_bad": "skip" if skip else "fail", **options}
    return request_of(source, out, format=storage, **options)


def converted(source: PackSource, out: Path, storage: str = "npy", skip: bool = False, **options: Any) -> Summary:
    """Pack the rows of a pack into another one, in this process."""
    pool = InProcess(1, 60)
    plan = make_plan(converting(source, out, storage, skip, **options), pool=pool)
    return build(plan, lambda rows: None, pool)


def rows_of(out: Path) -> dict[tuple[str, str], tuple[Any, ...]]:
    """The types, shapes and bytes of image and label of each row."""
    found = {}
    for split in Manifest.load(out).splits:
        rows = open_dataset(out, split.name)
        arrays = ([tensor.numpy() for tensor in rows[number]] for number in range(len(rows)))
        for number, row in enumerate(arrays):
            found[split.name, rows.key(number)] = tuple((each.dtype, each.shape, each.tobytes()) for each in row)
    return found


@pytest.fixture
def own(tmp_path: Path) -> tuple[RawFolder, Path]:
    """A raw folder and its pack, to be changed."""
    raw = make_raw(tmp_path / "raw", {"train": 12, "val": 3})
    return raw, pack(raw.path, tmp_path / "in", "--shard-size", "12KB")


@pytest.mark.parametrize("to", STORAGES)
def test_a_pack_of_any_format_becomes_a_pack_of_any_other_with_equal_rows(
    packed: Path, tmp_path: Path, to: str
) -> None:
    converted(PackSource.at(packed), tmp_path / "out", to)
    before, after = Manifest.load(packed), Manifest.load(tmp_path / "out")
    assert rows_of(tmp_path / "out") == rows_of(packed)
    assert (after.storage, after.classes, after.statistics) == (to, before.classes, before.statistics)


@pytest.mark.parametrize("to", STORAGES)
@pytest.mark.parametrize("storage", STORAGES)
def test_rows_of_their_own_sizes_stay_as_they_are(tmp_path: Path, storage: str, to: str) -> None:
    raw = make_varied_raw(tmp_path / "raw", {"train": [(24, 36), (17, 5), (8, 8), (40, 30)], "val": [(9, 11)]})
    before = pack(raw.path, tmp_path / "in", "--size", "native", "--format", storage)
    converted(PackSource.at(before), tmp_path / "out", to, size="native")
    assert rows_of(tmp_path / "out") == rows_of(before)


def test_labels_change_their_form(packed: Path, packed_index: Path, tmp_path: Path) -> None:
    converted(PackSource.at(packed), tmp_path / "index", labels="index")
    converted(PackSource.at(packed_index), tmp_path / "onehot", labels="onehot")
    assert rows_of(tmp_path / "index") == rows_of(packed_index)
    assert rows_of(tmp_path / "onehot") == rows_of(packed)


@pytest.mark.parametrize(("stored", "becomes"), [("float16", "float16"), ("float32", "uint8"), ("uint8", "float32")])
def test_images_change_their_type(raw_folder: RawFolder, tmp_path: Path, stored: str, becomes: str) -> None:
    before = pack(raw_folder.path, tmp_path / "in", "--image-dtype", stored)
    expected = pack(raw_folder.path, tmp_path / "expected", "--image-dtype", becomes)
    converted(PackSource.at(before), tmp_path / "out", image_dtype=becomes)
    assert rows_of(tmp_path / "out") == rows_of(expected)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("size", [(12, 18), (11, 40), (48, 72)])
@pytest.mark.parametrize("fit", ["stretch", "letterbox", "crop-or-pad", "shorter-side"])
def test_another_size_is_that_of_the_same_pictures_packed_from_files(
    own: tuple[RawFolder, Path], tmp_path: Path, size: tuple[int, int], fit: str
) -> None:
    raw, before = own
    text = "x".join(map(str, size))
    expected = pack(raw.path, tmp_path / "expected", "--size", text, "--fit", fit)
    converted(PackSource.at(before), tmp_path / "out", size=size, fit=fit)
    assert rows_of(tmp_path / "out") == rows_of(expected)


def test_labels_of_16_bits_and_ignored_pixels_stay(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    for key in "abc":
        write_png(tmp_path / f"raw/images/{key}.png", rng.integers(0, 256, (12, 10, 3), dtype=np.uint8))
        write_png(tmp_path / f"raw/masks/{key}.png", rng.integers(0, 301, (12, 10)).astype(np.uint16))
    options = "--classes", "300", "--ignore", "300", "--labels", "index"
    before = pack(tmp_path / "raw", tmp_path / "in", *options)
    converted(PackSource.at(before), tmp_path / "out", labels="index")
    assert rows_of(tmp_path / "out") == rows_of(before)
    assert Manifest.load(tmp_path / "out").statistics == Manifest.load(before).statistics


def test_a_difference_names_the_field_that_changed(own: tuple[RawFolder, Path], tmp_path: Path) -> None:
    raw, before = own
    converted(PackSource.at(before), tmp_path / "out")
    shutil.copy(raw.path / "train/masks/street_005.png", raw.path / "train/masks/street_004.png")
    pack(raw.path, before, "--shard-size", "12KB")
    found = difference(make_plan(converting(PackSource.at(before), tmp_path / "out")))
    assert (found.added, found.changed, found.removed) == ((), ("train/street_004",), ())
    assert found.fields == {"train/street_004": ("label",)}


def test_a_generation_that_is_published_during_a_build_is_not_read(own: tuple[RawFolder, Path], tmp_path: Path) -> None:
    raw, before = own
    source, rows = PackSource.at(before), rows_of(before)
    write_png(raw.path / "train/images/street_004.png", raw.images["val", "street_000"])
    pack(raw.path, before, "--shard-size", "12KB")
    again = reopen(source.to_text())
    assert isinstance(again, PackSource)
    converted(again, tmp_path / "out")
    assert rows_of(tmp_path / "out") == rows != rows_of(before)


def test_a_pack_of_pictures_has_no_volumes(packed: Path) -> None:
    source = PackSource.at(packed)
    assert not source.gives_volumes
    with pytest.raises(UsageError, match="--volumes: the rows of this pack are pictures; build from the files"):
        source.as_volumes()


def test_another_pack_at_the_same_path_is_refused(own: tuple[RawFolder, Path], tmp_path: Path) -> None:
    raw, before = own
    text = PackSource.at(before).to_text()
    before.rename(tmp_path / "moved")
    pack(raw.path, before, "--labels", "index")
    with pytest.raises(DamagedError, match="is another pack now than when the build was planned"):
        reopen(text)


def damage(out: Path, key: str) -> Path:
    """Invert the first byte of the image of this row of split train. Return the file."""
    for path in out.glob("shards/train-*.receipt.json"):
        receipt = Receipt.load(path)
        if key in receipt.keys:
            file = path.with_name(f"{receipt.stem}.image.npy")
            data = bytearray(file.read_bytes())
            data[-3 * 24 * 36 * (receipt.rows - receipt.keys.index(key))] ^= 0xFF
            file.write_bytes(data)
            return file
    raise AssertionError(key)


def test_a_damaged_row_is_a_named_reject_until_it_is_repaired(own: tuple[RawFolder, Path], tmp_path: Path) -> None:
    _, before = own
    file = (before / "shards").glob("*")
    whole = {path: path.read_bytes() for path in file}
    damaged = damage(before, "street_005")
    with pytest.raises(RejectedError, match=r"1 of 15 pairs is bad"):
        converted(PackSource.at(before), tmp_path / "strict")
    summary = converted(PackSource.at(before), tmp_path / "out", skip=True)
    assert summary.rejects == (("train", "street_005", "train/street_005: its image does not have its checksum"),)
    assert summary.rows == 14
    damaged.write_bytes(whole[damaged])
    assert converted(PackSource.at(before), tmp_path / "out").rows == 15
    converted(PackSource.at(before), tmp_path / "fresh")
    assert same(tmp_path / "out", tmp_path / "fresh")


@pytest.mark.parametrize("storage", STORAGES)
def test_rows_of_a_file_that_is_cut_short_are_named(own: tuple[RawFolder, Path], storage: str) -> None:
    """A row that is read through a memory map would end the process there, without a word."""
    raw, before = own
    before = pack(raw.path, before.with_name(storage), "--format", storage, "--labels", "index")
    source = PackSource.at(before)
    refs = list(source.rows())
    assert source.load(refs[0]).bad is None, "opens the shard"
    for path in (before / "shards").glob("*"):
        if path.suffix != ".json":
            os.truncate(path, 0)
    assert "was it cut short?" in str(source.load(refs[1]).bad)


@pytest.mark.parametrize("deed", ["repaired", "damaged", "collected"])
def test_a_pack_may_change_while_it_is_read(
    own: tuple[RawFolder, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deed: str
) -> None:
    """Repair a damaged row when a build loads its first row; or damage one; or delete the shards by gc."""
    raw, before = own
    expected, load, loaded = rows_of(before), PackSource.load, list[RowRef]()
    sampled = list(PackSource.at(before).rows())  # all are inspected before work
    if deed == "repaired":
        damage(before, "street_011")

    def changing(source: PackSource, ref: RowRef) -> Loaded:
        loaded.append(ref)
        if len(loaded) == len(sampled) + 1:
            change(ref)
        return load(source, ref)

    def change(ref: RowRef) -> None:
        if deed == "repaired":
            assert repair_pack(before, raw.path, workers=1).damage
        elif deed == "damaged":
            damage(before, next(other.key for other in sampled if other.split == "train" and other.key != ref.key))
        else:
            for path in raw.path.rglob("images/*.png"):
                write_png(path, np.zeros((24, 36, 3), np.uint8))
            pack(raw.path, before, "--shard-size", "12KB")
            delete_garbage(before, 1, 0)

    monkeypatch.setattr(PackSource, "load", changing)
    if deed == "collected":
        with pytest.raises(RejectedError, match="packer gc has deleted generation 1"):
            converted(PackSource.at(before), tmp_path / "out")
        return
    summary = converted(PackSource.at(before), tmp_path / "out", skip=True)
    found = rows_of(tmp_path / "out")
    lost = {(split, key) for split, key, _ in summary.rejects}
    assert found == {name: row for name, row in expected.items() if name not in lost}
    assert bool(lost) == (deed != "repaired")
    monkeypatch.setattr(PackSource, "load", load)
    converted(PackSource.at(before), tmp_path / "out", skip=True)
    converted(PackSource.at(before), tmp_path / "fresh", skip=True)
    assert same(tmp_path / "out", tmp_path / "fresh")


def test_the_rows_of_a_missing_file_are_named(own: tuple[RawFolder, Path], tmp_path: Path) -> None:
    _, before = own
    path = next(iter(sorted(before.glob("shards/train-*.receipt.json"))))
    receipt = Receipt.load(path)
    path.with_name(f"{receipt.stem}.label.npy").unlink()
    summary = converted(PackSource.at(before), tmp_path / "out", skip=True)
    assert sorted(key for _, key, _ in summary.rejects) == sorted(receipt.keys)
    assert all("is missing" in reason for _, _, reason in summary.rejects)


def test_numbers_in_no_class_are_refused_although_the_checksum_is_right(
    own: tuple[RawFolder, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = PackSource.load

    def wrong(source: PackSource, ref: RowRef) -> Loaded:
        loaded = load(source, ref)
        return loaded._replace(data=(loaded.data[0], PackedPixels(loaded.data[1].pixels | np.uint8(8))))

    monkeypatch.setattr(PackSource, "load", wrong)
    with pytest.raises(RejectedError, match="numbers in its label that are in none of 4 classes"):
        converted(PackSource.at(own[1]), tmp_path / "out")


@pytest.mark.parametrize("row", ["9" * 5000, "-1", "1e3", "", "0/0", "\u0661" * 30])
def test_a_part_that_is_not_a_row_of_the_pack_is_refused(packed_index: Path, row: str) -> None:
    source = PackSource.at(packed_index)
    stem = next(iter(source.rows())).parts[0].partition("/")[0]
    source.check_parts([f"{stem}/0", ""])
    for part in (f"{stem}/{row}", f"other/{row}"):
        with pytest.raises(InputError, match="is not a row of"):
            source.check_parts([part])
