"""A repeated build reuses unchanged shards, and its result equals a fresh build."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import RawFolder, errors_of, examples, good, json_of, make_raw, run, scene, write_png
from drills.histories import differing_night, histories
from drills.published import published
from drills.sources import SOURCES
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes.pictures import LONG_AGO
from scenes.tiny import SHARDS as SMALL
from scenes.tiny import age

from packer.pairs.find import find_pairs
from packer.plan.reuse import RowStates
from packer.publish.target import STAMP_SUFFIX as SUFFIX
from packer.publish.target import STAMPS
from packer.recipe.ref_table import RefTable
from packer.recipe.row_ref import RowRef
from packer.recipe.source import UNKNOWN, Heads
from packer.shards.row_counts import SUFFIX as COUNTS
from packer.shards.stamps import StoredStamps, load_stamps
from packer.sources.file_states import ANY, FileState, are_young, is_young, state_of
from packer.sources.files.folder import FolderSource, refs_of
from readers.contract.receipt import Receipt

pytestmark = pytest.mark.usefixtures("in_process")


def built(raw: Path, out: Path, *options: object) -> Any:
    return json.loads(good("build", "--quiet", "--json", *SMALL, *options, raw, out).stdout)


@pytest.fixture
def night(tmp_path: Path) -> RawFolder:
    raw = make_raw(tmp_path / "raw", {"train": 20, "val": 6})
    age(raw.path)
    return raw


def test_the_same_files_are_not_opened_again(night: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = built(night.path, tmp_path / "out")
    assert (first["rows"], first["reused_rows"]) == (26, 0)

    def nobody(*arguments: object) -> None:
        raise AssertionError(f"{arguments} is opened")

    monkeypatch.setattr("readers.contract.regular_files.open_raw", nobody)
    for function in ("sources.files.folder.open_raw", "sources.files.folder.digest_raw", "workers.supervisor.Worker"):
        monkeypatch.setattr(f"packer.{function}", nobody)
    again = built(night.path, tmp_path / "out")
    assert (again["generation"], again["rows"], again["reused_rows"]) == (1, 26, 26)


def test_with_trust_in_digests_only_the_content_counts(night: RawFolder, tmp_path: Path) -> None:
    built(night.path, tmp_path / "out")
    again = built(night.path, tmp_path / "out", "--trust", "digest")
    assert again["reused_rows"] == 26


def test_a_replaced_file_of_the_same_size_and_time_is_noticed(night: RawFolder, tmp_path: Path) -> None:
    """This happens when a folder of corrected files replaces the old one with times kept."""
    built(night.path, tmp_path / "out")
    victim = night.path / "train/images/street_003.png"
    before = victim.stat()
    victim.write_bytes(victim.read_bytes()[:-1] + b"?")
    os.utime(victim, ns=(before.st_atime_ns, before.st_mtime_ns))
    for trust in ("mtime", "digest"):
        errors = errors_of(1, "build", "--trust", trust, *SMALL, night.path, tmp_path / "out")
        assert "train/images/street_003.png" in errors


def test_a_touched_file_is_compared_by_digest_and_its_stamp_renewed(night: RawFolder, tmp_path: Path) -> None:
    built(night.path, tmp_path / "out")
    age(night.path, LONG_AGO + 1)
    assert built(night.path, tmp_path / "out")["reused_rows"] == 26
    stamps = {path: path.read_bytes() for path in (tmp_path / "out" / STAMPS).iterdir()}
    assert built(night.path, tmp_path / "out")["reused_rows"] == 26
    assert {path: path.read_bytes() for path in (tmp_path / "out" / STAMPS).iterdir()} == stamps
    for path in night.path.rglob("*.png"):
        path.chmod(0o600)
    assert built(night.path, tmp_path / "out")["reused_rows"] == 26


def test_one_changed_picture_costs_one_shard(night: RawFolder, tmp_path: Path) -> None:
    first = built(night.path, tmp_path / "out")
    assert first["shards"] >= 8
    image, _ = scene(77, 24, 36)
    write_png(night.path / "train/images/street_005.png", image)
    second = built(night.path, tmp_path / "out")
    assert second["generation"] == 2
    assert 26 - 2 * 26 // first["shards"] - 2 <= second["reused_rows"] < 26
    fresh = tmp_path / "fresh"
    built(night.path, fresh)
    assert published(tmp_path / "out") == published(fresh)


def test_the_time_of_a_file_written_just_now_is_not_trusted(tmp_path: Path) -> None:
    """The file may change again within one tick of the clock, so its digest decides."""
    raw = make_raw(tmp_path / "raw", {"train": 4})
    built(raw.path, tmp_path / "out")
    victim = raw.path / "train/images/street_001.png"
    before = victim.stat()
    image, _ = scene(78, 24, 36)
    write_png(victim, image)
    data = victim.read_bytes()
    victim.write_bytes(data + b"\0" * max(0, before.st_size - len(data)))
    os.utime(victim, ns=(before.st_atime_ns, before.st_mtime_ns))
    other = run("build", "--quiet", *SMALL, raw.path, tmp_path / "out")
    fresh = run("build", "--quiet", *SMALL, raw.path, tmp_path / "fresh")
    assert other.exit_code == fresh.exit_code
    if fresh.exit_code == 0:
        assert published(tmp_path / "out") == published(tmp_path / "fresh")


@pytest.mark.parametrize("harm", ["gone", "empty", "cut", "other", "text"])
def test_missing_or_damaged_stamps_only_cost_time(night: RawFolder, tmp_path: Path, harm: str) -> None:
    out = tmp_path / "out"
    built(night.path, out)
    for path in (out / STAMPS).iterdir():
        data = path.read_bytes()
        path.write_bytes(
            {"gone": b"", "empty": b"", "cut": data[:-1], "other": data[:-9] + b"12345678\n", "text": b"{\n"}[harm]
        )
        if harm == "gone":
            path.unlink()
    again = built(night.path, out)
    assert (again["generation"], again["reused_rows"]) == (1, 0)
    assert all(path.suffix in (SUFFIX, COUNTS) for path in (out / STAMPS).iterdir())
    assert built(night.path, out)["reused_rows"] == 26


def test_a_shard_that_lost_a_file_is_built_again(night: RawFolder, tmp_path: Path) -> None:
    out = tmp_path / "out"
    built(night.path, out)
    before = published(out)
    next(out.glob("shards/*.image.npy")).unlink()
    again = built(night.path, out)
    assert (again["generation"], again["reused_rows"]) == (1, pytest.approx(26, abs=6))
    assert published(out) == before


def test_shards_with_bad_pairs_are_reused_until_they_are_to_be_retried(night: RawFolder, tmp_path: Path) -> None:
    victim = night.path / "train/masks/street_002.png"
    victim.write_bytes(victim.read_bytes()[:-30])
    age(night.path)
    skip = ("--on-bad", "skip")
    first = built(night.path, tmp_path / "out", *skip)
    assert len(first["rejects"]) == 1
    again = built(night.path, tmp_path / "out", *skip)
    assert (again["reused_rows"], again["rejects"]) == (25, first["rejects"])
    plans = [
        json_of("build", "--dry-run", "--json", *SMALL, *skip, *retry, night.path, tmp_path / "out")
        for retry in ([], ["--retry-bad"])
    ]
    assert [plan["shards"] - plan["reused_shards"] for plan in plans] == [0, 1]
    assert run("build", "--quiet", *SMALL, night.path, tmp_path / "out").exit_code == 1, "--on-bad fail still fails"


def test_another_recipe_reuses_nothing_and_the_old_one_again_everything(night: RawFolder, tmp_path: Path) -> None:
    out = tmp_path / "out"
    built(night.path, out)
    assert built(night.path, out, "--labels", "index")["reused_rows"] == 0
    third = built(night.path, out)
    assert (third["generation"], third["reused_rows"]) == (3, 26)


@pytest.mark.parametrize("geometry", [("--size", "16x16", "--fit", "tile"), ("--size", "native")])
def test_tiles_and_native_rows_are_reused_too(night: RawFolder, tmp_path: Path, geometry: tuple[str, ...]) -> None:
    first = built(night.path, tmp_path / "out", *geometry)
    again = built(night.path, tmp_path / "out", *geometry)
    assert (again["generation"], again["reused_rows"]) == (1, first["rows"])
    (night.path / "train/images/street_000.png").unlink()
    (night.path / "train/masks/street_000.png").unlink()
    built(night.path, tmp_path / "out", *geometry)
    built(night.path, tmp_path / "fresh", *geometry)
    assert published(tmp_path / "out") == published(tmp_path / "fresh")


def test_a_killed_build_resumes(night: RawFolder, tmp_path: Path) -> None:
    """A killed build leaves shards with receipts and stamps, and no manifest."""
    out = tmp_path / "out"
    built(night.path, out)
    (out / "manifest.json").unlink()
    shutil.rmtree(out / "generations")
    for path in sorted(out.glob("shards/*"))[:5]:
        path.unlink()
    resumed = built(night.path, out)
    assert 0 < resumed["reused_rows"] < 26
    built(night.path, tmp_path / "fresh")
    assert published(out) == published(tmp_path / "fresh")


def test_a_quiet_night_does_not_import_masked_arrays(night: RawFolder, tmp_path: Path) -> None:
    """numpy.unique imports them when it is first called, which took 7 % of the night of 20,000 pairs."""
    built(night.path, tmp_path / "out")
    code = "import sys; from packer.cli import main; main(standalone_mode=False); sys.exit('numpy.ma' in sys.modules)"
    command = [sys.executable, "-c", code, "build", "--quiet", *SMALL, str(night.path), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "26 reused" in done.stdout


@pytest.mark.parametrize("source", SOURCES)
@settings(max_examples=1 + examples(1))
@given(data=st.data())
def test_any_history_gives_what_a_fresh_build_gives(
    tmp_path_factory: pytest.TempPathFactory, source: str, data: st.DataObject
) -> None:
    history = data.draw(histories([source]))
    assert differing_night(history, tmp_path_factory.mktemp("history")) is None


def test_a_diff_asks_for_each_raw_file_once_and_reads_the_stamps_once(
    night: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unchanged pairs of a shard to rebuild were asked for twice, and all stamps were read twice."""
    built(night.path, tmp_path / "out", "--shard-size", "1MiB")
    changed = night.path / "train/images/street_003.png"
    write_png(changed, scene(99, 24, 36)[0])
    stats: Counter[str] = Counter()
    real_stat = os.stat

    def counted_stat(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        stats[os.fspath(path) if isinstance(path, (str, Path)) else ""] += 1
        return real_stat(path, *arguments, **options)

    loads: list[Path] = []

    def counted_load(out: Path) -> list[StoredStamps]:
        loads.append(out)
        return load_stamps(out)

    monkeypatch.setattr(os, "stat", counted_stat)
    monkeypatch.setattr("packer.plan.make_plan.load_stamps", counted_load)
    done = run("diff", "--json", tmp_path / "out", night.path)
    assert json.loads(done.stdout)["changed"] == ["train/street_003"]
    assert len(loads) == 1
    files = [path for path in night.path.rglob("*.png") if path.stem != changed.stem]
    assert len(files) == 2 * 24
    assert {path.name: stats[str(path)] for path in files} == {path.name: 1 for path in files}


def test_a_night_lists_each_folder_once_and_encodes_no_receipt(
    night: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(night.path, tmp_path / "out")
    before = published(tmp_path / "out")
    folders = [str(night.path), *(str(path) for path in night.path.rglob("*") if path.is_dir())]
    listed: Counter[str] = Counter()
    real_scandir = os.scandir

    def counted_scandir(path: Any = ".") -> Any:
        listed[os.fspath(path) if isinstance(path, (str, Path)) else ""] += 1
        return real_scandir(path)

    def nobody(*arguments: object) -> str:
        raise AssertionError("a receipt is encoded")

    monkeypatch.setattr(os, "scandir", counted_scandir)
    monkeypatch.setattr(Receipt, "to_text", nobody)
    assert built(night.path, tmp_path / "out")["reused_rows"] == 26
    assert {folder: listed[folder] for folder in folders} == dict.fromkeys(folders, 1)
    assert published(tmp_path / "out") == before


def test_a_changed_receipt_is_never_published_as_it_is(night: RawFolder, tmp_path: Path) -> None:
    """A build writes the SHA-256 of the receipt that belongs to the shard, whatever the file holds now."""
    built(night.path, tmp_path / "out")
    receipt = next((tmp_path / "out" / "shards").glob("*.receipt.json"))
    receipt.write_text(receipt.read_text() + "\n")
    table = next((tmp_path / "out" / "generations").glob("shards-*.npy")).read_bytes()
    again = built(night.path, tmp_path / "out")
    assert (again["generation"], again["reused_rows"]) == (1, 26)
    assert [path.read_bytes() for path in (tmp_path / "out" / "generations").glob("shards-*.npy")] == [table]


def test_only_the_headers_of_new_pairs_are_read(
    night: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard whose pairs are not the same any more is compared pair by pair."""
    built(night.path, tmp_path / "out")
    for kind in ("images", "masks"):
        folder = night.path / "train" / kind
        shutil.copy2(folder / "street_004.png", folder / "street_004b.png")
        (folder / "street_011.png").unlink()
    checked: list[str] = []

    def counted_heads(source: FolderSource, refs: Sequence[RowRef]) -> Iterator[Heads]:
        checked.extend(ref.parts[0] for ref in refs)
        return real_heads(source, refs)

    real_heads = FolderSource.heads
    monkeypatch.setattr(FolderSource, "heads", counted_heads)
    assert built(night.path, tmp_path / "out")["rows"] == 26
    assert checked == ["train/images/street_004b.png"]
    built(night.path, tmp_path / "fresh")
    assert published(tmp_path / "out") == published(tmp_path / "fresh")


@pytest.mark.parametrize("patience", [-1.0, 1e9])
def test_one_thread_or_many_ask_for_each_file_once(
    night: RawFolder, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    """Many threads ask a slow disk, one a fast one. Both get the same answers."""
    monkeypatch.setattr("packer.sources.ask_all.PATIENCE", patience)
    monkeypatch.setattr("packer.sources.ask_all.WAITING", 0)
    monkeypatch.setattr("packer.sources.files.folder.CHUNK", 3)
    asked: Counter[str] = Counter()
    threads: set[int] = set()

    def counted(path: str) -> FileState:
        asked[path] += 1
        threads.add(threading.get_ident())
        return state_of(path)

    monkeypatch.setattr("packer.sources.files.folder.state_of", counted)
    pairs = find_pairs(night.path).pairs
    states = RowStates(FolderSource(night.path), RefTable.of(refs_of(pairs)))
    some = states.of(np.arange(0, len(pairs), 2))
    everything = states.of(np.arange(len(pairs)))
    files = [(str(night.path / pair.image), str(night.path / pair.label)) for pair in pairs]
    assert everything.tolist() == [[*state_of(image), *state_of(label)] for image, label in files]
    assert (everything[::2] == some).all()
    assert asked == Counter(path for pair in files for path in pair)
    assert (threads == {threading.get_ident()}) == (patience > 0)


def test_a_file_that_was_copied_a_moment_ago_with_its_old_time_is_young(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy by `cp -p` has an old time of writing, and could be replaced within one tick of the clock."""
    monkeypatch.setattr("packer.sources.file_states.MIN_FILE_AGE", 2 * 10**9)
    now = time.time_ns()
    old, young = now - 3 * 10**9, now
    for written, changed, expected in ((old, old, False), (young, young, True), (old, young, True), (old, ANY, False)):
        assert is_young((1, written, changed)) is expected
        assert are_young(np.array([(1, old, old, 1, written, changed)])).tolist() == [expected]
    (tmp_path / "a.png").write_bytes(b"1")
    os.utime(tmp_path / "a.png", (0, 0))
    states = FolderSource(tmp_path).states([RowRef("all", "a", ("a.png", ""))])
    assert states[0, 0] == UNKNOWN
