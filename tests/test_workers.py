"""Decoders that crash, are killed or hang: the pair is rejected, the rest is packed, no process stays behind."""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import HANG, RawFolder, good, make_raw, pack, run
from drills.processes import orphans
from drills.worker_crashes import drill
from row_loaders import waiting_scene

from packer import build_pack
from packer.errors import EngineError
from packer.plan.make_plan import make_plan
from packer.plan.request import request_of
from packer.recipe.row_ref import RowRef
from packer.shards.inspect import InspectRequest
from packer.sources.files.folder import FolderSource
from packer.sources.rows import Rows
from packer.workers import process
from packer.workers.fork_server import start_fork_server
from packer.workers.heartbeat import Heartbeat, HeartbeatMonitor
from packer.workers.jobs import MOST_FAILURES, InspectJob, Job, ShardJob
from packer.workers.process import Worker
from packer.workers.run import build_shards, inspect_pairs, open_pool
from packer.workers.supervisor import Supervisor
from readers import open_dataset
from readers.contract.manifest import SHARDS
from readers.contract.receipt import SUFFIX, Receipt
from readers.stores.heard import _Heard, hear_of_waits

DEATHS = {
    "segv": "crashed the decoder (SIGSEGV)",
    "abrt": "crashed the decoder (SIGABRT)",
    "kill": "had the decoder killed (SIGKILL), perhaps for want of memory",
    "exit": "ended the decoder (exit code 3)",
    "hang": "took longer than --task-timeout 1 s",
    "large": "needs more memory than there is",
}
HOSTILE = """
import ctypes, os, signal, sys, time
from importlib.machinery import PathFinder

def act(data):
    for word, deed in DEEDS.items():
        if data.endswith(word):
            deed()

def fail_to_allocate():
    import cv2
    error = cv2.error("Failed to allocate")
    error.code = cv2.Error.StsNoMem
    raise error

DEEDS = {
    b"!segv": lambda: ctypes.string_at(0),
    b"!abrt": os.abort,
    b"!kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    b"!exit": lambda: os._exit(3),
    b"!hang": lambda: time.sleep(1e6),
    b"!large": lambda: bytearray(1 << 60),
    b"!cv2": fail_to_allocate,
}

PATCHED = "packer.shards.kinds.picture"

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        spec = super().find_spec(name, path, target) if name == PATCHED else None
        if spec is not None:
            load = spec.loader.exec_module
            def exec_module(module):
                load(module)
                decode = module.decode_image
                module.decode_image = lambda data, *rest: (act(data), decode(data, *rest))[1]
            spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder)
"""
"""A `sitecustomize` that gives every process, also a worker, a decoder that crashes at marked files."""

SMALL = ("--shard-size", "40KB")


@pytest.fixture
def raw(tmp_path: Path) -> RawFolder:
    return make_raw(tmp_path / "raw", {"train": 30})


@pytest.fixture
def hostile(tmp_path: Path) -> dict[str, str]:
    """The environment of a packer with a decoder that can be brought down."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(HOSTILE)
    return {**os.environ, "PYTHONPATH": str(tmp_path / "site")}


def mark(raw: RawFolder, number: int, deed: str) -> None:
    """The end of a PNG is not looked at, except by our decoder."""
    path = raw.path / f"train/images/street_{number:03d}.png"
    path.write_bytes(path.read_bytes() + f"!{deed}".encode())


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "packer", "build", "--quiet", *(str(argument) for argument in arguments)]


def build(environment: dict[str, str], *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a build in a session of its own. It must leave no process behind."""
    process = subprocess.Popen(
        command(*arguments),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    stdout, stderr = process.communicate(timeout=HANG)
    assert not orphans(process.pid, HANG)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def receipts(out: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in out.glob(f"shards/*{SUFFIX}")}


def reasons(out: Path) -> dict[str, str]:
    found = [Receipt.from_text(text, "receipt") for text in receipts(out).values()]
    return {reject.key: reject.reason for receipt in found for reject in receipt.rejects}


def reason(number: int, deed: str) -> str:
    name = f"street_{number:03d}.png"
    return f"train/images/{name} or train/masks/{name}: {DEATHS[deed]}"


@pytest.mark.parametrize("deed", DEATHS)
def test_a_pair_that_no_decoder_survives_is_left_out_and_named(
    raw: RawFolder, hostile: dict[str, str], tmp_path: Path, deed: str
) -> None:
    mark(raw, 4, deed)
    out = tmp_path / "out"
    done = build(hostile, "--on-bad", "skip", "--task-timeout", 1, "--workers", 2, raw.path, out)
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"left out train/street_004: {reason(4, deed)}\n"
    assert run("verify", out).exit_code == 0
    dataset = open_dataset(out)
    assert [dataset.key(row) for row in range(29)] == [f"street_{n:03d}" for n in range(30) if n != 4]
    for row in range(29):
        image = dataset[row][0].numpy().transpose(1, 2, 0)
        assert np.array_equal(image, raw.images["train", dataset.key(row)])
    assert not list(out.glob("shards/.partial-*"))


@pytest.mark.parametrize("shard_size", ["40KB", "10MB"])
def test_many_hostile_pairs_give_the_same_receipts_in_every_shape(
    raw: RawFolder, hostile: dict[str, str], tmp_path: Path, shard_size: str
) -> None:
    deeds = {0: "segv", 1: "abrt", 20: "kill", 29: "segv"}
    for number, deed in deeds.items():
        mark(raw, number, deed)
    found = []
    for workers in (1, 2, 8):
        out = tmp_path / f"out{workers}"
        options = ("--on-bad", "skip", "--shard-size", shard_size, "--workers", workers)
        done = build(hostile, *options, raw.path, out)
        assert done.returncode == 0, done.stderr
        assert reasons(out) == {f"street_{number:03d}": reason(number, deed) for number, deed in deeds.items()}
        assert len(open_dataset(out)) == 26
        found.append({path.name: path.read_bytes() for path in out.glob("shards/*")})
    assert found[0] == found[1] == found[2]


def test_the_rows_are_those_of_a_build_without_the_hostile_pair(
    raw: RawFolder, hostile: dict[str, str], tmp_path: Path
) -> None:
    mark(raw, 7, "segv")
    assert build(hostile, "--on-bad", "skip", raw.path, tmp_path / "out").returncode == 0
    for kind in ("images", "masks"):
        (raw.path / "train" / kind / "street_007.png").unlink()
    without = pack(raw.path, tmp_path / "without")
    columns = {path.name.split(".", 1)[1]: path.read_bytes() for path in without.glob("shards/*.npy")}
    assert len(columns) == 3
    assert columns == {p.name.split(".", 1)[1]: p.read_bytes() for p in (tmp_path / "out").glob("shards/*.npy")}


def test_on_bad_fail_names_every_hostile_pair(raw: RawFolder, hostile: dict[str, str], tmp_path: Path) -> None:
    mark(raw, 3, "segv")
    mark(raw, 17, "hang")
    done = build(hostile, "--task-timeout", 1, *SMALL, raw.path, tmp_path / "out")
    assert done.returncode == 1
    assert "2 of 30 pairs are bad" in done.stderr
    assert reason(3, "segv") in done.stderr
    assert reason(17, "hang") in done.stderr
    assert "Traceback" not in done.stderr
    assert "Fatal Python error" not in done.stderr
    assert not (tmp_path / "out/manifest.json").exists()


def children_of(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            state = (path / "stat").read_text().rpartition(")")[2].split()
            if int(state[1]) == parent and "forkserver" in (path / "cmdline").read_text():
                found.append(int(path.name))
        except OSError:
            continue
    return found


def worker_of(packer: subprocess.Popen[str]) -> int:
    """Any of its workers, as soon as there is one; the server that they are forked from is its child."""
    while packer.poll() is None:
        for server in children_of(packer.pid):
            for worker in children_of(server):
                return worker
        time.sleep(0.01)
    raise AssertionError("the build ended before its worker could be killed")


@pytest.mark.parametrize(
    "pairs", [pytest.param(120, marks=pytest.mark.short), pytest.param(240, marks=pytest.mark.long)]
)
@pytest.mark.parametrize(("workers", "shard_size"), [(2, "4MB"), (2, "1GB")])
def test_a_worker_that_somebody_kills_is_replaced(tmp_path: Path, workers: int, shard_size: str, pairs: int) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 1}, height=512, width=512)
    for kind in ("images", "masks"):
        first = raw.path / "train" / kind / "street_000.png"
        for number in range(1, pairs):
            (first.parent / f"street_{number:03d}.png").hardlink_to(first)
    options = ("--workers", workers, "--shard-size", shard_size, raw.path)
    process = subprocess.Popen(command(*options, tmp_path / "out"), stderr=subprocess.PIPE, text=True)
    time.sleep(0.4)
    os.kill(worker_of(process), signal.SIGKILL)  # once: a pair at which workers die twice would be to blame
    _, words = process.communicate(timeout=HANG)
    assert process.returncode == 0, words
    assert words.startswith("finding"), words
    assert receipts(tmp_path / "out") == receipts(pack(raw.path, tmp_path / "calm", *options[:-1]))
    assert not list((tmp_path / "out").glob("shards/.partial-*"))


def test_while_one_writes_another_decodes_and_no_more_decode_than_were_asked_for(
    raw: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[tuple[int, int]] = []
    real = Supervisor._with_news

    def spy(self: Supervisor) -> list[Worker]:
        decoding = [worker for worker in self._processes if worker.job is not None and not worker.writing]
        counts.append((len(decoding), len(self._processes)))
        return real(self)

    monkeypatch.setattr(Supervisor, "_with_news", spy)
    plan = make_plan(request_of(raw.path, tmp_path / "out", shard_size=40_000, workers=2))
    assert len(plan.specs) > 4
    (tmp_path / "out" / SHARDS).mkdir(parents=True)
    with open_pool(workers=2, task_timeout=300) as pool:
        receipts = dict(build_shards(plan.specs, plan.found_rows.source, tmp_path / "out", pool))
    assert sorted(receipts) == list(range(len(plan.specs)))
    assert max(decoding for decoding, _ in counts) == 2
    assert max(workers for _, workers in counts) <= 3


def test_the_sample_and_the_shards_share_their_processes(
    raw: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No process is started for the sample of labels and ended before the shards."""
    heard: list[tuple[Worker, str]] = []
    real = Worker.give

    def spy(self: Worker, job: Job[Any]) -> None:
        heard.append((self, type(job).__name__))
        real(self, job)

    monkeypatch.setattr(Worker, "give", spy)
    good("build", "--workers", 1, "--shard-size", "40KB", raw.path, tmp_path / "out")
    sampled, built = ({worker for worker, name in heard if name == kind} for kind in ("InspectJob", "ShardJob"))
    assert len(sampled) == 1
    assert sampled <= built


def test_a_packer_whose_workers_cannot_start_says_so(raw: RawFolder, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    start = "import os\nos.register_at_fork(after_in_child=lambda: os._exit(1))\n"
    (tmp_path / "site/sitecustomize.py").write_text(start)
    done = build({**os.environ, "PYTHONPATH": str(tmp_path / "site")}, raw.path, tmp_path / "out")
    assert done.returncode == 1
    assert "worker processes end as they start" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def job(raw: RawFolder, tmp_path: Path) -> ShardJob:
    (spec,) = make_plan(request_of(raw.path, tmp_path / "out")).specs
    return ShardJob(0, spec, FolderSource(raw.path).to_text(), tmp_path / "out")


def test_one_death_condemns_nobody_and_two_alone_do(job: ShardJob) -> None:
    job.crashed((3, 5), "crashed")
    assert job.next_task().indices == tuple(range(30))
    job.crashed((5,), "crashed")
    assert job.next_task().indices == tuple(range(6, 30))
    job.passed()
    assert job.next_task().indices == (5,)
    job.passed()
    assert (job.next_task().indices, job.next_task().crashed) == (None, {})
    job.crashed((5,), "crashed again")
    while job.next_task().indices is not None:
        job.passed()
    assert list(job.next_task().crashed) == [5]
    assert job.next_task().crashed[5].endswith("/street_005.png: crashed again")


@pytest.mark.parametrize("indices", [(), (1, 2), (2**63,)])
def test_crashes_that_no_pair_is_to_blame_for_end_the_build(job: ShardJob, indices: tuple[int, ...]) -> None:
    for _ in range(MOST_FAILURES):
        job.crashed(indices, "crashed")
        while job.next_task().indices is not None:
            job.passed()
    with pytest.raises(EngineError, match="crashed 4 times at the shard of train/street_000 to street_029"):
        job.crashed(indices, "crashed")


def test_a_watch_counts_only_the_time_at_the_same_pair() -> None:
    cells = (ctypes.c_uint64 * 2)()
    pulse = ctypes.c_uint64()
    heartbeat, watch = Heartbeat(cells, pulse), HeartbeatMonitor(cells, pulse)
    with heartbeat.at(7):
        with heartbeat.at(0):
            assert watch.indices() == (0, 7)
            assert [watch.overdue(1, 2) for _ in range(3)] == [None, None, None]
        assert watch.overdue(0.5, 2) == 7
        watch.restart()
        assert watch.overdue(100, 2) is None
    assert watch.indices() == ()
    assert watch.overdue(100, 2) is None


def test_a_watch_counts_the_time_without_a_sign_of_life() -> None:
    pulse = ctypes.c_uint64()
    watch = HeartbeatMonitor((ctypes.c_uint64 * 1)(), pulse)
    assert [watch.silent(2), watch.silent(3)] == [2, 5]
    pulse.value += 1
    assert [watch.silent(4), watch.silent(1)] == [0, 1]


def kill_fork_server() -> None:
    server = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    os.kill(server, signal.SIGKILL)
    os.waitid(os.P_PID, server, os.WEXITED | os.WNOWAIT)


def test_the_fork_server_dies_while_a_worker_is_idle(raw: RawFolder, tmp_path: Path) -> None:
    """The workers go on, also the idle one, and they are ended at the end although nobody reports their end."""

    def hang(number: int, frame: object) -> None:
        raise AssertionError("the pool waits for a worker that has nothing to say")

    requests = [InspectRequest(RowRef("", "", ("", f"train/masks/street_{number:03d}.png"))) for number in range(3)]
    before = signal.signal(signal.SIGALRM, hang)
    signal.setitimer(signal.ITIMER_REAL, HANG)
    try:
        with open_pool(workers=2, task_timeout=300) as pool:
            assert isinstance(pool, Supervisor)
            counts = inspect_pairs(requests, FolderSource(raw.path), pool)
            pool._assign(2, 2)
            while not all(worker.ready for worker in pool._processes):
                for worker in pool._with_news():
                    pool._attend(worker)
            processes = list(pool._processes)
            kill_fork_server()
            multiprocessing.active_children()  # multiprocessing now believes that all workers have ended
            assert inspect_pairs(requests[:1], FolderSource(raw.path), pool) == counts[:1]
            assert pool._processes == processes
            ended = [worker._process.pid for worker in processes]
            assert inspect_pairs(requests, FolderSource(raw.path), pool) == counts
        assert not any(Path(f"/proc/{number}/exe").exists() for number in ended)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_the_fork_server_dies_while_it_starts_a_worker(
    raw: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, deaths = start_fork_server, ["once"]

    def dies() -> None:
        real()
        if deaths:
            deaths.pop()
            kill_fork_server()
            monkeypatch.setattr(forkserver, "ensure_running", lambda: None)
            monkeypatch.setattr(forkserver._forkserver, "ensure_running", lambda: None)
        else:
            monkeypatch.undo()
            real()

    with open_pool(workers=1, task_timeout=300) as pool:
        monkeypatch.setattr(process, "start_fork_server", dies)
        request = InspectRequest(RowRef("", "", ("", "train/masks/street_000.png")))
        assert len(inspect_pairs([request], FolderSource(raw.path), pool)) == 1
    assert not deaths


@pytest.mark.parametrize(
    ("kills", "hangs", "ooms", "servers", "pairs"),
    [
        pytest.param(1, 1, 0, 1, 12, marks=pytest.mark.short),
        pytest.param(2, 1, 1, 2, 12, marks=pytest.mark.long),
    ],
)
def test_workers_that_are_killed_or_stopped_at_any_time_cost_nothing_but_time(
    kills: int, hangs: int, ooms: int, servers: int, pairs: int
) -> None:
    tallies = drill(kills, hangs, ooms, servers, pairs, random.Random(5))
    assert [line for tally in tallies.values() for line in tally.broken] == []


def test_a_picture_that_memory_does_not_suffice_for_is_left_out_and_named(
    raw: RawFolder, hostile: dict[str, str], tmp_path: Path
) -> None:
    mark(raw, 6, "large")
    mark(raw, 9, "cv2")
    done = build(hostile, "--on-bad", "skip", "--workers", 2, raw.path, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert reasons(tmp_path / "out") == {f"street_{number:03d}": reason(number, "large") for number in (6, 9)}
    assert len(open_dataset(tmp_path / "out")) == 28


def test_a_glance_is_not_blamed_for_the_death_of_a_worker_that_had_not_begun_it() -> None:
    job = InspectJob(0, InspectRequest(RowRef("", "", ("", "train/masks/a.png"))), FolderSource(Path("raw")).to_text())
    for _ in range(MOST_FAILURES):
        job.crashed((), "was killed")
        assert json.loads(job.task())["crashed"] is None
    with pytest.raises(EngineError, match=r"crashed 4 times at train/masks/a\.png"):
        job.crashed((), "was killed")


def test_a_wait_in_workers_is_reported_once_by_their_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, float]] = []
    monkeypatch.setattr("readers.stores.heard._HEARD", _Heard())
    hear_of_waits(lambda why, seconds: told.append((why, seconds)))
    rows = Rows([("train", str(number)) for number in range(40)], waiting_scene, sizes=(20, 30))
    summary = build_pack(rows, tmp_path / "out", classes=3, shard_size="12KB", workers=2)
    assert summary.rows == 40
    assert told == [("s3://bucket/raw: status 503", 150.0)]
