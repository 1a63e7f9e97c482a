"""Building on Dask: next to the local engine on the same cores, the cost of a task, and a thousand simulated workers.

    tools/run bench.engines [--pairs 800] [--rounds 3]
    tools/run bench.engines --tasks 5000
    tools/run bench.engines --simulate 1000 [--shards 5000] [--deaths 50]

The first form builds the same pairs locally and on a Dask cluster of two worker processes in turns. *pairs/s* counts
from the first shard that is handed out to the last receipt, *cpu* is the CPU time of all processes for a pair. The
second form gives tasks that do nothing to the same cluster. The third form is a whole build with the real scheduler of
Dask, in which workers are threads: a task waits, and then links the files of its shard from a pack that was built
before. While it runs, the scheduler loses as many workers as `--deaths` says, with the tasks that they have.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from distributed import LocalCluster
from program import REPO, parser
from scenes.camera import make_linked_streets
from scenes.street import CLASSES
from tables import aligned

from bench.cpu import cpu_seconds
from bench.machine import PACKER_PACKAGES, machine, versions
from packer import Rows, build_pack
from packer.build.summary import Summary
from packer.engines.connect import connect
from packer.engines.submit import submit_all
from packer.engines.task import Built, Task, answer_text
from readers.contract.manifest import SHARDS, Manifest
from readers.contract.receipt import SUFFIX, Receipt
from readers.contract.shard_table import ShardTable

SIDE = 8
"""The height and width of the pictures of simulated workers."""
DONE = answer_text(Built("0" * 32, "0" * 64, 1, 0, (), 1, "nowhere"))
FILES: dict[int, tuple[Path, Receipt]] = {}
"""The receipt of each shard that simulated workers link, and its path."""
RUNS: list[int] = []
"""The shards that simulated workers have finished."""


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pairs", type=int, default=800)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--tasks", type=int, help="measure the cost of so many tasks")
    options.add_argument("--simulate", type=int, metavar="WORKERS", help="simulate so many workers")
    options.add_argument("--shards", type=int, default=5000)
    options.add_argument("--deaths", type=int, default=50)
    chosen = options.parse_args()
    print(machine(), versions((*PACKER_PACKAGES, "distributed")), sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        if chosen.simulate:
            simulate(root, chosen.simulate, chosen.shards, chosen.deaths)
        elif chosen.tasks:
            measure_tasks(chosen.tasks)
        else:
            compare(root, chosen.pairs, chosen.rounds)


@contextmanager
def dask(workers: int = 2, processes: bool = True) -> Iterator[tuple[Any, str]]:
    """A Dask cluster of this machine, and its URL."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(REPO), str(REPO / "tools")])
    options = {"dashboard_address": ":0", "silence_logs": 50, "protocol": "tcp", "processes": processes}
    with LocalCluster(n_workers=workers, threads_per_worker=1, **options) as cluster:
        yield cluster, cluster.scheduler_address.replace("tcp", "dask")


def compare(root: Path, pairs: int, rounds: int) -> None:
    """Build locally and on Dask in turns, and print the rates."""
    make_linked_streets(root / "raw", pairs)
    figures: dict[str, list[tuple[float, float]]] = {"local": [], "dask": []}
    with dask() as (_, url):
        for number in range(rounds + 1):
            for name, engine in (("local", None), ("dask", url)):
                os.sync()
                started = cpu_seconds()
                summary = _packed(root / "raw", root / f"{name}-{number}", engine)
                if number:  # the first round starts the stations
                    figures[name].append((pairs / summary.stages["build"], 1000 * (cpu_seconds() - started) / pairs))
            first, second = (Manifest.load(root / f"{name}-{number}") for name in figures)
            assert first.same_data(second), "the packs differ"
    rows: list[tuple[str, ...]] = [("", "pairs/s", "lowest", "highest", "cpu ms")]
    for name, found in figures.items():
        rates, cpu = zip(*found, strict=True)
        speeds = (f"{act(rates):.1f}" for act in (statistics.median, min, max))
        rows.append((name, *speeds, f"{statistics.median(cpu):.2f}"))
    both = list(zip(figures["dask"], figures["local"], strict=True))
    rate, cost = (statistics.median(mine[column] / other[column] for mine, other in both) for column in (0, 1))
    print(*aligned(rows), f"Dask reaches {rate:.3f} of the local rate, with {cost:.3f} of its CPU time", sep="\n")


def _packed(raw: Path, out: Path, engine: str | None) -> Summary:
    options: dict[str, Any] = {"classes": len(CLASSES), "size": (512, 512), "labels": "index", "shard_size": 16 << 20}
    if engine is not None:
        options["engine"] = engine
    return build_pack(raw, out, workers=2, **options)


def answered(task: str) -> str:
    """Build nothing."""
    return DONE


def measure_tasks(count: int) -> None:
    """Print the time and the CPU time that a task costs besides its work."""
    with dask() as (_, url), connect(url) as connection:
        for number in (100, count):  # the first ones warm up
            started, spent = time.perf_counter(), cpu_seconds()
            tasks = (Task("/plans/0123456789abcdef", "0" * 64, each, "/out", None, 300) for each in range(number))
            assert sum(1 for _ in submit_all(connection.engine, answered, tasks, connection.slots)) == number
            seconds, cpu = time.perf_counter() - started, cpu_seconds() - spent
    print(f"{count} tasks, 2 workers: {1000 * seconds / count:.2f} ms a task, {1000 * cpu / count:.2f} ms of CPU")


def scene(key: tuple[str, str]) -> dict[str, Any]:
    """A tiny row."""
    rng = np.random.default_rng(list(key[1].encode()))
    image = rng.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    return {"image": image, "label": rng.integers(0, 3, (SIDE, SIDE))}


def linked(text: str) -> str:
    """Wait as a worker would, and link the files of the shard."""
    task = Task.from_text(text)
    time.sleep(random.uniform(1, 3))
    path, receipt = FILES[task.shard]
    for suffix in (*(file.suffix for file in receipt.files), SUFFIX):
        with suppress(FileExistsError):
            os.link(path.with_name(receipt.stem + suffix), Path(task.out) / SHARDS / f"{receipt.stem}{suffix}")
    RUNS.append(task.shard)
    return answer_text(Built(receipt.fingerprint, receipt.digest, receipt.rows, 0, (), receipt.bytes, "simulated"))


def simulate(root: Path, workers: int, shards: int, deaths: int) -> None:
    """Build with simulated workers, some of which die, and compare the pack with the one that was built before."""
    rows = Rows([("train", f"{number:07d}") for number in range(shards)], scene, sizes=(SIDE, SIDE))
    options: dict[str, Any] = {"classes": 3, "labels": "index", "shard_size": SIDE * SIDE * 4, "workers": 2}
    local = build_pack(rows, root / "local", **options).manifest
    table = ShardTable.open(root / "local", local)
    for number in range(len(table)):
        path = root / "local" / SHARDS / f"train-{table.fingerprint(number)}{SUFFIX}"
        FILES[number] = path, Receipt.load(path)
    print(f"{len(FILES)} shards are there; {workers} workers start", flush=True)
    with dask(workers, processes=False) as (cluster, url), mock.patch("packer.build.whole.build_task", linked):
        threading.Thread(target=_kill, args=(cluster, deaths), daemon=True).start()
        started = time.perf_counter()
        summary = build_pack(rows, root / "out", engine=url, **options)
        seconds, left = time.perf_counter() - started, len(cluster.scheduler.workers)
    assert summary.manifest.same_data(local), "the pack is another one"
    table = ShardTable.open(root / "out", summary.manifest)
    assert len({table.fingerprint(number) for number in range(len(table))}) == len(table) == len(FILES)
    print(f"{len(table)} shards, each once in the manifest, {len(RUNS)} runs; {left} of {workers} workers are left")
    print(f"{seconds:.1f} s, of which building {summary.stages['build']:.1f} s")


def _kill(cluster: Any, deaths: int) -> None:
    """Have the scheduler lose workers that have tasks, one after the other."""
    scheduler = cluster.scheduler
    while len(RUNS) < 10:
        time.sleep(0.05)
    for number in range(deaths):
        busy = [address for address, worker in list(scheduler.workers.items()) if worker.processing]
        if busy:
            reason = f"death-{number}"
            cluster.loop.add_callback(scheduler.remove_worker, random.choice(busy), stimulus_id=reason, safe=False)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
