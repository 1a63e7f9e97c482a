"""`packer forget`: a row is gone from every generation, the others keep their bytes, and a kill leaves a whole pack."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from annotated_folders import annotated_folder, box
from conftest import SMALL_SHARDS, RawFolder, errors_of, good, make_raw, pack

from packer.errors import PinnedError, UsageError
from packer.packs.forget import forget_row
from packer.packs.garbage import delete_garbage
from packer.packs.verify import verify
from packer.publish.remarks import load_remarks
from packer.shards.scratch import mapped
from readers import open_dataset
from readers.contract import giant
from readers.contract.errors import UnknownKeyError
from readers.contract.manifest import STORAGES, Manifest, generation_path

WAYS = {
    "fixed": ("--size", "32x32"),
    "native": ("--size", "native"),
    "tiles": ("--fit", "tile", "--size", "16x16"),
    "encoded": ("--size", "32x32", "--encode", "image=zstd", "--encode", "label=zstd"),
}


@pytest.fixture
def raw(raw_folder: RawFolder, tmp_path: Path) -> Path:
    """Return a raw folder in which no two splits have the same key."""
    shutil.copytree(raw_folder.path, tmp_path / "raw")
    for path in [path for path in (tmp_path / "raw" / "val").rglob("*") if path.is_file()]:
        path.rename(path.with_name(path.name.replace("street", "lane")))
    return tmp_path / "raw"


def rows_of(out: Path, generation: int | None = None) -> dict[str, list[np.ndarray]]:
    """Return the fields of every row by split and key."""
    found = {}
    for split in Manifest.load(out, generation).splits:
        data = open_dataset(out, split.name, generation=generation)
        for row in range(len(data)):
            found[f"{split.name}/{data.key(row)}"] = [part.numpy() for part in data[row]]
    return found


def files_of(out: Path) -> dict[str, bytes]:
    """Return the content of the files of shards, with receipts and cells."""
    paths = [path for folder in ("shards", "cells") for path in (out / folder).iterdir()]
    return {str(path.relative_to(out)): path.read_bytes() for path in paths}


def receipt_of(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


def counts_of(out: Path) -> list[Any]:
    """Return the sums that the source counted in each shard."""
    return [receipt_of(path)["counts"] for path in (out / "shards").glob("*.receipt.json")]


def is_whole(out: Path, deep: bool = False) -> bool:
    return not verify(out, 1, lambda amount: None, deep=deep)


def names(out: Path, key: str) -> list[Path]:
    """Return the files of a pack that name a row."""
    return [path for path in out.rglob("*") if path.is_file() and key.encode() in path.read_bytes()]


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("way", WAYS)
def test_what_is_left_equals_a_build_without_the_row(storage: str, way: str, raw: Path, tmp_path: Path) -> None:
    options = ("--labels", "index", "--format", storage, *WAYS[way])
    out = pack(raw, tmp_path / "out", *options)
    key = next(iter(rows_of(out))).partition("/")[2].partition("@")[0]
    before = rows_of(out)
    proof = forget_row(out, key)
    assert {row.partition("/")[2].partition("@")[0] for row in proof.rows} == {key}
    after = rows_of(out)
    assert set(before) - set(after) == set(proof.rows)
    assert all(np.array_equal(a, b) for row in after for a, b in zip(after[row], before[row], strict=True))
    assert is_whole(out, deep=True)
    assert not names(out, key)
    for path in [path for path in raw.rglob("*") if path.stem == key]:
        path.unlink()
    fresh = pack(raw, tmp_path / "fresh", *options)
    assert files_of(out) == files_of(fresh)
    assert Manifest.load(out).splits == Manifest.load(fresh).splits
    night = json.loads(good("build", "--json", *options, raw, out).stdout)
    assert night["reused_rows"] == night["rows"], "the next build reads no raw file again"
    assert Manifest.load(out).generation == 1


def test_the_next_build_counts_annotated_objects_again(tmp_path: Path) -> None:
    shapes = [box("car", 2, 2, 8, 8), box("car", 4, 4, 3, 3), box("sky", 2, 2, 9, 9)]
    raw = annotated_folder(tmp_path / "raw", {f"a{number}": shapes for number in range(5)})
    out = pack(raw, tmp_path / "out", "--labels", "index")
    (sums,) = counts_of(out)
    assert sums
    forget_row(out, "a2")
    assert is_whole(out, deep=True)
    assert counts_of(out) == [sums], "what they are of the row is not known"
    for path in raw.glob("a2.*"):
        path.unlink()
    pack(raw, out, "--labels", "index")
    fresh = pack(raw, tmp_path / "fresh", "--labels", "index")
    assert Manifest.load(out).table == Manifest.load(fresh).table
    delete_garbage(out, keep=1, grace=0.0)
    assert files_of(out) == files_of(fresh)


def test_the_next_build_cuts_shards_where_a_fresh_one_does(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 30}).path
    start = pack(raw, tmp_path / "start", "--labels", "index", *SMALL_SHARDS)
    keys = sorted(receipt_of(path)["sources"][-1][0] for path in (start / "shards").glob("*.receipt.json"))
    assert len(keys) > 2
    out = shutil.copytree(start, tmp_path / "out")
    forget_row(out, keys[0])
    for path in raw.rglob(f"{keys[0]}.png"):
        path.unlink()
    pack(raw, out, "--labels", "index", *SMALL_SHARDS)
    fresh = pack(raw, tmp_path / "fresh", "--labels", "index", *SMALL_SHARDS)
    assert Manifest.load(out).table == Manifest.load(fresh).table


def test_rows_that_may_not_fit_into_memory_are_copied_in_a_file(
    raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = pack(raw, tmp_path / "out", "--labels", "index", *WAYS["encoded"])
    copy, key = shutil.copytree(out, tmp_path / "copy"), open_dataset(out, "train").key(1)
    forget_row(out, key)
    monkeypatch.setattr(giant, "GIANT", 0)
    with mock.patch("packer.packs.smaller_shard.mapped", wraps=mapped) as used:
        forget_row(copy, key)
    assert used.call_count == 2, "image and label"
    assert files_of(copy) == files_of(out)


@pytest.mark.parametrize("key", ['it\'s "here"', "back\\slash", "no\N{NO-BREAK SPACE}break", "street_00"])
def test_remarks_lose_the_lines_that_name_it_and_no_others(key: str, raw: Path, tmp_path: Path) -> None:
    for kind in ("images", "masks"):
        shutil.copyfile(raw / "train" / kind / "street_000.png", raw / "train" / kind / f"{key}.png")
        shutil.copyfile(raw / "train" / kind / "street_001.png", raw / "val" / kind / "twin.png")
        shutil.copyfile(raw / "train" / kind / "street_000.png", raw / "val" / kind / "copy.png")
    out = pack(raw, tmp_path / "out", "--labels", "index")
    remarks = load_remarks(out, Manifest.load(out))
    assert remarks is not None
    assert any(f"train/{key}" in pairs for _, pairs, _ in remarks.findings)
    forget_row(out, key)
    left = load_remarks(out, Manifest.load(out))
    assert left is not None
    assert {*left.findings} == {line for line in remarks.findings if f"train/{key}" not in line[1]}
    assert left.all_findings == len(left.findings) > 0


def test_every_kept_generation_loses_it(raw: Path, tmp_path: Path) -> None:
    out = pack(raw, tmp_path / "out", "--labels", "index")
    pack(raw, out, "--labels", "index", "--size", "32x32")
    key = open_dataset(out, "val").key(0)
    before = [Manifest.load(out, number).identity for number in (1, 2)]
    (line, *_) = good("forget", out, key).output.splitlines()
    assert f"forgot val/{key}; " in line
    assert not names(out, key)
    for number in (1, 2):
        assert f"val/{key}" not in rows_of(out, number)
        good("rollback", out, number)
        good("verify", "--deep", out)
    assert [Manifest.load(out, number).identity for number in (1, 2)] != before
    assert "no kept generation has a row" in errors_of(2, "forget", out, key)


def test_a_dry_run_changes_nothing_and_the_proof_names_receipts(raw: Path, tmp_path: Path) -> None:
    out = pack(raw, tmp_path / "out", "--labels", "index")
    key, before = open_dataset(out, "train").key(1), files_of(out)
    dry = json.loads(good("forget", "--dry-run", "--json", out, key).stdout)
    assert (dry["dry_run"], dry["rows"], dry["deleted"]) == (True, [f"train/{key}"], [])
    assert files_of(out) == before
    proof = json.loads(good("forget", "--json", out, key).stdout)
    (shard,) = proof["shards"]
    assert shard["receipt_before"] == dry["shards"][0]["receipt_before"]
    assert shard["rows_after"] == dry["shards"][0]["rows_after"]
    assert len(shard["receipt_after"]) == 64
    assert shard["rows_after"] == shard["rows_before"] - 1
    assert proof["generations"][0]["manifest_after"] == Manifest.load(out).identity
    assert {Path(name).stem for name in proof["raw"]} == {key}
    assert sorted(proof["deleted"]) == sorted(set(proof["deleted"]))


@pytest.mark.parametrize("storage", STORAGES)
def test_damage_of_another_row_gets_no_new_checksum(storage: str, raw: Path, tmp_path: Path) -> None:
    out = pack(raw, tmp_path / "out", "--labels", "index", "--format", storage)
    key, before = open_dataset(out, "train").key(1), files_of(out)
    stored = open_dataset(out, "train")[0][0].numpy().tobytes()[:64]
    (path,) = [path for path in (out / "shards").glob("train-*") if stored in path.read_bytes()]
    content = path.read_bytes()
    path.write_bytes(content.replace(stored, bytes(64)))
    assert f"packer repair {out} builds this shard again" in errors_of(4, "forget", out, key)
    path.write_bytes(content)
    assert files_of(out) == before, "nothing is published"
    good("forget", out, key)
    assert is_whole(out, deep=True)


def test_it_is_refused_where_the_row_is_held(raw: Path, tmp_path: Path) -> None:
    out = pack(raw, tmp_path / "out", "--labels", "index")
    key = open_dataset(out, "train").key(0)
    good("rollback", "--pin", out, 1)
    with pytest.raises(PinnedError, match="is pinned"):
        forget_row(out, key)
    good("unpin", out)
    with pytest.raises(UnknownKeyError, match="no kept generation has a row with the key 'absent'"):
        forget_row(out, "absent")
    with pytest.raises(UsageError, match="a row is forgotten in a folder"):
        forget_row("s3://bucket/out", key)
    (out / "tickets" / "0123").mkdir(parents=True)
    (out / "tickets" / "0123" / "of-2").touch()
    assert "parts of this plan have rows" in errors_of(75, "forget", out, key)


def test_a_key_of_two_splits_needs_the_split(raw_folder: RawFolder, tmp_path: Path) -> None:
    out = pack(raw_folder.path, tmp_path / "out", "--labels", "index")
    key = open_dataset(out, "train").key(0)
    assert f"train, val have a row '{key}' each; name those to forget: --split train" in errors_of(
        2, "forget", out, key
    )
    val = rows_of(out)[f"val/{key}"]
    good("forget", "--split", "train", out, key)
    assert f"train/{key}" not in rows_of(out)
    assert all(map(np.array_equal, rows_of(out)[f"val/{key}"], val))
    assert is_whole(out, deep=True)


def test_the_last_row_is_not_forgotten(raw: Path, tmp_path: Path) -> None:
    first, *others = sorted((raw / "train" / "images").iterdir())
    shutil.rmtree(raw / "val")
    for path in [path for other in others for path in raw.rglob(f"{other.stem}.*")]:
        path.unlink()
    out = pack(raw, tmp_path / "out", "--labels", "index")
    with pytest.raises(UsageError, match="generation 1 has no other row"):
        forget_row(out, first.stem)


@contextmanager
def killed_at(step: int) -> Iterator[list[int]]:
    """Raise at one of the renames and deletions of files."""
    seen = [0]
    real_replace, real_unlink = os.replace, Path.unlink

    def count() -> None:
        seen[0] += 1
        if seen[0] == step:
            raise KeyboardInterrupt

    def replaced(*names: object, **more: object) -> None:
        count()
        real_replace(*names, **more)  # type: ignore[arg-type]

    def unlinked(path: Path, missing_ok: bool = False) -> None:
        count()
        real_unlink(path, missing_ok)

    with mock.patch("os.replace", replaced), mock.patch.object(Path, "unlink", unlinked):
        yield seen


def test_after_a_kill_at_any_step_the_pack_is_whole_and_the_row_can_be_forgotten(raw: Path, tmp_path: Path) -> None:
    start = pack(raw, tmp_path / "start", "--labels", "index")
    pack(raw, start, "--labels", "index", "--size", "32x32")
    key = open_dataset(start, "train").key(0)
    ended = shutil.copytree(start, tmp_path / "ended")
    with killed_at(0) as steps:
        forget_row(ended, key)
    assert steps[0] > 10
    for step in range(1, steps[0] + 1):
        out = shutil.copytree(start, tmp_path / f"out{step}")
        with pytest.raises(KeyboardInterrupt), killed_at(step):
            forget_row(out, key)
        damaged = {damage.file for damage in verify(out, 1, lambda amount: None)}
        assert damaged <= {generation_path(out, 2)}, "a manifest comes before its kept copy"
        assert all(len(rows_of(out, number)) for number in (1, 2))
        try:
            forget_row(out, key)
        except UnknownKeyError:
            assert step > steps[0] - 3, "only the last files were to be deleted"
        assert not names(out, key)
        assert is_whole(out, deep=True)
        delete_garbage(out, grace=0.0)
        delete_garbage(ended, grace=0.0)
        assert files_of(out) == files_of(ended)
        shutil.rmtree(out)
