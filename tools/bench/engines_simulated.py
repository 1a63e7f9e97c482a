"""A whole build with the real scheduler of Dask and a thousand workers, of which some die.

    tools/run bench.engines_simulated [--workers 1000] [--shards 5000] [--deaths 50]

All workers live in this process: a task waits, and then links the files of its shard from a pack that was built before.
A worker dies by a connection that is cut while it has tasks: the scheduler learns nothing else. What the worker was
doing goes on, so late answers and files happen, too.

With the settings of Dask the event loop does nothing but look after idle workers: each takes samples of its stack 100
times a second, ticks 50 times, and looks at its memory 5 times. `QUIET` turns that off, and nothing else.
"""

from __future__ import annotations

import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import dask
import numpy as np
from distributed import LocalCluster
from program import parser

from bench.machine import PACKER_PACKAGES, machine, versions
from packer import Rows, build_pack
from packer.engines.task import BuiltShard, Task, answer_text
from readers.contract.manifest import SHARDS
from readers.contract.receipt import SUFFIX, Receipt
from readers.contract.shard_table import ShardTable

SIDE = 8
"""The height and width of the pictures."""
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "5s",
    "distributed.admin.tick.limit": "60s",
    "distributed.admin.system-monitor.interval": "1h",
    **{f"distributed.worker.memory.{name}": False for name in ("target", "spill", "pause", "terminate")},
}
OPTIONS: dict[str, Any] = {"classes": 3, "labels": "index", "shard_size": SIDE * SIDE * 4, "workers": 2}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--workers", type=int, default=1000)
    options.add_argument("--shards", type=int, default=5000)
    options.add_argument("--deaths", type=int, default=50)
    chosen = options.parse_args()
    print(machine(), versions((*PACKER_PACKAGES, "distributed")), sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        simulation = Simulation(Path(temporary), chosen.shards)
        print(f"{len(simulation.files)} shards are there; {chosen.workers} workers start", flush=True)
        found = simulation.build(chosen.workers, chosen.deaths)
    print(f"{found.shards} shards, each once in the manifest, {found.runs} runs")
    print(f"{found.died} of {chosen.workers} workers died, {found.left} were left")
    print(f"{found.start:.1f} s until all workers are there, {found.seconds:.1f} s of building")


@dataclass(frozen=True)
class Found:
    """The result of a build with simulated workers."""

    shards: int
    runs: int
    """The shards that workers finished, some of them more than once."""
    died: int
    left: int
    start: float
    seconds: float


class Simulation:
    """A pack that is there, and builds of the same rows by workers that link its files."""

    def __init__(self, root: Path, shards: int, least: float = 1.0, most: float = 3.0) -> None:
        self._root, self._times = root, (least, most)
        self._rows = Rows([("train", f"{number:07d}") for number in range(shards)], scene, sizes=(SIDE, SIDE))
        self.local = build_pack(self._rows, root / "local", **OPTIONS).manifest
        table = ShardTable.open(root / "local", self.local)
        paths = (root / "local" / SHARDS / f"train-{table.fingerprint(number)}{SUFFIX}" for number in range(len(table)))
        self.files = {number: (path, Receipt.load(path)) for number, path in enumerate(paths)}
        """The receipt of each shard, and its path."""
        self._runs: list[int] = []

    def build(self, workers: int, deaths: int) -> Found:
        """Build while workers die. The pack must be the one that is there."""
        begun = time.perf_counter()
        SIMULATIONS[str(self._root / "out")] = self
        with simulated_cluster(workers) as cluster, mock.patch("packer.building.on_cluster.build_task", link):
            started = time.perf_counter()
            died: list[str] = []
            killer = threading.Thread(target=self._kill, args=(cluster, deaths, died))
            killer.start()
            url = cluster.scheduler_address.replace("tcp", "dask")
            summary = build_pack(self._rows, self._root / "out", engine=url, **OPTIONS)
            ended = time.perf_counter()
            killer.join()
            left = len(cluster.scheduler.workers)
        assert summary.manifest.same_data(self.local), "the pack is another one"
        table = ShardTable.open(self._root / "out", summary.manifest)
        assert len({table.fingerprint(number) for number in range(len(table))}) == len(table) == len(self.files)
        return Found(len(table), len(self._runs), len(died), left, started - begun, ended - started)

    def link(self, task: Task) -> BuiltShard:
        """Wait as a worker would, and link the files of the shard."""
        time.sleep(random.uniform(*self._times))
        path, receipt = self.files[task.shard]
        for suffix in (*(file.suffix for file in receipt.files), SUFFIX):
            with suppress(FileExistsError):
                os.link(path.with_name(receipt.stem + suffix), Path(task.out) / SHARDS / f"{receipt.stem}{suffix}")
        self._runs.append(task.shard)
        return BuiltShard(receipt.fingerprint, receipt.digest, receipt.rows, 0, (), receipt.bytes, "simulated")

    def _kill(self, cluster: Any, deaths: int, died: list[str]) -> None:
        """Cut the connections of workers that have tasks, one after the other."""
        while len(self._runs) < len(self.files) // 10:
            time.sleep(0.01)
        for _ in range(deaths):
            busy = [worker for worker in cluster.workers.values() if worker.state.executing_count]
            busy = [worker for worker in busy if worker.address not in died]
            if busy:
                worker = random.choice(busy)
                died.append(worker.address)
                cluster.loop.add_callback(worker.batched_stream.comm.abort)
            time.sleep(0.6 * len(self.files) * sum(self._times) / 2 / len(cluster.workers) / deaths)


SIMULATIONS: dict[str, Simulation] = {}
"""By the folder that they build."""


def link(text: str) -> str:
    """Do what workers do in a simulation. Dask pickles the name of this function alone."""
    task = Task.from_text(text)
    return answer_text(SIMULATIONS[task.out].link(task))


def scene(key: tuple[str, str]) -> dict[str, Any]:
    """A tiny row."""
    rng = np.random.default_rng(list(key[1].encode()))
    image = rng.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    return {"image": image, "label": rng.integers(0, 3, (SIDE, SIDE))}


@contextmanager
def simulated_cluster(workers: int) -> Iterator[Any]:
    """A cluster whose workers are threads of this process, connected by TCP."""
    options = {"dashboard_address": None, "worker_dashboard_address": None, "silence_logs": 50, "memory_limit": 0}
    with (
        dask.config.set(QUIET),
        LocalCluster(n_workers=workers, threads_per_worker=1, processes=False, protocol="tcp", **options) as cluster,
    ):
        yield cluster


if __name__ == "__main__":
    from bench import engines_simulated

    engines_simulated.main()  # functions of __main__ would be pickled with copies of what they use
