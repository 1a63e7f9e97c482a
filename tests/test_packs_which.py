"""`packer which`: the rows that a raw file went into, over generations and packs."""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest
from conftest import RawFolder, errors_of, good, pack, pack_from, run
from drills.volumes import nifti

from packer.errors import InputError
from packer.packs.which import rows_of_file
from readers import open_dataset
from readers.contract.errors import DamagedError


@pytest.fixture
def raw(raw_folder: RawFolder, tmp_path: Path) -> Path:
    shutil.copytree(raw_folder.path, tmp_path / "raw")
    return tmp_path / "raw"


def test_a_file_is_found_by_its_bytes_in_every_generation_and_pack(raw: Path, tmp_path: Path) -> None:
    image = sorted((raw / "train" / "images").iterdir())[0]
    packs = [pack(raw, tmp_path / "packs" / name, "--labels", "index") for name in ("a", "deep/b")]
    pack(raw, packs[0], "--labels", "index", "--size", "32x32")
    moved = shutil.copy(image, tmp_path / "moved.bin")
    for file in (image, moved):
        rows = rows_of_file(file, [tmp_path / "packs"])
        read = sorted((row.pack, row.generations) for row in rows)
        assert read == [(str(packs[0]), (1,)), (str(packs[0]), (2,)), (str(packs[1]), (1,))]
        assert {(row.split, row.key, row.fields, row.same_bytes) for row in rows} == {
            ("train", image.stem, ("image",), True)
        }
        assert {row.path for row in rows} == {image.relative_to(raw).as_posix()}


def test_a_file_that_is_gone_or_has_changed_is_found_by_its_path(raw: Path, tmp_path: Path) -> None:
    out = pack(raw, tmp_path / "out", "--labels", "index")
    label = sorted((raw / "val" / "masks").iterdir())[0]
    label.write_bytes(label.read_bytes() + b"more")
    (row,) = rows_of_file(label, [out])
    assert (row.split, row.key, row.fields, row.same_bytes) == ("val", label.stem, ("label",), False)
    label.unlink()
    assert [found.same_bytes for found in rows_of_file(label, [out])] == [None]
    assert not rows_of_file(raw / "train" / "masks" / "absent.png", [out])


def test_it_prints_a_table_and_json(raw: Path, tmp_path: Path) -> None:
    out = pack(raw, tmp_path / "out", "--labels", "index")
    image = sorted((raw / "train" / "images").iterdir())[0]
    head, line = good("which", image, out).output.splitlines()
    assert head.split() == ["pack", "generations", "row", "fields", "read"]
    assert line.split() == [str(out), "1", f"train/{image.stem}", "image", image.relative_to(raw).as_posix()]
    (row,) = json.loads(good("which", "--json", image, out).stdout)
    assert (row["key"], row["generations"]) == (image.stem, [1])
    (tmp_path / "other").write_text("other")
    assert "went into no row" in errors_of(1, "which", tmp_path / "other", out)


def test_a_folder_without_packs_is_refused(raw: Path) -> None:
    with pytest.raises(InputError, match="there is no pack here"):
        rows_of_file(raw / "x.png", [raw])


@pytest.mark.parametrize("name", ["generations/000001.json", "generations/*.npy", "shards/train-*.receipt.json"])
def test_what_is_damaged_is_named_and_hides_no_other_row(name: str, raw: Path, tmp_path: Path) -> None:
    whole, broken = (pack(raw, tmp_path / "packs" / each, "--labels", "index") for each in ("whole", "broken"))
    (path,) = broken.glob(name)
    path.write_bytes(b"{}")
    image = sorted((raw / "train" / "images").iterdir())[0]
    found = run("which", image, tmp_path / "packs")
    assert found.exit_code == 4
    assert [line.split()[0] for line in found.stdout.splitlines()[1:]] == [str(whole)]
    assert path.name in found.stderr
    with pytest.raises(DamagedError):
        rows_of_file(image, [tmp_path / "packs"])


def test_a_pack_that_is_named_twice_or_linked_is_looked_at_once(raw: Path, tmp_path: Path) -> None:
    out = pack(raw, tmp_path / "packs" / "out", "--labels", "index")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "current").symlink_to(out)
    (tmp_path / "links" / "circle").symlink_to(tmp_path / "links")
    image = sorted((raw / "train" / "images").iterdir())[0]
    assert len(rows_of_file(image, [out, tmp_path / "packs", tmp_path / "links"])) == 1
    assert len(rows_of_file(image, [tmp_path / "links"])) == 1


@pytest.mark.parametrize("options", [(), ("--volumes",)], ids=["slices", "volumes"])
def test_a_volume_is_found_by_its_path_and_no_other_bytes_are_claimed(options: tuple[str, ...], tmp_path: Path) -> None:
    for folder, name in (("imagesTr", "case_0000.nii.gz"), ("labelsTr", "case.nii.gz")):
        (tmp_path / "raw" / folder).mkdir(parents=True)
        (tmp_path / "raw" / folder / name).write_bytes(gzip.compress(nifti(np.ones((4, 6, 8), np.uint8))))
    (tmp_path / "names.txt").write_text("background\norgan\n")
    named = ("--classes", tmp_path / "names.txt", "--size", "native")
    out = pack_from(tmp_path / "raw", tmp_path / "out", *named, *options)
    rows = rows_of_file(tmp_path / "raw" / "imagesTr" / "case_0000.nii.gz", [out])
    assert len(rows) == len(open_dataset(out, "all"))
    assert {(row.fields, row.same_bytes) for row in rows} == {(("image",), None)}


def test_an_archive_is_found_by_its_path_and_a_member_by_its_bytes(raw: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "train-0.tar", "w") as archive:
        for key in ("street_000", "street_001"):
            archive.add(raw / "train" / "images" / f"{key}.png", f"{key}.png")
            archive.add(raw / "train" / "masks" / f"{key}.png", f"{key}.mask.png")
    codec = ("--label-codec", "colour", "--classes", raw / "class_dict.csv")
    out = pack_from(tmp_path / "train-0.tar", tmp_path / "out", *codec)
    assert [row.key for row in rows_of_file(tmp_path / "train-0.tar", [out])] == ["street_000", "street_001"]
    (member,) = rows_of_file(raw / "train" / "images" / "street_001.png", [out])
    assert (member.key, member.fields, member.same_bytes) == ("street_001", ("image",), True)
