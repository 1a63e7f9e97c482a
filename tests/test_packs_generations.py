"""Generations: `packer log`, `rollback` and `gc`, none of which harms a kept generation."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from conftest import RawFolder, errors_of, examples, good, json_of, make_raw, run
from drills.histories import change
from drills.made_stores import MemoryStore
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes.pictures import LONG_AGO
from scenes.tiny import age
from test_shards_reuse import built

from packer import build_pack
from packer.cli.log import LOG
from packer.cli.publishing import publishing
from packer.errors import BusyError, PinnedError, UsageError
from packer.packs.garbage import _SHARD, delete_garbage, find_garbage
from packer.packs.generations import list_generations, rollback_pack
from packer.publish.generation import restore_manifest
from packer.publish.history import HISTORY, History, read_history
from packer.publish.lock import locked
from readers import DamagedError, open_dataset
from readers.contract.errors import NoPackError, StoreBusyError
from readers.contract.manifest import STORAGES, Manifest

pytestmark = pytest.mark.usefixtures("in_process")


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """A pack of three generations with different options and images."""
    raw = make_raw(tmp_path / "raw", {"train": 12, "val": 4})
    age(raw.path)
    built(raw.path, tmp_path / "out")
    change(raw.path, "change", 3, 900)
    built(raw.path, tmp_path / "out")
    built(raw.path, tmp_path / "out", "--labels", "index")
    return tmp_path / "out"


def listed(out: Path) -> Any:
    return json.loads(good("log", "--json", out).stdout)


def kept_whole(out: Path) -> list[int]:
    """Verify every kept generation; return the numbers."""
    numbers = []
    current = (out / "manifest.json").read_bytes()
    for path in sorted((out / "generations").glob("*.json")):
        (out / "manifest.json").write_bytes(path.read_bytes())
        good("verify", "--quiet", out)
        numbers.append(int(path.stem))
    (out / "manifest.json").write_bytes(current)
    return numbers


def test_log_lists_generations_with_the_changed_options(three: Path) -> None:
    facts = listed(three)
    assert [(entry["generation"], entry["current"]) for entry in facts] == [(3, True), (2, False), (1, False)]
    assert [entry["changed"] for entry in facts] == [["label.form"], [], []]
    words = run("log", three).stdout.splitlines()
    assert words[0].startswith("* 3 ")
    assert words[0].endswith("label.form changed")
    (three / "generations/000002.json").write_text("{")
    assert "damaged" in run("log", three).stdout


def test_a_claim_that_was_never_current_is_named_and_no_generation(three: Path, tmp_path: Path) -> None:
    """A build was killed between its claim and the swap of the manifest. The next one counts on."""
    claim = replace(Manifest.load(three), generation=4)
    (three / "generations/000004.json").write_text(claim.to_text())
    assert run("log", three).stdout.splitlines()[0].endswith("- never current")
    assert [entry["was_current"] for entry in listed(three)] == [False, True, True, True]
    assert "generation 4 was never current: its build was killed, or lost a race" in errors_of(2, "rollback", three, 4)
    assert delete_garbage(three, keep=2, grace=3600).kept == (1, 2, 3, 4), "it may be about to be published"
    change(tmp_path / "raw", "change", 5, 901)
    built(tmp_path / "raw", three, "--labels", "index")
    assert [(entry["generation"], entry["was_current"]) for entry in listed(three)][:2] == [(5, True), (4, False)]
    assert delete_garbage(three, keep=2, grace=0).kept == (3, 5)
    assert kept_whole(three) == [3, 5]


def test_gc_deletes_the_plans_that_killed_builds_left(three: Path) -> None:
    """A build on a cluster removes its plan at the end. Folders with other names are somebody else's."""
    old, young, foreign = (three / "plans" / name for name in ("0" * 16, "1" * 16, "mine"))
    for folder in (old, young, foreign):
        folder.mkdir(parents=True)
        for name in ("plan.json", "rows.npy"):
            (folder / name).write_text("x")
            if folder != young:
                os.utime(folder / name, (LONG_AGO, LONG_AGO))
    listed_paths = json_of("gc", "--dry-run", "--json", three)["files"]
    assert [name for name in listed_paths if name.startswith("plans")] == [
        f"plans/{old.name}/plan.json",
        f"plans/{old.name}/rows.npy",
    ]
    good("gc", three)
    assert not old.exists()
    assert (young / "plan.json").is_file()
    assert (foreign / "rows.npy").is_file()


def test_rollback_is_one_rename_and_builds_continue_from_there(three: Path, tmp_path: Path) -> None:
    assert "generation 1 (16 rows) is current; it was 3" in good("rollback", three, 1).stdout
    assert Manifest.load(three).generation == 1
    assert run("verify", three).exit_code == 0
    assert [entry["current"] for entry in listed(three)] == [False, False, True]
    again = built(tmp_path / "raw", three)
    assert (again["generation"], again["reused_rows"]) == (4, 16), "the same data as 2, from existing shards"
    assert run("rollback", three, 9).exit_code == 2
    assert "the kept generations are 4, 3, 2, 1" in run("rollback", three, 9).stderr


def test_rollback_to_missing_shards_is_refused_with_their_names(three: Path) -> None:
    first = Manifest.load(three, 1)
    for path in three.glob("shards/*.image.npy"):
        path.unlink()
    assert f"{first.shards} of its shards are missing or cut" in errors_of(4, "rollback", three, 1)
    assert Manifest.load(three).generation == 3


def test_the_log_knows_whether_a_command_has_published(three: Path) -> None:
    def interrupted(number: int) -> None:
        with publishing(three), locked(three):
            rollback_pack(three, number)
            raise KeyboardInterrupt

    for number, published in ((3, False), (1, True), (1, False)):
        LOG.published = False
        with pytest.raises(KeyboardInterrupt):
            interrupted(number)
        assert LOG.published is published
    LOG.published = False
    with pytest.raises(UsageError), publishing(three):
        rollback_pack(three, 9)
    assert not LOG.published
    with publishing(three):
        pass
    assert LOG.published


@pytest.mark.parametrize(("error", "times"), [(BusyError("no answer"), 0), (KeyboardInterrupt(), 1)])
def test_a_store_that_does_not_answer_any_more_hides_no_error(error: BaseException, times: int) -> None:
    store = MemoryStore()
    silent = mock.Mock(side_effect=StoreBusyError("no answer either"))

    def fails() -> None:
        with publishing(store):
            store.read = silent  # type: ignore[method-assign]
            raise error

    with pytest.raises(type(error)) as raised:
        fails()
    assert raised.value is error
    assert silent.call_count == times


def test_gc_keeps_the_last_generations_and_the_current_one(three: Path) -> None:
    before = sum(path.stat().st_size for path in three.rglob("*") if path.is_file())
    facts = json_of("gc", "--keep", 1, "--grace", "0s", "--dry-run", "--json", three)
    assert (facts["kept"], facts["generations"]) == ([3], 2)
    assert kept_whole(three) == [1, 2, 3], "a dry run deletes nothing"
    run("rollback", three, 1)
    good("gc", "--keep", 1, "--grace", 0, three)
    assert kept_whole(three) == [1, 3]
    run("rollback", three, 3)
    facts = json_of("gc", "--keep", 1, "--grace", "0s", "--json", three)
    assert kept_whole(three) == [3]
    after = sum(path.stat().st_size for path in three.rglob("*") if path.is_file())
    assert facts["bytes"] > 0
    assert after < before / 2
    assert json_of("gc", "--keep", 1, "--grace", "0s", "--json", three)["files"] == []


def test_a_generation_that_was_current_a_moment_ago_is_kept(three: Path) -> None:
    assert json_of("gc", "--keep", 1, "--json", three)["files"] == []
    long_ago = time.time() - 7200
    for path in three.rglob("*"):
        os.utime(path, (long_ago, long_ago))
    (three / HISTORY).unlink()  # as an older packer leaves it
    now = time.time() - 60
    os.utime(three / "generations/000003.json", (now, now))
    facts = json_of("gc", "--keep", 1, "--grace", "1h", "--json", three)
    assert facts["kept"] == [2, 3], "2 was current until a minute ago"


def test_the_grace_counts_from_when_a_generation_stopped_being_current(three: Path) -> None:
    for path in three.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))
    (three / HISTORY).write_text(History(3, {1: LONG_AGO, 2: LONG_AGO}).to_text())
    assert json_of("gc", "--keep", 1, "--grace", "1h", "--dry-run", "--json", three)["kept"] == [3]
    for number in (1, 3):
        assert run("rollback", three, number).exit_code == 0
    facts = json_of("gc", "--keep", 1, "--grace", "1h", "--json", three)
    assert facts["kept"] == [1, 3], "1 was current a moment ago"
    assert kept_whole(three) == [1, 3]
    assert set(read_history(three).ended) == {1, 2}


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"current": 3, "ended": {"1": NaN}}', '{"current": 3, "ended": 1}'])
def test_with_a_damaged_history_the_grace_counts_from_its_last_write(three: Path, damage: str) -> None:
    for path in three.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))
    (three / HISTORY).write_text(damage)
    facts = json_of("gc", "--keep", 1, "--grace", "1h", "--dry-run", "--json", three)
    assert facts["kept"] == [1, 2, 3]
    assert run("rollback", three, 1).exit_code == 0
    assert set(read_history(three).ended) == {2, 3}


def test_a_pin_keeps_a_rollback_until_it_is_removed(three: Path, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    assert f"pinned: builds publish nothing until packer unpin {three}" in good("rollback", "--pin", three, 1).stdout
    assert run("log", three).stdout.splitlines()[-1].endswith("- pinned")
    assert [entry["pinned"] for entry in listed(three)] == [False, False, True]
    before = (three / "manifest.json").read_bytes()
    for options in ((), ("--labels", "index")):
        assert f"packer unpin {three}" in errors_of(5, "build", "--quiet", *options, raw, three)
    assert f"a build publishes nothing before packer unpin {three}" in run("build", "--dry-run", raw, three).stdout
    with pytest.raises(PinnedError):
        build_pack(raw, three)
    assert (three / "manifest.json").read_bytes() == before
    assert "pinned" in run("rollback", three, 2).stdout, "a pinned pack stays pinned"
    assert run("build", "--quiet", raw, three).exit_code == 5
    assert "the pin is removed" in run("unpin", three).stdout
    assert "is not pinned" in run("unpin", three).stdout
    assert run("build", "--quiet", "--labels", "index", raw, three).exit_code == 0


def test_repair_of_a_pinned_pack_publishes_no_other_generation(three: Path, tmp_path: Path) -> None:
    assert run("rollback", "--pin", three, 1).exit_code == 0
    for stem in three.glob("shards/*.image.npy"):
        stem.write_bytes(b"")
    errors_of(5, "repair", "--quiet", three, tmp_path / "raw")  # RAW has other pictures now
    assert Manifest.load(three).generation == 1


@pytest.mark.parametrize("damage", [b"{", None], ids=["torn", "missing"])
def test_rollback_replaces_a_damaged_manifest(three: Path, damage: bytes | None) -> None:
    (three / "manifest.json").unlink()
    if damage is not None:
        (three / "manifest.json").write_bytes(damage)
    shown = run("log", three)
    assert "3 " in shown.stdout
    assert "*" not in shown.stdout
    assert shown.exit_code != 0
    assert "the kept generations are 3, 2, 1" in run("rollback", three, 9).stderr
    assert run("gc", three).exit_code != 0
    assert "generation 2 (16 rows) is current; the manifest was damaged" in good("rollback", three, 2).stdout
    assert run("verify", three).exit_code == 0


@pytest.mark.parametrize("damage", [b"{", b"", None], ids=["torn", "empty", "missing"])
@pytest.mark.parametrize("current", [1, 3])
def test_repair_restores_a_damaged_manifest_from_its_copy(
    three: Path, tmp_path: Path, damage: bytes | None, current: int
) -> None:
    assert run("rollback", three, current).exit_code == 0
    before = {path: path.read_bytes() for path in three.rglob("*") if path.is_file() and path.name != ".lock"}
    (three / "manifest.json").unlink()
    if damage is not None:
        (three / "manifest.json").write_bytes(damage)
    assert "restored manifest.json from its copy" in good("repair", "--quiet", three, tmp_path / "raw").stdout
    assert before == {path: path.read_bytes() for path in before}
    assert run("verify", three).exit_code == 0


def test_repair_restores_no_copy_that_is_not_proven(three: Path) -> None:
    (three / "manifest.json").write_text("{")
    table = next(three.glob(f"generations/shards-{Manifest.load(three, 3).table[:32]}.npy"))
    whole = table.read_bytes()
    table.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert restore_manifest(three) is None
    table.write_bytes(whole)
    copy = three / "generations/000003.json"
    text = copy.read_bytes()
    copy.write_bytes((three / "generations/000002.json").read_bytes())
    assert restore_manifest(three) is None, "this is another generation"
    copy.write_text("{")
    assert restore_manifest(three) is None, "the newest is damaged, and an older one is not the current one"
    copy.write_bytes(text)
    restored = restore_manifest(three)
    assert restored is not None
    assert restored.generation == 3


def test_gc_refuses_to_run_if_a_kept_manifest_is_damaged(three: Path) -> None:
    (three / "generations/000002.json").write_text("{")
    assert "the shards that it uses are unknown" in errors_of(4, "gc", "--keep", 2, "--grace", "0s", three)
    assert list(three.glob("generations/000001.json"))


def test_foreign_files_are_not_deleted(three: Path, tmp_path: Path) -> None:
    theirs = [three / "shards/notes.txt", three / "generations/old.json", three / "shards/train-abc.image.npy"]
    for path in theirs:
        path.write_text("theirs")
    (tmp_path / "elsewhere").write_text("kept")
    link = three / "shards" / f"train-{'0' * 32}.image.npy"
    link.symlink_to(tmp_path / "elsewhere")
    assert run("gc", "--keep", 1, "--grace", "0s", three).exit_code == 0
    assert [path.read_text() for path in theirs] == ["theirs"] * 3
    assert link.is_symlink()
    assert (tmp_path / "elsewhere").read_text() == "kept"


def test_a_reader_of_a_deleted_generation_keeps_what_it_has_read(three: Path) -> None:
    assert run("rollback", three, 1).exit_code == 0
    reader = open_dataset(three, "train")
    first = reader[0][0].clone()
    assert run("rollback", three, 3).exit_code == 0
    assert run("gc", "--keep", 1, "--grace", "0s", three).exit_code == 0
    assert (reader[0][0] == first).all(), "a shard that was opened stays mapped"
    with pytest.raises(DamagedError):
        reader[: len(reader)]


def test_gc_killed_at_any_file_leaves_every_kept_generation_intact(three: Path, tmp_path: Path) -> None:
    files = len(find_garbage(three, 1, 0).paths)
    assert files > 10
    for survivors in range(0, files, max(1, files // 8)):
        copy = tmp_path / f"copy{survivors}"
        shutil.copytree(three, copy)
        left = [survivors]

        def unlink(path: Path, missing_ok: bool = False, left: list[int] = left) -> None:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            os.unlink(path)  # noqa: PTH108 - the patched method does the same

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, "unlink", unlink)
            with pytest.raises(KeyboardInterrupt):
                delete_garbage(copy, 1, 0)
        assert 3 in kept_whole(copy)
        assert run("gc", "--keep", 1, "--grace", "0s", copy).exit_code == 0
        assert kept_whole(copy) == [3]


def test_generations_work_from_python(three: Path, tmp_path: Path) -> None:
    assert [(entry.number, entry.changed) for entry in list_generations(str(three))] == [
        (3, ("label.form",)),
        (2, ()),
        (1, ()),
    ]
    assert rollback_pack(str(three), 2).generation == Manifest.load(three).generation == 2
    garbage = delete_garbage(str(three), keep=1, grace=0, dry_run=True)
    assert garbage.kept == (2, 3)
    assert all(path.exists() for path in garbage.paths)
    assert delete_garbage(three, keep=1, grace=0) == garbage
    assert garbage.bytes > 0
    assert not any(path.exists() for path in garbage.paths)


def test_a_folder_that_is_not_a_pack_gets_no_lock(tmp_path: Path) -> None:
    with pytest.raises(NoPackError):
        rollback_pack(tmp_path, 1)
    with pytest.raises(NoPackError):
        delete_garbage(tmp_path)
    assert not list(tmp_path.iterdir())


NIGHTS = st.lists(
    st.tuples(st.sampled_from(["add", "change", "remove", "gc", "back"]), st.integers(0, 9)), min_size=2, max_size=7
)


@settings(max_examples=2 + examples(2))
@given(NIGHTS)
def test_any_history_of_builds_and_gc_leaves_kept_generations_intact(
    tmp_path_factory: pytest.TempPathFactory, nights: list[tuple[str, int]]
) -> None:
    root = tmp_path_factory.mktemp("nights")
    raw, out = make_raw(root / "raw", {"train": 7}).path, root / "out"
    age(raw)
    built(raw, out)
    for number, (action, index) in enumerate(nights):
        if action == "gc":
            assert run("gc", "--keep", index % 3 + 1, "--grace", "0s", out).exit_code == 0
        elif action == "back":
            numbers = [entry["generation"] for entry in listed(out)]
            assert run("rollback", out, numbers[index % len(numbers)]).exit_code == 0
        else:
            change(raw, action, index, 100 * number + index)
            built(raw, out)
        current = Manifest.load(out).generation
        assert current in kept_whole(out)
        assert Manifest.load(out).generation == current


def test_names_of_shards_are_recognised(raw_folder: RawFolder, three: Path) -> None:
    names = [path.name for folder in ("shards", "stamps") for path in (three / folder).iterdir()]
    assert all(_SHARD.fullmatch(name) for name in names)
    assert not _SHARD.fullmatch("notes.txt")


@pytest.mark.parametrize("storage", STORAGES)
def test_a_reader_says_that_gc_deleted_its_generation(storage: str, tmp_path: Path) -> None:
    raw, out = make_raw(tmp_path / "raw", {"train": 4}), tmp_path / "out"
    age(raw.path)
    built(raw.path, out, "--format", storage)
    unread, opened, pickled = (open_dataset(out) for _ in range(3))
    opened.size(0)  # opens the shard, and maps nothing
    state = pickle.dumps(pickled)
    built(raw.path, out, "--format", storage, "--labels", "index")
    assert run("gc", "--keep", 1, "--grace", "0s", out).exit_code == 0
    for dataset in (unread, opened):
        with pytest.raises(DamagedError, match=r"gc has deleted generation 1.*open the data set again") as caught:
            dataset[0]
        assert "No such file" not in str(caught.value)
        with pytest.raises(DamagedError, match="gc has deleted generation 1"):
            dataset.key(0)
    with pytest.raises(NoPackError, match=r"generation 1 is not kept here.*packer gc"):
        pickle.loads(state)  # noqa: S301 - our own
    assert len(open_dataset(out)) == 4


@pytest.mark.parametrize("storage", STORAGES)
def test_a_reader_does_not_blame_gc_for_other_missing_files(storage: str, tmp_path: Path) -> None:
    raw, out = make_raw(tmp_path / "raw", {"train": 4}), tmp_path / "out"
    built(raw.path, out, "--format", storage)
    dataset = open_dataset(out)
    for path in (out / "shards").iterdir():
        path.unlink()
    with pytest.raises(DamagedError, match=r"is missing; find out.*packer verify"):
        dataset[0]
