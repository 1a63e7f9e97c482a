"""`packer build --follow`: shards and generations appear while a raw folder grows."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import HANG, RawFolder, errors_of, good, make_raw, pack

from packer.building import follow
from packer.publish.lock import locked
from readers.contract.manifest import GENERATIONS, SHARDS, Manifest, is_pack

FLAGS = ("--size", "24x36", "--shard-size", "8KiB", "--missing", "skip")
LARGER = ("--shard-size", "32KiB")
"""Some rows in each shard."""


class Follower:
    """A process of `packer build --follow`, and what it logged."""

    def __init__(self, raw: Path, out: Path, *options: object) -> None:
        command = [sys.executable, "-m", "packer", "build", "--follow", *map(str, (*FLAGS, *options, raw, out))]
        flags = ("--log-format", "json", "--quiet", "--json")
        self.process = subprocess.Popen(
            [*command, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines.extend(iter(self.process.stderr.readline, ""))

    @property
    def events(self) -> list[str]:
        return [json.loads(line)["event"] for line in list(self.lines)]

    def end(self, number: signal.Signals = signal.SIGTERM) -> str:
        """Send a signal. Return stdout when the process has ended."""
        assert self.process.stdout is not None
        self.process.send_signal(number)
        output = self.process.stdout.read()
        self.process.wait(HANG)
        self._reader.join(HANG)
        return output


@pytest.fixture
def followers() -> Iterator[list[Follower]]:
    started: list[Follower] = []
    yield started
    for follower in started:
        follower.process.kill()
        follower.process.wait()
        for pipe in (follower.process.stdout, follower.process.stderr):
            assert pipe is not None
            pipe.close()


def wait_for(there: Callable[[], object], follower: Follower) -> None:
    until = time.monotonic() + HANG
    while not there():
        assert follower.process.poll() is None, follower.lines
        assert time.monotonic() < until, follower.lines
        time.sleep(0.1)


def generation(out: Path) -> int:
    return Manifest.load(out).generation if is_pack(out) else 0


def add(source: RawFolder, raw: Path, numbers: range, what: str) -> None:
    """Add pictures or labels, each renamed when it is whole or, as slow programs do, not."""
    for number in numbers:
        for path in sorted((source.path / "train" / what).glob(f"*_{number:03}*")):
            target = raw / path.relative_to(source.path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def shard_files(out: Path) -> dict[str, bytes]:
    names = Manifest.load(out).table
    return {path.name: path.read_bytes() for path in (out / GENERATIONS).glob(f"shards-{names[:32]}.npy")}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> RawFolder:
    return make_raw(tmp_path_factory.mktemp("follow") / "raw", {"train": 40})


def test_a_growing_folder_ends_in_the_pack_of_a_build(
    source: RawFolder, tmp_path: Path, followers: list[Follower]
) -> None:
    raw, out = tmp_path / "raw", tmp_path / "out"
    raw.mkdir()
    shutil.copytree(source.path, raw, dirs_exist_ok=True, ignore=lambda *_: ["train"])
    followers.append(follower := Follower(raw, out, "--publish-every", "0"))
    add(source, raw, range(10), "images")
    wait_for(lambda: "waiting" in follower.events, follower)  # no pair is there yet
    add(source, raw, range(6), "masks")
    wait_for(lambda: generation(out) == 1 and Manifest.load(out).rows == 6, follower)
    broken = raw / "train" / "masks" / next((source.path / "train" / "masks").glob("*_006*")).name
    broken.write_bytes((source.path / "train" / "masks" / broken.name).read_bytes()[:60])
    wait_for(lambda: follower.events.count("waiting") == 2, follower)
    assert generation(out) == 1, "half a label is not published"
    with locked(out):
        add(source, raw, range(40), "images")
        add(source, raw, range(40), "masks")
        wait_for(lambda: follower.events.count("waiting") == 3, follower)
    wait_for(lambda: Manifest.load(out).rows == 40, follower)
    output = follower.end()
    assert follower.process.returncode == 128 + signal.SIGTERM
    assert "everything was published before" in follower.lines[-1]
    assert output.count('"rows"') >= 2, "a summary for each generation"
    built = pack(raw, tmp_path / "built", *FLAGS)
    assert Manifest.load(out).same_data(Manifest.load(built))
    assert shard_files(out) == shard_files(built)
    good("verify", out)


def test_shards_appear_before_a_generation_is_due(source: RawFolder, tmp_path: Path, followers: list[Follower]) -> None:
    raw, out = tmp_path / "raw", tmp_path / "out"
    shutil.copytree(source.path, raw, ignore=lambda *_: ["train"])
    add(source, raw, range(0, 40, 4), "images")
    add(source, raw, range(0, 40, 4), "masks")
    followers.append(follower := Follower(raw, out, *LARGER))
    wait_for(lambda: generation(out) == 1, follower)
    first = set((out / SHARDS).iterdir())
    add(source, raw, range(0, 40, 2), "images")
    add(source, raw, range(0, 40, 2), "masks")
    wait_for(lambda: "built" in follower.events, follower)
    early = set((out / SHARDS).iterdir())
    assert early > first
    add(source, raw, range(40), "images")
    add(source, raw, range(40), "masks")
    wait_for(lambda: follower.events.count("built") == 2, follower)
    now = set((out / SHARDS).iterdir())
    assert generation(out) == 1
    assert first < now
    assert early - now, "a shard that has other rows now is deleted"
    follower.end(signal.SIGINT)
    assert follower.process.returncode == 128 + signal.SIGINT
    summary = json.loads(good("build", "--json", *FLAGS, *LARGER, raw, out).stdout)
    assert summary["reused_rows"] == 40, "nothing was left to build"
    assert set((out / SHARDS).iterdir()) == now


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--engine", "ray://auto"), "builds on this machine"),
        (("s3://bucket/raw", "out"), "needs folders of this machine"),
    ],
)
def test_what_cannot_be_followed_is_refused(options: tuple[str, ...], words: str, tmp_path: Path) -> None:
    paths = () if "out" in options else (tmp_path, tmp_path / "out")
    assert words in errors_of(2, "build", "--follow", *options, *paths)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    assert "there is no such folder" in errors_of(1, "build", "--follow", tmp_path / "raw", tmp_path / "out")


def test_a_folder_that_never_rests_is_built_nevertheless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that come all the time would put off the first round for ever."""
    looks = [np.arange(count) for count in range(1, 100)]
    monkeypatch.setattr(follow, "state_of_folder", lambda raw, out: looks.pop(0))
    monkeypatch.setattr(follow, "LEAST_PAUSE", 0.01)
    monkeypatch.setattr(follow, "LONGEST_CHANGE", 0.05)
    assert follow.Follow(tmp_path, tmp_path / "out", 0).wait()


def test_a_plan_does_not_follow(source: RawFolder, tmp_path: Path) -> None:
    assert "is for packer build" in errors_of(2, "plan", "--follow", source.path, tmp_path / "plan")
