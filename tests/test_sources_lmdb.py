"""LMDBs of picture files as a source: keys, patterns, and files in which nothing is believed."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import lmdb
import numpy as np
import pytest
from conftest import good
from drills.damaged_packs import Worker
from stored_scenes import lmdb_entries, png, scenes_of, write_lmdb

from packer import build_pack
from packer.errors import InputError, UsageError
from packer.sources.archives.lmdb_pictures import LmdbPicturesSource
from packer.sources.container import Names
from readers.contract.manifest import Manifest

pytestmark = pytest.mark.usefixtures("in_process")

SCENES = scenes_of({f"k{number}": number for number in range(5)})
IMAGE, LABEL = (png(pixels) for pixels in SCENES["k0"])


def source_of(path: Path, *names: str | None) -> LmdbPicturesSource:
    return LmdbPicturesSource.at(path, Names(*names))


def keys_of(source: LmdbPicturesSource) -> dict[str, tuple[str, ...]]:
    return {ref.key: tuple(source.position(part).name for part in ref.parts) for ref in source.rows()}


@pytest.mark.parametrize(
    ("image", "label", "names"),
    [
        ("image-7", "label-7", ()),
        ("images/7", "masks/7", ()),
        ("7_img", "7_gt", ()),
        ("7.rgb.jpg", "7.seg.png", ()),
        ("a7", "b7", ("a{key}", "b{key}")),
    ],
)
def test_keys_are_known_or_described(tmp_path: Path, image: str, label: str, names: tuple[str, ...]) -> None:
    write_lmdb(tmp_path / "data.mdb", {image: IMAGE, label: LABEL, "__len__": b"1"})
    source = source_of(tmp_path, *names)
    assert keys_of(source) == {"7": (image, label)}
    assert not source.missing


def test_values_of_every_length_are_read_as_liblmdb_reads_them(tmp_path: Path) -> None:
    """In leaves and in pages of their own, before and after other values were removed."""
    dice = np.random.default_rng(0)
    keys = [f"{word}-{row:03}" for row in range(300) for word in ("image", "label")]
    values = {key: dice.bytes(int(dice.integers(0, 9000))) for key in keys}
    write_lmdb(tmp_path / "data.mdb", values)
    with lmdb.open(str(tmp_path / "data.mdb"), subdir=False, lock=False, map_size=1 << 24) as environment:
        for start in range(0, 300, 3):
            with environment.begin(write=True) as transaction:
                for word in ("image", "label"):
                    transaction.delete(f"{word}-{start:03}".encode())
                    del values[f"{word}-{start:03}"]
    source = source_of(tmp_path)
    refs = list(source.rows())
    assert len(refs) == 200
    for ref in refs:
        assert source.load(ref).data == (values[f"image-{ref.key}"], values[f"label-{ref.key}"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.mdb"]


def test_a_value_that_is_a_pickle_is_a_bad_row(tmp_path: Path) -> None:
    write_lmdb(tmp_path / "data.mdb", {**lmdb_entries(SCENES), "label-k2": pickle.dumps(SCENES["k2"][1])})
    summary = build_pack(tmp_path / "data.mdb", tmp_path / "out", classes=4, on_bad="skip")
    ((_, key, reason),) = summary.rejects
    assert (key, summary.rows) == ("k2", 4)
    assert "label-k2: is not a PNG" in reason


def test_an_environment_folder_and_folders_of_splits_are_packed(tmp_path: Path) -> None:
    for split, keys in (("train", ("k0", "k1", "k2")), ("val", ("k3", "k4"))):
        (tmp_path / "lmdbs" / split).mkdir(parents=True)
        write_lmdb(tmp_path / "lmdbs" / split / "data.mdb", lmdb_entries({key: SCENES[key] for key in keys}))
        (tmp_path / "lmdbs" / split / "lock.mdb").write_bytes(bytes(64))
    good("build", "--quiet", "--classes", "4", "--from", tmp_path / "lmdbs", tmp_path / "out")
    assert [(split.name, split.rows) for split in Manifest.load(tmp_path / "out").splits] == [("train", 3), ("val", 2)]
    good("build", "--quiet", "--classes", "4", "--from", tmp_path / "lmdbs/val", tmp_path / "val")
    assert [split.rows for split in Manifest.load(tmp_path / "val").splits] == [2]


def test_entries_without_a_partner_and_unclear_ones_are_named(tmp_path: Path) -> None:
    entries = lmdb_entries(SCENES)
    del entries["label-k1"]
    write_lmdb(tmp_path / "data.mdb", entries)
    with pytest.raises(InputError, match=r"1 samples lack a field.*\n.*data.mdb/k1: has no label"):
        build_pack(tmp_path / "data.mdb", tmp_path / "out", classes=4)
    source = source_of(tmp_path, "{key}", "{key}")
    assert not list(source.rows())
    assert "fits --image and --label equally well" in str(source.problems[0])
    write_lmdb(tmp_path / "data.mdb", {"image-7": IMAGE, "img-7": IMAGE, "label-7": LABEL})
    source = source_of(tmp_path)
    assert not list(source.rows())
    assert "has several images of '7'; name them" in str(source.problems[0])
    for wrong in ("image", "{key}-{split}", "{split}"):
        with pytest.raises(UsageError, match=r"expected the key of an entry with \{key\} once"):
            list(source_of(tmp_path, wrong, "{key}").rows())


def test_a_damaged_file_is_named_or_costs_rows(tmp_path: Path) -> None:
    path = tmp_path / "data.mdb"
    write_lmdb(path, lmdb_entries(SCENES))
    whole, dice = path.read_bytes(), np.random.default_rng(0)
    for size in (0, 10, 100, 4096, 8192, len(whole) - 4096):
        path.write_bytes(whole[:size])
        source = source_of(path)
        list(source.rows())
        assert [problem.files for problem in source.problems] == [("data.mdb",)], size
    for _ in range(400):
        data = bytearray(whole)
        start = 4096 * int(dice.integers(len(data) // 4096))  # of a page, where its header and its pointers are
        at = start + int(dice.integers(200 if dice.random() < 0.7 else 4096))
        data[at : at + 4] = dice.bytes(4)
        path.write_bytes(data)
        source = source_of(path)
        for ref in source.rows():
            found = source.load(ref)
            assert found.bad is not None or len(found.data) == 2


def list_and_cut(path: Path) -> str:
    """Cut a file after its first rows were listed, and name what becomes of the others."""
    source = source_of(path)
    rows = source.rows()
    next(rows)
    os.truncate(path / "data.mdb", 2 * 4096)
    return f"{sum(1 for _ in rows)} rows, {'; '.join(map(str, source.problems))}"


def test_a_file_that_is_cut_while_it_is_listed_is_a_problem(tmp_path: Path) -> None:
    """Through a map it would end the process with SIGBUS."""
    write_lmdb(tmp_path / "data.mdb", {f"{word}-{row:03}": b"" for row in range(500) for word in ("image", "label")})
    worker = Worker(list_and_cut)
    worker.ask(tmp_path)
    answer = worker.answer()
    worker.close()
    assert "data.mdb: is damaged or cut off: " in answer, answer
