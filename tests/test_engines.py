"""One suite for all engines: whatever happens, the pack is that of a local build, or nothing is published."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import engine_rows
import pytest
from conftest import HANG, REPO
from cut_proxy import CutProxy
from engine_clusters import broken_modules, dask_worker, ray_head, ray_node
from engine_rows import AT, FAULTS, POISON, POISON_ON, WAIT, build_rows, connect_threads
from store_servers import credentials, new_url, server

from packer.engines.build_task import build_task, end_stations
from packer.engines.connect import connect
from packer.engines.engine import Build, Connection, Engine
from packer.engines.failing_workers import IN_A_ROW
from packer.engines.station import Station as StationAnswers
from packer.engines.task import Failed, Refused, Task, Wrong, read_answer
from packer.errors import BusyError, EngineError, UnavailableError, UsageError, VersionsError
from packer.packs.push import pull_pack
from packer.packs.verify_pack import verify_pack
from packer.publish.target import PLANS
from packer.workers.cluster_events import ClusterEvents
from readers.contract.manifest import MANIFEST, Manifest
from readers.stores.open_store import open_store


@dataclass(frozen=True)
class Cluster:
    """An engine under test. `workers` are its processes that run tasks; none if these are threads of this process."""

    url: str
    workers: Callable[[], set[int]]

    @property
    def connect(self) -> Callable[[str], AbstractContextManager[Connection]]:
        return connect_threads if self.url.startswith("threads") else connect


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the faults, and an environment in which workers find the modules of the tests."""
    folder = tmp_path_factory.mktemp("faults")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FAULTS, str(folder))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(REPO), str(REPO / "tests")]))
        if find_spec("ministack") is not None:  # workers take their credentials from the environment
            for name, value in credentials(server("ministack")).items():
                patch.setenv(name, value)
        forkserver._forkserver._stop()  # type: ignore[attr-defined]  # that of other tests has another environment
        yield folder


@contextmanager
def threads_cluster() -> Iterator[Cluster]:
    try:
        yield Cluster("threads://2", set)
    finally:
        end_stations()


@contextmanager
def dask_cluster() -> Iterator[Cluster]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50, worker_dashboard_address=None
    ) as cluster:
        workers: Callable[[], set[int]] = lambda: {worker.pid for worker in cluster.workers.values()}  # noqa: E731
        yield Cluster(cluster.scheduler_address.replace("tcp", "dask"), workers)


@contextmanager
def ray_cluster() -> Iterator[Cluster]:
    pytest.importorskip("ray")
    with ray_head("--num-cpus=2"):
        yield Cluster("ray://auto", set)


CLUSTERS = {"threads": threads_cluster, "dask": dask_cluster, "ray": ray_cluster}


@pytest.fixture(scope="module", params=["threads", "dask", pytest.param("ray", marks=pytest.mark.long)])
def cluster(request: pytest.FixtureRequest, faults: Path) -> Iterator[Cluster]:
    with CLUSTERS[request.param]() as opened:
        yield opened


@pytest.fixture(scope="module")
def local(faults: Path, tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    """The manifest of a local build."""
    return build_rows(tmp_path_factory.mktemp("local") / "out").manifest


@pytest.fixture(autouse=True)
def no_faults(faults: Path) -> None:
    for path in faults.iterdir():
        path.unlink()


def wait_for(found: Callable[[], object]) -> None:
    end = time.monotonic() + HANG
    while not found():
        assert time.monotonic() < end
        time.sleep(0.02)


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def lives(process: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def at(faults: Path) -> int:
    """Wait for a worker process of a station to be in the middle of its shard, and return it."""
    wait_for(lambda: list(faults.glob(f"{AT}*")))
    return int(next(faults.glob(f"{AT}*")).name.removeprefix(AT))


def check(out: Path, local: Manifest) -> None:
    """The pack is that of a local build, every byte is whole, and nothing is left over."""
    assert Manifest.load(out).same_data(local)
    assert not verify_pack(out)
    assert not (out / PLANS).exists()


@dataclass(frozen=True)
class Unreliable:
    """An engine that runs each task twice, and declares some dead that go on."""

    engine: Engine
    given_up: list[Future[str]]

    def submit(self, build: Build, task: str, /) -> Future[str]:
        first, second = self.engine.submit(build, task), self.engine.submit(build, task)
        self.given_up.append(first)
        if len(self.given_up) % 3:
            return second
        dead: Future[str] = Future()
        dead.set_exception(RuntimeError("the worker does not answer"))
        return dead

    def avoid(self, worker: str) -> None:
        self.engine.avoid(worker)

    def shutdown(self, wait: bool = True) -> None:
        raise AssertionError("who opened the engine closes it")


def test_the_pack_is_that_of_a_local_build(cluster: Cluster, local: Manifest, tmp_path: Path) -> None:
    summary = build_rows(tmp_path / "out", cluster.url)
    check(tmp_path / "out", local)
    assert summary.rows == len(engine_rows.KEYS)
    assert build_rows(tmp_path / "out", cluster.url).manifest.generation == 1


def test_out_in_a_bucket(cluster: Cluster, local: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stations send what they build, and are asked again while others send the same."""
    server("ministack")
    monkeypatch.setattr("packer.engines.submit.pause", lambda tries: 0.0)
    given_up: list[Future[str]] = []

    @contextmanager
    def unreliable(url: str) -> Iterator[Connection]:
        with cluster.connect(url) as connection:
            yield Connection(Unreliable(connection.engine, given_up), connection.slots, connection.workers)
            for future in given_up:
                assert not isinstance(read_answer(future.result(HANG)), (Refused, Wrong))

    url = new_url()
    summary = build_rows(url, cluster.url, connect=unreliable)
    assert summary.manifest.same_data(local)
    found = {entry.name for entry in open_store(url).list("")}
    assert not any(name.startswith(PLANS) for name in found)
    assert build_rows(url, cluster.url).manifest.generation == 1
    assert {entry.name for entry in open_store(url).list("")} == found
    pull_pack(url, tmp_path / "pulled")
    check(tmp_path / "pulled", local)


def test_a_worker_is_killed_in_the_middle_of_a_shard(
    cluster: Cluster, local: Manifest, faults: Path, tmp_path: Path
) -> None:
    killed: list[int] = []

    def kill() -> None:
        worker = at(faults)
        station = parent(parent(worker))
        os.kill(station if cluster.url.startswith("threads") else parent(station), signal.SIGKILL)
        killed.extend([worker, station])
        wait_for(lambda: not any(map(lives, killed)))
        (faults / WAIT).unlink()

    killer = threading.Thread(target=kill)
    killer.start()
    build_rows(tmp_path / "out", cluster.url, (WAIT,))
    killer.join()
    assert len(killed) == 2
    check(tmp_path / "out", local)


def test_tasks_run_twice_and_end_after_they_were_given_up(
    cluster: Cluster, local: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_up: list[Future[str]] = []

    @contextmanager
    def unreliable(url: str) -> Iterator[Connection]:
        with cluster.connect(url) as connection:
            yield Connection(Unreliable(connection.engine, given_up), connection.slots, connection.workers)
            for future in given_up:  # they end after the build, which has published
                assert not isinstance(read_answer(future.result(HANG)), (Refused, Wrong))

    monkeypatch.setattr("packer.engines.submit.pause", lambda tries: 0.0)
    build_rows(tmp_path / "out", cluster.url, connect=unreliable)
    assert len(given_up) > Manifest.load(tmp_path / "out").splits[0].shards
    check(tmp_path / "out", local)


def test_a_poison_pair_kills_no_worker_of_the_engine(cluster: Cluster, tmp_path: Path) -> None:
    here = build_rows(tmp_path / "here", None, (POISON_ON,))
    before = cluster.workers()
    there = build_rows(tmp_path / "out", cluster.url, (POISON_ON,))
    assert [key for _, key, _ in there.rejects] == [POISON]
    assert there.rejects == here.rejects
    assert cluster.workers() == before
    check(tmp_path / "out", here.manifest)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("packer.plan.write_plan.VERSION", "0.0.1", "the plan is of 0.0.1"),
        ("packer.recipe.recipe.decoder_identity", lambda: "OpenCV 4.11", "the plan OpenCV 4.11"),
    ],
)
def test_a_worker_of_another_version_is_refused(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object, words: str
) -> None:
    monkeypatch.setattr(name, value)
    with pytest.raises(VersionsError, match=words):
        build_rows(tmp_path / "out", cluster.url)
    assert not (tmp_path / "out" / MANIFEST).exists()
    assert not (tmp_path / "out" / PLANS).exists()


def test_a_coordinator_is_killed_and_another_goes_on(
    cluster: Cluster, local: Manifest, faults: Path, tmp_path: Path
) -> None:
    """While the first one builds, a second one is refused."""
    out = tmp_path / "out"
    command = [sys.executable, str(REPO / "tests" / "engine_rows.py"), str(out), cluster.url, WAIT]
    with subprocess.Popen(command) as first:
        at(faults)
        with pytest.raises(BusyError):
            build_rows(out, cluster.url)
        first.kill()
    assert not (out / MANIFEST).exists()
    (faults / WAIT).unlink()  # the shard of the first one goes on, if its worker still lives
    build_rows(out, cluster.url)
    check(out, local)


@pytest.mark.long
@pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")
def test_all_connections_are_cut_in_the_middle_of_a_shard(local: Manifest, faults: Path, tmp_path: Path) -> None:
    """The command connects again. A worker of Dask that loses its scheduler ends, and others start."""
    import distributed

    with ExitStack() as stack:
        settings: dict[str, Any] = {"dashboard_address": ":0", "silence_logs": 50}
        cluster = stack.enter_context(distributed.LocalCluster(n_workers=0, **settings))
        proxy = stack.enter_context(closing(CutProxy(cluster.scheduler.port)))
        address = f"127.0.0.1:{proxy.port}"
        command = [sys.executable, "-m", "distributed.cli.dask_worker", f"tcp://{address}", "--no-dashboard"]
        cut: list[int] = []

        def start() -> None:
            for _ in range(2):
                worker = subprocess.Popen([*command, "--nthreads", "1"], stderr=subprocess.DEVNULL)
                stack.callback(worker.wait)
                stack.callback(worker.terminate)

        def cut_all() -> None:
            at(faults)
            cut.append(proxy.cut())
            (faults / WAIT).unlink()
            start()

        start()
        cutter = threading.Thread(target=cut_all)
        cutter.start()
        build_rows(tmp_path / "out", f"dask://{address}", (WAIT,))
        cutter.join()
    assert cut[0] >= 3
    check(tmp_path / "out", local)


@pytest.mark.long
@pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")
def test_a_scheduler_that_never_comes_back_ends_the_build(local: Manifest, faults: Path, tmp_path: Path) -> None:
    import dask
    import distributed

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        closing(CutProxy(cluster.scheduler.port)) as proxy,
    ):

        def end() -> None:
            at(faults)
            proxy.close()

        ender = threading.Thread(target=end)
        ender.start()
        with pytest.raises(UnavailableError, match="the scheduler went away and did not come back"):
            build_rows(tmp_path / "out", f"dask://127.0.0.1:{proxy.port}", (WAIT,))
        ender.join()
        (faults / WAIT).unlink()
    assert not (tmp_path / "out" / MANIFEST).exists()


def test_signals_are_handled_inside_like_outside(cluster: Cluster) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with cluster.connect(cluster.url):
        assert signal.getsignal(signal.SIGTERM) is before


def test_a_station_that_does_not_start_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    end_stations()  # those of other tests are idle
    monkeypatch.setattr("packer.engines.build_task.STATION", "packer.engines.no_station")
    failed = read_answer(build_task(Task("/plans/1", "a" * 64, 0, "/out", None, 300).to_text()))
    assert isinstance(failed, Failed)
    assert "the station ended (exit code 1)" in failed.failed
    assert not failed.passes
    assert failed.worker.endswith(f"/{os.getpid()}")


def test_a_station_finds_what_its_worker_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker found its modules by `sys.path`, which its environment does not name."""
    end_stations()
    (tmp_path / "station_elsewhere.py").write_text("print(input())")
    monkeypatch.setattr("packer.engines.build_task.STATION", "station_elsewhere")
    monkeypatch.syspath_prepend(tmp_path)
    task = Task("/plans/1", "a" * 64, 0, "/out", None, 300).to_text()
    assert build_task(task) == task
    end_stations()


def test_a_plan_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    with closing(StationAnswers("n1/1")) as station:
        answer = station.answer(Task(str(tmp_path), "a" * 64, 0, str(tmp_path), None, 300).to_text())
    assert isinstance(answer, Failed)


@pytest.mark.long
def test_a_broken_worker_of_dask(faults: Path, local: Manifest, tmp_path: Path) -> None:
    """One of two workers lacks a library: it gets no more tasks."""
    distributed = pytest.importorskip("distributed")
    failures, avoided = list[str](), list[str]()
    events = ClusterEvents(failed=lambda shard, why: failures.append(why), avoided=avoided.append)
    options: dict[str, Any] = {"dashboard_address": ":0", "silence_logs": 50, "worker_dashboard_address": None}
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, **options) as cluster:
        address = cluster.scheduler_address
        with dask_worker(address, **broken_modules(tmp_path / "modules", "cv2")):
            wait_for(lambda: len(cluster.scheduler.workers) == 2)
            build_rows(tmp_path / "out", address.replace("tcp", "dask"), events=events)
    check(tmp_path / "out", local)
    assert IN_A_ROW <= len(failures) <= 8
    assert avoided == [socket.gethostname()]


@dataclass
class ClientOfDask:
    """Stands for a client of Dask, whose tasks never end by themselves."""

    threads: dict[str, int]
    sent: list[tuple[Any, list[str] | None]] = field(default_factory=list)
    cancelled: list[Any] = field(default_factory=list)

    def subscribe_topic(self, topic: str, keep: Callable[[Any], None]) -> None:
        """Send no events."""

    def nthreads(self) -> dict[str, int]:
        return self.threads

    def submit(self, *arguments: object, workers: list[str] | None, **options: object) -> Future[str]:
        task: Future[str] = Future()
        self.sent.append((task, workers))
        return task

    def cancel(self, tasks: list[Any]) -> None:
        self.cancelled += tasks


def test_tasks_of_dask_avoid_a_worker_and_come_back_when_the_others_have_left() -> None:
    pytest.importorskip("distributed")
    from packer.engines.dask_engine import DaskEngine

    client = ClientOfDask({"tcp://a": 1, "tcp://b": 2})
    engine = DaskEngine(client)
    assert engine.slots() == 3
    engine.submit(build_task, "0")
    engine.avoid("host/tcp://b")
    engine.submit(build_task, "1")
    assert engine.slots() == 1
    assert [workers for _, workers in client.sent] == [None, ["tcp://a"]]
    client.threads = {"tcp://b": 2, "tcp://c": 4}
    assert engine.slots() == 4
    assert client.cancelled == [client.sent[1][0]]
    engine.submit(build_task, "1")
    assert client.sent[-1][1] == ["tcp://c"]


@pytest.mark.long
@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")
def test_broken_nodes_of_ray(faults: Path, local: Manifest, tmp_path: Path) -> None:
    """One of two nodes lacks a library: it gets no more tasks. When the other one is gone, the build ends at once."""
    failures, avoided = list[str](), list[str]()
    events = ClusterEvents(failed=lambda shard, why: failures.append(why), avoided=avoided.append)
    lacks_library = broken_modules(tmp_path / "modules", "cv2")
    with ray_head("--num-cpus=0") as address:
        join = f"--address={address}"
        with ray_node(2, join, "--num-cpus=1"), ray_node(3, join, "--num-cpus=2", **lacks_library):
            build_rows(tmp_path / "out", "ray://auto", events=events)
        check(tmp_path / "out", local)
        assert {why.partition(": ")[2] for why in failures} == {"ImportError: libGL.so.1: cannot open"}
        assert IN_A_ROW <= len(failures) <= 10
        assert avoided == [socket.gethostname()]
        only = ray_node(2, join, "--num-cpus=2", **lacks_library)
        with only, pytest.raises(EngineError, match=r"the only worker failed 3 times in a row, .*libGL"):
            build_rows(tmp_path / "none", "ray://auto")
        assert not (tmp_path / "none" / MANIFEST).exists()


def test_urls() -> None:
    for url in ("dask", "dask://", "slurm://here", "ray:"):
        with pytest.raises(UsageError, match="expected dask://HOST:PORT"):
            connect(url)


@pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")
def test_a_scheduler_that_does_not_answer() -> None:
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(UnavailableError, match="no scheduler answers"),
        connect("dask://127.0.0.1:9"),
    ):
        pass


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "packer.engines.ray_engine", raising=False)
    with pytest.raises(UsageError, match=r"pip install 'segpack\[ray\]'"):
        connect("ray://auto")
