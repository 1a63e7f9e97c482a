"""The pool without worker processes: the same bytes, rejects and errors as with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import RawFolder, errors_of, good, make_raw, run

from packer.decoding.decode import decode_image
from packer.decoding.rules import ImageRules
from packer.plan.make_plan import make_plan
from packer.plan.request import request_of
from packer.recipe.row_ref import RowRef
from packer.shards.inspect import InspectRequest
from packer.sources.files.folder import FolderSource
from packer.workers.in_process import InProcess
from packer.workers.run import build_shards, inspect_pairs, open_pool
from packer.workers.supervisor import Supervisor


@pytest.fixture
def raw(tmp_path: Path) -> RawFolder:
    """30 pairs, of which three are bad: found by the header, by the label sample, and by decoding."""
    raw = make_raw(tmp_path / "raw", {"train": 20, "val": 10})
    for name in ("val/images/street_003.png", "train/masks/street_007.png"):
        path = raw.path / name
        path.write_bytes(path.read_bytes()[:-40])
    return raw


def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have commands run without worker processes, and fail if one is started."""

    def forbidden(*arguments: object) -> None:
        raise AssertionError("a worker process is started")

    monkeypatch.setattr("packer.workers.run.POOL", InProcess)
    monkeypatch.setattr("packer.workers.process.start_fork_server", forbidden)
    monkeypatch.setattr("packer.workers.supervisor.start_fork_server", forbidden)


def files(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "shards").iterdir()}


@pytest.mark.parametrize("shard_size", ["20KB", "1GB"])
def test_bytes_and_rejects_are_those_of_worker_processes(
    raw: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shard_size: str
) -> None:
    options = ("--json", "--quiet", "--on-bad", "skip", "--workers", 2, "--shard-size", shard_size, raw.path)
    answers = []
    for name in ("processes", "here"):
        if name == "here":
            in_process(monkeypatch)
        done = good("build", *options, tmp_path / name)
        answer = json.loads(done.stdout)
        answers.append({key: answer[key] for key in ("pairs", "rows", "rejects", "splits", "bytes", "findings")})
    assert len(answers[0]["rejects"]) == 2
    assert answers[0] == answers[1]
    assert files(tmp_path / "processes") == files(tmp_path / "here")


def test_errors_are_those_of_worker_processes(raw: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = []
    for name in ("processes", "here"):
        if name == "here":
            in_process(monkeypatch)
        errors = errors_of(1, "build", "--quiet", raw.path, tmp_path / name)
        words.append(errors)
    assert words[0] == words[1]
    assert "street_003.png" in words[0]


def test_probe_needs_no_processes_either(raw: RawFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run("probe", "--json", raw.path).stdout
    in_process(monkeypatch)
    assert run("probe", "--json", raw.path).stdout == expected


@pytest.mark.parametrize("threads", [1, 4])
def test_a_picture_that_memory_is_too_small_for_is_rejected_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 12})
    victim = raw.path / "train/images/street_005.png"
    victim.write_bytes(victim.read_bytes() + b"!large")

    def greedy(data: bytes, rules: ImageRules) -> Any:
        return bytearray(1 << 60) if data.endswith(b"!large") else decode_image(data, rules)

    (spec,) = make_plan(request_of(raw.path, tmp_path / "out"), pool=InProcess(1, 1)).specs
    (tmp_path / "out/shards").mkdir(parents=True)
    monkeypatch.setattr("packer.shards.kinds.picture.decode_image", greedy)

    ((_, receipt),) = build_shards([spec], FolderSource(raw.path), tmp_path / "out", InProcess(threads, 1))
    path = "train/images/street_005.png or train/masks/street_005.png"
    assert [reject.reason for reject in receipt.rejects] == [f"{path}: needs more memory than there is"]
    assert receipt.rows == 11


def test_the_workers_that_inspected_pairs_build_the_shards(raw: RawFolder, tmp_path: Path) -> None:
    with open_pool(2, 300) as pool:
        assert isinstance(pool, Supervisor)
        requests = [InspectRequest(RowRef("", "", ("", f"val/masks/street_00{number}.png"))) for number in range(8)]
        assert len(inspect_pairs(requests, FolderSource(raw.path), pool)) == 8
        first = {id(worker) for worker in pool._processes}
        assert first
        assert len(inspect_pairs(requests, FolderSource(raw.path), pool)) == 8
        assert first <= {id(worker) for worker in pool._processes}
        pool.close()
        assert not pool._processes
        assert len(inspect_pairs(requests, FolderSource(raw.path), pool)) == 8
    assert not pool._processes
