"""Staging: a copy is complete or not used, is found by its manifest, and stays as long as a data set reads it."""

from __future__ import annotations

import fcntl
import gc
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import HANG, RawFolder, calls_of, ended, good, json_of, make_raw, run
from drills.histories import change
from drills.processes import start
from drills.published import published
from scenes.tiny import age
from test_packs_verify import flip
from test_shards_reuse import built
from torch.utils.data import DataLoader

import packer.packs.stage
import packer.publish.free_space as free_space_module
from packer.errors import TargetError, UsageError
from packer.packs.stage import stage_pack
from packer.packs.staged_copies import copy_folder
from packer.publish.free_space import free_space, in_memory
from readers import DamagedError, SegDataset, open_dataset
from readers import staged_copies as staged
from readers.contract.atomic import move_into_place, partial_path
from readers.contract.files import sha256
from readers.contract.json_entry import fingerprint
from readers.contract.manifest import MANIFEST, Manifest
from readers.contract.shard_table import ShardTable, table_path
from readers.stores.private_folder import is_private

pytestmark = pytest.mark.usefixtures("in_process")

PRIVATE = f"segpack-{os.geteuid()}"


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set up a machine without staged copies."""
    monkeypatch.delenv(staged.FOLDERS_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "memory").mkdir()
    for module in (staged, packer.packs.stage):
        monkeypatch.setattr(module, "MEMORY", tmp_path / "memory")


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk"


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = make_raw(tmp_path / "raw", {"train": 12, "val": 4}).path
    age(folder)
    return folder


@pytest.fixture
def out(raw: Path, tmp_path: Path) -> Path:
    """A pack of several shards, which a test may change."""
    built(raw, tmp_path / "out")
    return tmp_path / "out"


def stage(*arguments: object) -> Any:
    return json.loads(good("stage", "--quiet", "--json", *arguments).stdout)


def refused(code: int, *arguments: object) -> str:
    done = run("stage", "--quiet", *arguments)
    assert done.exit_code == code, done.output
    return done.stderr


def listed() -> Any:
    return json_of("stage", "--list", "--json")


def rows(dataset: SegDataset) -> list[bytes]:
    return [image.numpy().tobytes() + label.numpy().tobytes() for image, label in dataset]


def unpickled(data: bytes) -> SegDataset:
    dataset = pickle.loads(data)  # noqa: S301 - our own
    assert isinstance(dataset, SegDataset)
    return dataset


def next_night(raw: Path, out: Path, seed: int = 900) -> None:
    change(raw, "change", 3, seed)
    built(raw, out)


# --- the copy ---


def test_the_copy_is_a_pack_and_open_dataset_reads_it(packed: Path, disk: Path) -> None:
    facts = stage(packed, disk)
    copy = Path(facts["path"])
    assert copy.parent == disk / PRIVATE
    assert facts["copied_shards"] == facts["shards"] > 1
    assert published(copy) == published(packed)
    assert (copy / MANIFEST).read_bytes() == (packed / MANIFEST).read_bytes()
    assert run("verify", "--deep", copy).exit_code == 0
    assert run("info", copy).stdout == run("info", packed).stdout
    for split in ("train", "all"):
        near, far = open_dataset(packed, split), open_dataset(packed, split, staged=False)
        assert (near.root, far.root) == (copy, packed)
        assert rows(near) == rows(far)
        assert type(near) is type(far)
    images, _ = next(iter(open_dataset(packed, "train").loader(4)))
    assert len(images) == 4


def test_native_packs_are_staged_like_others(native: Path, disk: Path) -> None:
    copy = Path(stage(native, disk)["path"])
    near, far = open_dataset(native, "train"), open_dataset(native, "train", staged=False)
    assert near.root == copy
    assert rows(near) == rows(far)
    assert run("verify", "--deep", copy).exit_code == 0


def test_digests_are_checked_in_the_copy(packed: Path, disk: Path) -> None:
    copy = Path(stage(packed, disk)["path"])
    whole = open_dataset(packed, "all", verify="digest")
    assert whole.root == copy
    assert len(rows(whole)) == 32
    victim = next(path for path in sorted(copy.glob("shards/train*")) if not path.name.endswith("receipt.json"))
    flip(victim, victim.stat().st_size // 2, 3)
    with pytest.raises(DamagedError, match=victim.name):
        rows(open_dataset(packed, "all", verify="digest"))
    damaged = run("verify", "--quiet", copy)
    assert damaged.exit_code == 4
    assert victim.name in damaged.stdout


def test_into_memory_listed_and_dropped(packed: Path, disk: Path, tmp_path: Path) -> None:
    assert run("stage", "--list").stdout == "nothing is staged on this machine\n"
    stage(packed, disk)
    copy = Path(stage("--ram", packed)["path"])
    assert copy.parent == tmp_path / "memory" / PRIVATE
    assert open_dataset(packed, "all").root == copy, "memory is nearer"
    assert [(copy["source"], copy["generation"]) for copy in listed()] == [(str(packed), 1)] * 2
    assert listed()[0]["bytes"] > Manifest.load(packed).bytes
    assert f"{packed}: generation 1, " in run("stage", "--list").stdout
    gc.collect()
    assert run("stage", "--drop", packed).stdout.count("dropped") == 2
    assert listed() == []
    assert open_dataset(packed, "all").root == packed
    assert not list(copy.parent.iterdir())


def test_a_copy_is_dropped_by_its_own_path_and_when_its_source_is_gone(out: Path, disk: Path) -> None:
    copy = stage(out, disk)["path"]
    stage("--ram", out)
    assert run("stage", "--drop", copy).exit_code == 0
    assert len(listed()) == 1
    shutil.rmtree(out)
    assert run("stage", "--drop", out).exit_code == 0
    assert "has no known copy" in refused(1, "--drop", out)


# --- generations ---


def test_the_next_generation_copies_only_changed_shards(raw: Path, out: Path, disk: Path, tmp_path: Path) -> None:
    first = stage(out, disk)
    assert stage(out, disk)["copied_shards"] == 0
    next_night(raw, out)
    assert open_dataset(out, "all").root == out, "the copy is of another generation"
    second = stage(out, disk)
    assert second["path"] == first["path"]
    assert (second["generation"], 0 < second["copied_shards"] < second["shards"] / 2) == (2, True)
    (tmp_path / "other").mkdir()
    straight = Path(stage(out, tmp_path / "other")["path"])
    assert published(Path(second["path"])) == published(straight)
    names = [{str(path.relative_to(root)) for path in root.rglob("*")} for root in (Path(second["path"]), straight)]
    assert names[0] == names[1], "files that only the first generation used are gone"


def test_gc_names_copies_of_generations_that_are_gone(raw: Path, out: Path, disk: Path) -> None:
    copy = stage(out, disk)["path"]
    assert json_of("gc", "--json", out)["outdated_copies"] == []
    next_night(raw, out)
    gc = ("gc", "--keep", "1", "--grace", "0", out)
    assert copy not in good(*gc[:-1], "--dry-run", out).stdout
    assert f"packer stage --drop {copy} removes it" in good(*gc).stdout
    assert json_of("gc", "--json", out)["outdated_copies"] == [copy]
    stage(out, disk)
    assert json_of("gc", "--json", out)["outdated_copies"] == []


def test_a_generation_stays_while_a_data_set_reads_it(raw: Path, out: Path, disk: Path) -> None:
    stage(out, disk)
    reader = open_dataset(out, "all")
    expected = rows(open_dataset(out, "all", staged=False))
    next_night(raw, out)
    run("gc", "--keep", 1, "--grace", "0s", out)
    copy = Path(stage(out, disk)["path"])
    assert sorted(path.stem for path in copy.glob("generations/0*")) == ["000001", "000002"]
    assert rows(reader) == expected, "shards that it opens only now are still there"
    again = unpickled(pickle.dumps(reader))
    assert (again.root, again.manifest.generation) == (copy, 1), "OUT itself has no such generation any more"
    del reader, again
    gc.collect()
    stage(out, disk)
    assert [path.stem for path in copy.glob("generations/0*")] == ["000002"]
    assert run("verify", copy).exit_code == 0


def test_a_reader_survives_any_number_of_generations(raw: Path, out: Path, disk: Path) -> None:
    stage(out, disk)
    reader = open_dataset(out, "all")
    expected = rows(open_dataset(out, "all", staged=False))
    next_night(raw, out)
    for generation in (2, 1, 2, 2):
        assert run("rollback", out, generation).exit_code == 0
        assert stage(out, disk)["generation"] == generation
    assert rows(reader) == expected


def test_a_rebuilt_pack_does_not_replace_a_generation_that_is_read(raw: Path, out: Path, disk: Path) -> None:
    """A rebuilt pack reuses the generation numbers of the old one."""
    stage(out, disk)
    reader = open_dataset(out, "all")
    expected = rows(open_dataset(out, "all", staged=False))
    shutil.rmtree(out)
    built(raw, out, "--labels", "index")
    assert open_dataset(out, "all").root == out
    assert "a data set is reading another generation 1" in refused(75, out, disk)
    assert rows(reader) == expected
    del reader
    gc.collect()
    copy = Path(stage(out, disk)["path"])
    assert published(copy) == published(out)
    assert run("verify", copy).exit_code == 0


def test_a_copy_in_use_is_not_dropped(out: Path, disk: Path) -> None:
    stage(out, disk)
    loader = open_dataset(out, "train").loader(4)
    assert "a data set is reading generation 1" in refused(75, "--drop", out)
    assert len(list(loader)) == 3
    del loader
    gc.collect()
    assert run("stage", "--drop", out).exit_code == 0


def test_after_a_rollback_the_older_generation_is_staged(raw: Path, out: Path, disk: Path) -> None:
    next_night(raw, out)
    stage(out, disk)
    assert run("rollback", out, 1).exit_code == 0
    assert open_dataset(out, "all").root == out
    copy = Path(stage(out, disk)["path"])
    assert Manifest.load(copy).generation == 1
    assert open_dataset(out, "all").root == copy
    assert run("verify", copy).exit_code == 0


READING = """
import hashlib, pickle, sys
from readers import open_dataset
rows, near = {}, 0
for turn in range(60):
    data = open_dataset(sys.argv[1], "all")
    data = pickle.loads(pickle.dumps(data)) if turn % 2 else data
    digest = hashlib.sha256(b"".join(part.numpy().tobytes() for sample in data for part in sample)).hexdigest()
    assert rows.setdefault(data.manifest.generation, digest) == digest
    near += str(data.root) != sys.argv[1]
print(near, *rows)
"""


def test_a_reader_reads_the_right_rows_while_copies_are_staged_and_dropped(raw: Path, out: Path, disk: Path) -> None:
    next_night(raw, out)
    stage(out, disk)
    command = [sys.executable, "-c", READING, str(out)]
    reader = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    turn = 0
    while reader.poll() is None:
        assert run("rollback", out, turn % 2 + 1).exit_code == 0
        assert run("stage", "--quiet", out, disk).exit_code == 0
        if turn % 5 == 4:
            assert run("stage", "--drop", out).exit_code in (0, 75)
        turn += 1
    output, _ = reader.communicate()
    assert reader.returncode == 0
    near, *generations = map(int, output.split())
    assert near > 5
    assert sorted(generations) == [1, 2]


# --- damage, and concurrent processes ---


def test_a_damaged_source_is_named_and_the_copy_stays(raw: Path, out: Path, disk: Path) -> None:
    copy = Path(stage(out, disk)["path"])
    before = published(copy)
    next_night(raw, out)
    there = set(before)
    new = [path for path in sorted(out.glob("shards/*")) if path.name not in there]
    table = table_path(out, Manifest.load(out).table)
    for victim in (*new, table, out / MANIFEST):
        whole = victim.read_bytes()
        flip(victim, len(whole) // 2, 1)
        assert victim.name in refused(4, out, disk), victim
        victim.write_bytes(whole[:-1])
        assert victim.name in refused(4, out, disk), victim
        victim.write_bytes(whole)
        assert (Manifest.load(copy).generation, published(copy)) == (1, before)
        assert not list(copy.rglob(".partial-*"))
    assert stage(out, disk)["generation"] == 2


def test_links_out_of_the_pack_and_pipes_are_refused(out: Path, disk: Path, tmp_path: Path) -> None:
    victim = next(out.glob("shards/*.image.npy"))
    shutil.move(victim, tmp_path / "elsewhere")
    victim.symlink_to(tmp_path / "elsewhere")
    assert "link that leads out" in refused(4, out, disk)
    victim.unlink()
    os.mkfifo(victim)
    assert "not a plain file" in refused(4, out, disk)


def test_all_damage_is_reported_at_once_and_intact_shards_are_kept(out: Path, disk: Path) -> None:
    victims = sorted(out.glob("shards/*.image.npy"))[:2]
    whole = [path.read_bytes() for path in victims]
    for path in victims:
        flip(path, 200, 0)
    words = refused(4, out, disk)
    assert all(path.name in words for path in victims)
    for path, data in zip(victims, whole, strict=True):
        path.write_bytes(data)
    assert stage(out, disk)["copied_shards"] == 2


def test_a_table_that_names_files_elsewhere_writes_nothing_there(out: Path, disk: Path) -> None:
    """All checksums of this hostile pack fit: an attacker can compute them, too."""
    manifest = Manifest.load(out)
    old = table_path(out, manifest.table)
    stem = ShardTable.open(out, manifest).fingerprint(0)
    lie = "a/../../evil".ljust(32, "x")
    table = old.read_bytes().replace(stem.encode(), lie.encode())
    (out / "shards" / "train-a").mkdir()
    receipt = next(out.glob(f"shards/*{stem}.receipt.json"))
    target = Path(os.path.normpath(out / "shards" / f"train-{lie}"))
    shutil.copy(receipt, target.with_name(target.name + ".receipt.json"))
    old.write_bytes(table)
    document = json.loads((out / MANIFEST).read_text())
    document["table"] = sha256(old)
    del document["checksum"]
    document["checksum"] = fingerprint(document)
    old.rename(table_path(out, document["table"]))
    (out / MANIFEST).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    assert Manifest.load(out).table == document["table"]
    assert "for its fingerprint; expected" in refused(4, out, disk)
    assert not list(disk.rglob("*evil*"))


def test_an_interrupted_stage_continues(out: Path, disk: Path) -> None:
    shards = Manifest.load(out).shards
    for survivors in range(0, 4 * shards + 1, 5):
        left = [survivors]

        def fail(written: Path, target: Path, left: list[int] = left) -> None:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            move_into_place(written, target)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("packer.packs.copy_shards.move_into_place", fail)
            done = run("stage", "--quiet", "--workers", 1, out, disk)
        assert (done.exit_code, done.stderr) == (130, "packer: interrupted; nothing was published\n")
        copy = copy_folder(out, disk)
        assert not (copy / MANIFEST).exists()
        assert not list(copy.rglob(".partial-*"))
        assert open_dataset(out, "all").root == out
        again = stage(out, disk)
        assert shards - survivors // 4 == again["copied_shards"]
        assert published(copy) == published(out)
        assert run("stage", "--drop", out).exit_code == 0


SLOWLY = """
import time
from readers.stores.folder_store import FolderStore
fetch = FolderStore.fetch
def slowly(self, name, write):
    def slow(piece):
        for begin in range(0, len(piece), 1000):
            time.sleep(0.5)
            write(piece[begin : begin + 1000])
    fetch(self, name, write if name.endswith(".json") else slow)
FolderStore.fetch = slowly
from packer.__main__ import main
main()
"""


def is_writing(folder: Path) -> bool:
    """Return true if a new file lies in `folder`. `os.walk` passes over files that vanish; `Path.rglob` raises."""
    return any(Path(place).name.startswith(".partial-") and "new" in files for place, _, files in os.walk(folder))


@pytest.mark.parametrize(("number", "word"), [(signal.SIGTERM, "terminated"), (signal.SIGINT, "interrupted")])
def test_a_signal_ends_it_soon_and_in_order(out: Path, disk: Path, number: signal.Signals, word: str) -> None:
    process = start(("stage", "--quiet", out, disk), ("-c", SLOWLY))
    copy = copy_folder(out, disk)
    deadline = time.monotonic() + HANG
    while not is_writing(copy) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert "is being changed by process" in refused(75, out, disk), "a second command finds it busy"
    process.send_signal(number)
    assert process.communicate(timeout=HANG)[1] == f"packer: {word}; nothing was published\n"
    assert process.returncode == 128 + number
    assert not list(copy.rglob(".partial-*"))


def test_leftovers_are_deleted(out: Path, disk: Path) -> None:
    copy = Path(stage(out, disk)["path"])
    for folder in (copy, copy / "shards", copy.parent):
        left = partial_path(folder, ended(), "0123")
        left.mkdir()
        (left / "new").write_text("half")
    stage(out, disk)
    assert not list(disk.rglob(".partial-*"))


def test_a_shard_that_lost_a_file_is_copied_again(out: Path, disk: Path) -> None:
    copy = Path(stage(out, disk)["path"])
    lost, cut = sorted(copy.glob("shards/*.image.npy"))[:2]
    lost.unlink()
    cut.write_bytes(b"")
    assert stage(out, disk)["copied_shards"] == 2
    assert run("verify", copy).exit_code == 0


# --- which copies count ---


def cut_table(copy: Path) -> None:
    table = next(copy.glob("generations/shards-*"))
    table.write_bytes(table.read_bytes()[:-1])


def other_manifest(copy: Path) -> None:
    path = copy / "generations/000001.json"
    path.write_text(path.read_text().replace('"created": "2', '"created": "3'))


def folder_for_manifest(copy: Path) -> None:
    path = copy / "generations/000001.json"
    path.unlink()
    path.mkdir()


def moved(folder: Path) -> None:
    """Rename a folder and leave a link to it."""
    folder.rename(folder.parent.parent / "moved")
    folder.symlink_to(folder.parent.parent / "moved")


BROKEN: dict[str, Callable[[Path], None]] = {
    "no manifest": lambda copy: (copy / "generations/000001.json").unlink(),
    "another manifest": other_manifest,
    "a manifest that is a folder": folder_for_manifest,
    "a table that is cut": cut_table,
    "no table": lambda copy: next(copy.glob("generations/shards-*")).unlink(),
    "open to a group": lambda copy: copy.parent.chmod(0o770),
    "open to all": lambda copy: copy.parent.chmod(0o707),
    "a link to it": moved,
    "a link to all": lambda copy: moved(copy.parent),
}


@pytest.mark.parametrize("damage", BROKEN)
def test_a_copy_that_is_not_whole_or_not_ours_alone_is_not_used(out: Path, disk: Path, damage: str) -> None:
    copy = Path(stage(out, disk)["path"])
    assert open_dataset(out, "train").root == copy
    pickled = pickle.dumps(open_dataset(out, "train"))
    BROKEN[damage](copy)
    assert open_dataset(out, "train").root == out
    again = unpickled(pickled)
    assert again.root == out
    assert rows(again) == rows(open_dataset(out, "train", staged=False))


def test_a_copy_of_another_user_is_not_used(out: Path, disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = Path(stage(out, disk)["path"])
    copy.parent.rename(disk / "segpack-4242")
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    assert not is_private(disk / "segpack-4242")
    assert open_dataset(out, "train").root == out
    assert "is not yours" in refused(1, out, disk)


def test_a_target_that_everybody_may_change_is_refused(out: Path, disk: Path) -> None:
    disk.chmod(0o777)
    assert "every user may rename" in refused(1, out, disk)
    disk.chmod(0o1777)
    stage(out, disk)
    (disk / PRIVATE).chmod(0o750)
    assert f"chmod 700 {disk / PRIVATE}" in refused(1, out, disk)


def test_the_environment_names_the_folders_to_search(out: Path, disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = Path(stage(out, disk)["path"])
    for paths, root in (("", out), ("/nowhere", out), (f"/nowhere{os.pathsep}{disk}", copy), (f"a\x01b:{disk}", copy)):
        monkeypatch.setenv(staged.FOLDERS_VARIABLE, paths)
        assert open_dataset(out, "train").root == root, paths
    monkeypatch.setenv(staged.FOLDERS_VARIABLE, "")
    again = run("stage", "--quiet", out, disk)
    assert f"set {staged.FOLDERS_VARIABLE}={disk}" in again.stderr
    assert [entry["path"] for entry in listed()] == [str(copy)], "--list searches all folders"


@pytest.mark.parametrize("text", ["", "{", "{}", "[1, null]", '["relative"]', '["/a\\u0000b"]', "[" * 100_000, "\xff"])
def test_a_broken_registry_is_ignored(out: Path, disk: Path, text: str) -> None:
    copy = Path(stage(out, disk)["path"])
    registry = staged.registry()
    assert registry is not None
    registry.write_text(text, encoding="latin-1")
    assert open_dataset(out, "train").root == out
    stage(out, disk)
    assert open_dataset(out, "train").root == copy, "staging repairs it"


def test_deleted_targets_leave_the_registry(out: Path, disk: Path, tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    stage(out, tmp_path / "job")
    assert staged.registered() == [tmp_path / "job"]
    shutil.rmtree(tmp_path / "job")
    assert open_dataset(out, "train").root == out
    stage(out, disk)
    assert staged.registered() == [disk]


def test_without_a_home_staging_works_and_names_the_variable_to_set(
    out: Path, disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("no folder")
    assert f"set {staged.FOLDERS_VARIABLE}={disk}" in good("stage", "--quiet", out, disk).stderr
    monkeypatch.setenv(staged.FOLDERS_VARIABLE, str(disk))
    assert open_dataset(out, "train").root == copy_folder(out, disk)


def test_a_copy_is_found_under_any_path_of_the_pack(out: Path, disk: Path, tmp_path: Path) -> None:
    """The path of a mount differs between containers. The manifest decides."""
    copy = Path(stage(out, disk)["path"])
    (tmp_path / "mount").symlink_to(tmp_path)
    assert open_dataset(tmp_path / "mount" / "out", "train").root == copy
    shutil.move(out, tmp_path / "moved")
    assert open_dataset(tmp_path / "moved", "train").root == copy


def test_the_search_costs_next_to_nothing_without_copies(out: Path) -> None:
    manifest = Manifest.load(out)
    assert staged.find(manifest) is None
    assert calls_of(lambda: staged.find(manifest)) < 200


# --- data sets that travel ---


def test_workers_and_pickles_read_the_copy_and_after_a_drop_the_pack(
    raw_folder: RawFolder, out: Path, disk: Path
) -> None:
    copy = Path(stage(out, disk)["path"])
    dataset = open_dataset(out, "train", label="index")
    expected = rows(dataset)
    pickled = pickle.dumps(dataset)
    code = "import pickle, sys\nd = pickle.load(sys.stdin.buffer)\nd[0]\nprint(d.root)"
    process = subprocess.run([sys.executable, "-c", code], input=pickled, capture_output=True, check=True)
    assert process.stdout.decode() == f"{copy}\n"
    loader: DataLoader[Any] = DataLoader(dataset, batch_size=4, num_workers=1, multiprocessing_context="spawn")
    images = torch.cat([batch for batch, _ in loader])
    assert [image.numpy().tobytes() for image in images] == [image.numpy().tobytes() for image, _ in dataset]
    del dataset, loader
    gc.collect()
    assert run("stage", "--drop", out).exit_code == 0
    again = unpickled(pickled)
    assert again.root == out
    assert rows(again) == expected


def test_the_copy_is_read_after_the_pack_is_deleted(out: Path, disk: Path) -> None:
    stage(out, disk)
    dataset = open_dataset(out, "train")
    expected = rows(dataset)
    shutil.rmtree(out)
    assert rows(unpickled(pickle.dumps(dataset))) == expected
    with pytest.raises(FileNotFoundError):
        open_dataset(out, "train")


# --- free space ---


def test_a_full_disk_is_refused_before_anything_is_made(
    out: Path, disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_space_module, "free_space", lambda folder: 100_000)
    for arguments in ((out, disk), ("--ram", out)):
        words = refused(1, *arguments)
        assert "has 100,000 free" in words
        assert "needs about" in words
    assert not list(disk.iterdir())
    assert not list((tmp_path / "memory").iterdir())
    monkeypatch.setattr(free_space_module, "free_space", lambda folder: 10**9)
    stage(out, disk)
    monkeypatch.setattr(free_space_module, "free_space", lambda folder: 0)
    assert stage(out, disk)["copied_shards"] == 0, "existing shards need no space"


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs /dev/shm")
def test_memory_is_distinguished_from_a_disk(tmp_path: Path) -> None:
    assert in_memory(Path("/dev/shm"))
    assert not in_memory(Path("/proc"))
    assert 0 < free_space(Path("/dev/shm")) <= shutil.disk_usage("/dev/shm").free


# --- the command line ---


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("out",),
        ("--ram", "out", "disk"),
        ("--list", "out"),
        ("--list", "--drop"),
        ("--drop",),
        ("--drop", "--ram", "a"),
    ],
)
def test_conflicting_arguments_are_refused(arguments: tuple[str, ...]) -> None:
    assert refused(2, *arguments).startswith("packer: ")


def test_staging_works_from_python(out: Path, disk: Path, tmp_path: Path) -> None:
    done: list[int] = []
    copied = stage_pack(out, disk, progress=lambda task, total, unit: nullcontext(done.append))
    assert copied.path == copied.opened == copy_folder(out, disk)
    assert copied.shards == copied.manifest.shards
    assert sum(done) == copied.bytes == copied.manifest.bytes
    in_memory = stage_pack(str(out), ram=True)
    assert in_memory.path == in_memory.opened == copy_folder(out, tmp_path / "memory")
    assert stage_pack(out, str(disk)).opened == in_memory.path, "open_dataset searches memory first"
    for target, ram in ((None, False), (disk, True)):
        with pytest.raises(UsageError, match="either a folder TARGET or --ram"):
            stage_pack(out, target, ram=ram)
    with pytest.raises(TargetError, match="No such file"):
        stage_pack(out, tmp_path / "typo" / "below")


def test_a_missing_target_is_made_and_found(out: Path, tmp_path: Path) -> None:
    target = tmp_path / "new"
    copy = Path(stage(out, target)["path"])
    assert copy.parent.parent == target
    assert target.stat().st_mode & 0o777 & ~0o755 == 0
    assert open_dataset(out, "all").root == copy
    assert [Path(facts["path"]) for facts in listed()] == [copy]


def test_a_target_without_a_folder_around_it_is_not_made(out: Path, tmp_path: Path) -> None:
    assert "is the disk mounted?" in refused(1, out, tmp_path / "nvme" / "packs")
    assert not (tmp_path / "nvme").exists()
    (tmp_path / "file").write_text("")
    assert "is not a folder" in refused(1, out, tmp_path / "file")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert "No such file" in refused(1, out, tmp_path / "link")
    assert not (tmp_path / "nowhere").exists()


def test_drop_respects_the_lock(out: Path, disk: Path) -> None:
    copy = Path(stage(out, disk)["path"])
    with (copy / ".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "is being changed" in refused(75, "--drop", out)
    assert run("stage", "--drop", out).exit_code == 0
