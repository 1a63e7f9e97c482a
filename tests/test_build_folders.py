"""RAW and OUT: either order where one is a pack, a raw folder that moved, and commands that get the wrong one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import RawFolder, errors_of, make_raw, pack, run

from readers.contract.manifest import Manifest

pytestmark = pytest.mark.usefixtures("in_process")


@pytest.fixture
def raw(tmp_path: Path) -> RawFolder:
    return make_raw(tmp_path / "raw", {"train": 4})


@pytest.fixture
def out(raw: RawFolder, tmp_path: Path) -> Path:
    return pack(raw.path, tmp_path / "out")


def damage(out: Path) -> bytes:
    """Change a byte of a shard; return the bytes that it had."""
    path = next((out / "shards").glob("*.npy"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    return whole


def test_raw_and_out_may_be_swapped_where_one_is_a_pack(raw: RawFolder, out: Path) -> None:
    for folders in ((raw.path, out), (out, raw.path)):
        assert run("diff", *folders).stdout.startswith("up to date")
        assert run("build", "--quiet", *folders).stdout.startswith(f"{out}: generation 1, 4 rows")
        assert f'out = "{out}"' in run("build", "--print-config", *folders).stdout
        whole = damage(out)
        assert run("repair", "--quiet", *folders).exit_code == 0
        assert next((out / "shards").glob("*.npy")).read_bytes() == whole
    assert sorted(path.name for path in raw.path.iterdir()) == ["class_dict.csv", "train"]


def test_swapped_folders_that_cannot_be_known_are_named(raw: RawFolder, out: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    assert f"RAW comes first: packer build {raw.path} {new}" in run("build", new, raw.path).stderr
    assert "name a new or an empty folder" in run("build", raw.path, raw.path).stderr
    assert "OUT comes first: packer stage OUT TARGET" in run("stage", raw.path, out).stderr
    assert not new.exists()


def test_a_pack_given_as_raw_is_named(out: Path, tmp_path: Path) -> None:
    assert f"{out}: is a packed data set, not a raw folder; packer info {out}" in errors_of(1, "probe", out)
    for new in (tmp_path / "new", out):
        errors = errors_of(2, "build", out, new)
        assert f"{out}: is a pack; to pack its rows again: packer build --from {out} {new}" in errors
    assert "is the pack that the rows come from; name another folder" in errors_of(2, "diff", out, out)
    (out / ".segpack").unlink()  # a copy without hidden files
    assert "is a packed data set" in run("probe", out).stderr


def test_a_raw_folder_given_as_a_pack_is_named(raw: RawFolder, tmp_path: Path) -> None:
    commands = (("info",), ("verify",), ("stats",), ("bench",), ("log",), ("gc",), ("repair",), ("diff", raw.path))
    for command in (*commands, ("stage", "--ram")):
        assert "it is a folder of raw pictures" in errors_of(1, *command, raw.path)
    assert "it is a folder of raw pictures" in run("stage", raw.path, tmp_path / "new").stderr


def test_repair_knows_the_raw_folder(raw: RawFolder, out: Path, tmp_path: Path) -> None:
    whole = damage(out)
    assert run("repair", "--quiet", out).exit_code == 0
    assert next((out / "shards").glob("*.npy")).read_bytes() == whole
    damage(out)
    config = tmp_path / "mine.toml"
    config.write_text("workers = 1\n")  # a configuration that does not name RAW
    assert run("repair", "--quiet", "--config", config, out).exit_code == 0
    assert Manifest.load(out).generation == 1


def test_repair_after_the_raw_folder_moved(raw: RawFolder, out: Path, tmp_path: Path) -> None:
    damage(out)
    moved = tmp_path / "moved"
    shutil.move(raw.path, moved)
    errors = errors_of(1, "repair", "--quiet", out)
    assert f"{raw.path}: does not exist, and {out} was built from it" in errors
    assert f"packer repair {out} RAW" in errors
    assert run("repair", "--quiet", out, moved).exit_code == 0
    (out / "packer.toml").write_text("workers = 1\n")
    damage(out)
    assert "does not say what it was built from" in run("repair", "--quiet", out).stderr
