"""The builder of a live pack ends where it should not: readers start another one, and no shard or pack is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from conftest import HANG, RawFolder, make_raw, pack, python, without_workers
from test_live import rows_of, tree, wait_until_published

import packer.building.finish
from packer.building.live import LiveView, build_for_readers
from packer.cli import live
from packer.publish.lock import locked
from packer.publish.target import locked_target
from readers import ReadError, live_build, open_dataset
from readers.contract.live import BUILDER
from readers.contract.manifest import GENERATIONS, LIVE, MANIFEST
from readers.dataset import SegDataset
from readers.live_build import LiveBuild
from readers.live_pack import builds
from readers.stores.locks import is_locked

OPTIONS: dict[str, Any] = {"size": (24, 36), "shard_size": "64KiB", "workers": 1}
FLAGS = ("--size", "24x36", "--shard-size", "64KiB")
SHARDS = 6


class KilledError(BaseException):
    """Stands for a kill of the builder: no file changes any more, and all locks are free."""


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> RawFolder:
    return make_raw(tmp_path_factory.mktemp("kills") / "raw", {"train": 60})


@contextmanager
def killed(raw: Path, out: Path, **patches: Any) -> Iterator[SegDataset]:
    """Yield a data set whose builder, in a thread of this process, is about to be killed; at the end it is."""
    opened, build = threading.Event(), LiveBuild.of(raw, OPTIONS)

    def run() -> None:
        with locked_target(out), pytest.raises(KilledError):
            build_for_readers(build.asked, out)

    def check_readers(view: LiveView) -> None:
        opened.wait(HANG)

    with mock.patch.object(LiveView, "check_readers", check_readers), without_workers():
        builder = threading.Thread(target=run)
        builder.start()
        try:
            while not builds(out / LIVE):
                assert builder.is_alive()
            yield open_dataset(raw, "train", pack=out, **OPTIONS)
        finally:
            opened.set()
            builder.join()


def kill_at_shard(number: int) -> Any:
    """Return a patch: the builder is killed when the files of a shard are there, and before readers hear of it."""
    note, noted = LiveView.note, []

    def killing(view: LiveView, shard: int, facts: Any) -> None:
        noted.append(shard)
        if len(noted) == number:
            raise KilledError
        note(view, shard, facts)

    return mock.patch.object(LiveView, "note", killing)


def kill_before(step: str) -> Any:
    return mock.patch.object(packer.building.finish, step, mock.Mock(side_effect=KilledError))


@pytest.mark.parametrize("step", ["sync_shards", "commit", "_add_cells"])
def test_a_reader_has_the_pack_published_that_its_builder_did_not_publish(
    step: str, raw: RawFolder, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with kill_before(step), killed(raw.path, out) as train:
        pass
    assert len(rows_of(train.loader(4, output="numpy"))) == 60
    wait_until_published(out)  # with the settings of the build
    assert tree(out) == tree(pack(raw.path, tmp_path / "built", *FLAGS))


def test_a_manifest_that_was_claimed_is_published(raw: RawFolder, tmp_path: Path) -> None:
    out, replaced = tmp_path / "out", "packer.publish.generation.replaced"
    with mock.patch(replaced, mock.Mock(side_effect=KilledError)), killed(raw.path, out) as train:
        pass
    assert list((out / GENERATIONS).glob("*.json"))
    assert len(rows_of(train.loader(4, output="numpy"))) == 60
    wait_until_published(out, generation=2)


def test_a_reader_hears_of_the_last_shard_when_its_builder_was_killed(raw: RawFolder, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with kill_at_shard(SHARDS), killed(raw.path, out) as train:
        assert train._pack.manifest.shards == SHARDS
    assert len(rows_of(train.loader(4, output="numpy"))) == 60
    wait_until_published(out)


def test_other_options_are_refused_as_long_as_a_program_needs_the_plan(raw: RawFolder, tmp_path: Path) -> None:
    out, other = tmp_path / "out", {**OPTIONS, "size": (12, 18)}
    with kill_at_shard(2), killed(raw.path, out) as train:
        pass
    before = tree(out / LIVE)
    with pytest.raises(ReadError, match="a program reads it that was started with other options"):
        open_dataset(raw.path, "train", pack=out, **other)
    assert tree(out / LIVE) == before
    assert not (out / LIVE / BUILDER).read_text(), "the first program is not told of it"
    assert len(rows_of(train.loader(4, output="numpy"))) == 60
    wait_until_published(out)
    later = open_dataset(raw.path, "train", pack=out, **other)
    assert later[0][0].shape[1:] == (12, 18)


def test_a_plan_of_other_files_does_not_take_the_place_of_one_that_is_read(tmp_path: Path) -> None:
    made, out = make_raw(tmp_path / "raw", {"train": 60}), tmp_path / "out"
    with kill_at_shard(2), killed(made.path, out) as train:
        pass
    for folder in ("images", "masks"):
        (made.path / "train" / folder / "street_007.png").unlink()
    with pytest.raises(ReadError, match="before the raw files changed; end it first"):
        rows_of(train.loader(4, output="numpy"))
    assert len(open_dataset(made.path, "train", pack=out, **OPTIONS)) == 59


def test_a_builder_that_comes_second_changes_nothing(raw: RawFolder, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with kill_at_shard(2), killed(raw.path, out):
        before = (out / LIVE / BUILDER).stat()
        asked = LiveBuild.of(raw.path, OPTIONS).asked
        assert "is being changed by process" in python("-m", "packer.cli.live", out, code=75, input=asked).stderr
        assert (out / LIVE / BUILDER).stat().st_ino == before.st_ino


def test_a_builder_without_readers_says_that_it_did_not_come_to_its_end(
    raw: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that was stopped when it showed its plan starts another one."""
    monkeypatch.setattr("sys.argv", ["live", str(tmp_path / "out")])
    monkeypatch.setattr("sys.stdin", StringIO(LiveBuild.of(raw.path, OPTIONS).asked))
    monkeypatch.setattr("os.nice", lambda by: by)
    monkeypatch.setattr("packer.building.live.LONELY", -1)
    with without_workers(), pytest.raises(SystemExit) as ended:
        live.main()
    assert ended.value.code == live_build.BUSY
    assert not (tmp_path / "out" / MANIFEST).exists()


def test_a_reader_waits_for_the_lock_without_processes(
    raw: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, started = list[Path](), list[Path]()

    class Builder(live_build._Builder):
        def __init__(self, build: LiveBuild, out: Path) -> None:
            started.append(out)
            super().__init__(build, out)

    def looked(path: Path) -> bool:
        looks.append(path)
        return is_locked(path)

    monkeypatch.setattr(live_build, "_Builder", Builder)
    monkeypatch.setattr("readers.live_build.is_locked", looked)
    out, opened = tmp_path / "out", list[SegDataset]()
    out.mkdir()
    thread = threading.Thread(target=lambda: opened.append(open_dataset(raw.path, pack=out, **OPTIONS)))
    with locked(out):
        thread.start()
        while len(looks) < 3:
            time.sleep(0.01)
        assert not started
    thread.join()
    assert started == [out]
    assert len(opened[0]) == 60
