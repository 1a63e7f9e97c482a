"""`packer extract`: the files are what was packed, and packing them gives the same rows."""

from __future__ import annotations

import csv
import shlex
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from any_pack import FIELDS, write_any_pack
from conftest import RawFolder, good, json_of, run, write_png

from packer import TargetError, UsageError, build_pack
from packer.packs.extract import extract_rows
from packer.packs.generations import receipt_paths
from packer.packs.write_rows import file_name
from packer.sources.rows import Rows
from readers import open_dataset
from readers.contract.bits import pack_bits
from readers.contract.kinds import BITS, MULTILABEL, ONEHOT
from readers.contract.manifest import Manifest
from readers.contract.onehot import expand
from readers.contract.receipt import Receipt
from readers.pack import Pack

pytestmark = pytest.mark.usefixtures("in_process")


def checksums(out: Path) -> list[tuple[str, str, tuple[int, ...]]]:
    """The split, the key and the checksum of each field of all rows of a pack."""
    receipts = [Receipt.load(path) for path in receipt_paths(out, Manifest.load(out))]
    return sorted(
        (receipt.split, key, sums)
        for receipt in receipts
        for key, sums in zip(receipt.keys, receipt.row_checksums, strict=True)
    )


def load(path: Path) -> Any:
    if path.suffix == ".npy":
        return np.load(path, allow_pickle=False)
    image = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    assert image is not None
    return image if image.ndim == 2 else image[:, :, ::-1]


@pytest.mark.parametrize("colours", [False, True])
@pytest.mark.parametrize("size", ["16x24", "native"])
def test_packing_what_was_extracted_gives_the_same_rows(
    packed_raw: Path, tmp_path: Path, size: str, colours: bool
) -> None:
    out, folder, again = tmp_path / "out", tmp_path / "files", tmp_path / "again"
    run("build", "--quiet", "--labels", "index", "--size", size, packed_raw, out)
    labels = "colours" if colours else "index"
    done = good("extract", "--all", "--quiet", "--labels", labels, out, folder)
    words = shlex.split(done.stderr.partition("packer build ")[2])
    good("build", *words[:-1], again)
    assert checksums(again) == checksums(out)


@pytest.fixture(scope="module")
def packed_raw(raw_folder: RawFolder) -> Path:
    return raw_folder.path


@pytest.mark.parametrize("native", [False, True])
def test_every_kind_of_field_is_what_was_packed(tmp_path: Path, native: bool) -> None:
    out, folder = tmp_path / "out", tmp_path / "files"
    rows = write_any_pack(out, "npy", varied=native)
    done = extract_rows(out, folder)
    table = list(csv.DictReader((folder / "pairs.csv").read_text(encoding="utf-8").splitlines()))
    assert len(table) == done.rows == Manifest.load(out).rows
    pack = Pack.open(out)
    pack.select([field.name for field in FIELDS])
    for number, cells in enumerate(table):
        shard, inside = pack.table.locate(number)
        for field in pack.fields_of(shard):
            stored = pack.shard(shard).row(field, inside)
            if field.kind == MULTILABEL:
                planes = np.zeros((len(field.classes or ()), *stored.shape[-2:]), np.uint8)
                for index, known in enumerate(field.classes.classes if field.classes else ()):
                    path = folder / cells["split"] / field.name / known.name / f"{cells['key']}.png"
                    planes[index] = load(path) // 255 if path.exists() else 0
                found: Any = pack_bits(planes) if field.form == BITS else planes
            else:
                image = load(folder / cells[field.name])
                found = image[None] if len(stored.shape) == 3 and image.ndim == 2 else image
                found = np.moveaxis(found, -1, 0) if image.ndim == 3 else found
                if field.form == ONEHOT:
                    found = expand(image, len(field.classes or ()))
            assert found.dtype == stored.dtype
            assert found.tobytes() == stored.tobytes(), field.name
        there = {field.name for field in pack.fields_of(shard)}
        assert {field.name for field in FIELDS if cells[field.name] or field.kind == MULTILABEL} == there
    assert rows


def test_some_rows(packed: Path, tmp_path: Path) -> None:
    train, val = (open_dataset(packed, split) for split in ("train", "val"))
    keys = [train.key(3), train.key(0), train.key(3)]
    done = json_of("extract", "--json", "--quiet", packed, *keys, "--split", "train", tmp_path / "some")
    assert (done["rows"], done["files"]) == (2, 4)
    assert run("extract", "--quiet", "--all", "--fields", "image", packed, tmp_path / "images").exit_code == 0
    assert not list((tmp_path / "images").rglob("labels"))
    names = {path.relative_to(tmp_path / "some").as_posix() for path in (tmp_path / "some").rglob("*.png")}
    assert names == {f"train/{folder}/{key}.png" for folder in ("images", "labels") for key in keys}
    both = extract_rows(packed, tmp_path / "both", [val.key(0)], fields=("image",))
    assert both.rows == both.files == 1 + (val.key(0) in [train.key(index) for index in range(len(train))])
    assert both.again == ()


HOSTILE = [
    "../../up",
    "/etc/passwd",
    "a/./b",
    "a//b",
    ".hidden",
    "%2E",
    "<script>alert(1)</script>",
    "x" * 500,
    "é" * 300,
]


def test_no_key_leads_out_of_the_folder(tmp_path: Path) -> None:
    images = {key: np.full((4, 6, 3), number, np.uint8) for number, key in enumerate(HOSTILE)}
    labels = np.zeros((4, 6), np.uint8)
    rows = Rows(list(images), lambda key: {"image": images[key], "label": labels})
    build_pack(rows, tmp_path / "out", classes=["../up", "b"], labels="index", workers=1)
    folder = tmp_path / "deep" / "files"
    extract_rows(tmp_path / "out", folder)
    table = list(csv.DictReader((folder / "pairs.csv").read_text(encoding="utf-8").splitlines()))
    assert sorted(row["key"] for row in table) == sorted(HOSTILE)
    for row in table:
        path = folder / row["image"]
        assert path.resolve().is_relative_to(folder.resolve())
        assert int(load(path)[0, 0, 0]) == HOSTILE.index(row["key"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "out"]
    assert len({file_name(key) for key in HOSTILE}) == len(HOSTILE)


def test_two_keys_never_share_a_file() -> None:
    keys = ["a", "%61", "%", "", "..", "%2E.", ".", "%2E", "a/b", "a%2Fb", "y" * 300, "y" * 301, "y" * 150 + "%~0"]
    assert len({file_name(key) for key in keys}) == len(keys)


def test_a_folder_with_something_in_it_is_refused(packed: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(TargetError, match="is not empty"):
        extract_rows(packed, tmp_path)
    with pytest.raises(TargetError, match="is not a folder"):
        extract_rows(packed, tmp_path / "notes.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_unknown_keys_are_named_together_and_nothing_is_written(packed: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'nobody', 'nothing'"):
        extract_rows(packed, tmp_path / "x", ["nobody", open_dataset(packed, "train").key(0), "nothing"])
    assert not list(tmp_path.iterdir())


def test_a_write_that_fails_leaves_nothing(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(path: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fails)
    with pytest.raises(TargetError, match="No space left"):
        extract_rows(packed, tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_classes_of_one_colour_are_not_extracted_as_colours(tmp_path: Path) -> None:
    rows = Rows(["a"], lambda key: {"image": np.zeros((2, 2, 3), np.uint8), "label": np.zeros((2, 2), np.uint8)})
    table = tmp_path / "classes.csv"
    table.write_text("value,name,colour,train_id\n0,a,#ff0000,0\n1,b,#ff0000,1\n")
    build_pack(rows, tmp_path / "out", classes=str(table), labels="index", label_codec="index", workers=1)
    with pytest.raises(UsageError, match="two classes have the same colour"):
        extract_rows(tmp_path / "out", tmp_path / "x", colours=True)
    extract_rows(tmp_path / "out", tmp_path / "x")
    assert (tmp_path / "x" / "classes.csv").read_text() == "value,name\n0,a\n1,b\n"


def test_spaces_of_keys_stay(tmp_path: Path) -> None:
    """They were lost, so that the rows had other keys in another order."""
    keys = [" lead", "b", "trail ", "two  spaces", " ; both\u00a0"]
    for key in keys:
        for name in ("images", "labels"):
            write_png(tmp_path / "raw" / name / f"{key}.png", np.full((4, 4), ord(key[-1]) % 2, np.uint8))
    out, folder, again = tmp_path / "out", tmp_path / "files", tmp_path / "again"
    options = ("--image", "images/{key}.png", "--label", "labels/{key}.png", "--classes", 2)
    assert run("build", *options, tmp_path / "raw", out).exit_code == 0
    done = run("extract", "--all", "--quiet", out, folder)
    words = shlex.split(done.stderr.partition("packer build ")[2])
    assert run("build", *words[:-1], again).exit_code == 0
    assert [key for _, key, _ in checksums(again)] == [key for _, key, _ in checksums(out)] == sorted(keys)
    assert checksums(again) == checksums(out)
