"""Building on Dask: next to a local build on the same cores, and the cost of a task.

    tools/run bench.engines [--pairs 800] [--rounds 5]
    tools/run bench.engines --tasks 3000

The first form builds the same pairs locally and on a Dask cluster of two worker processes in turns. *pairs/s* counts
from the first shard that is handed out to the last receipt, *cpu* is the CPU time of all processes for a pair.

The second form gives tasks that do nothing to a scheduler and two workers, which are processes of their own. *clock* is
the time, *cpu* the CPU time of all processes for a task. With 4 tasks in flight, as many as a build has there, and as
many as one of 16 slots would have. `client.map` is what Dask alone costs: all tasks and results in one message each.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster
from program import REPO, parser
from scenes.camera import make_linked_streets
from scenes.street import CLASSES
from tables import aligned

from bench.cpu import cpu_seconds
from bench.machine import PACKER_PACKAGES, machine, versions
from packer import build_pack
from packer.building import Summary
from packer.engines.connect import connect
from packer.engines.submit import submit_all
from packer.engines.task import BuiltShard, Task, answer_text
from packer.workers.cluster_events import ClusterEvents
from readers.contract.manifest import Manifest

DONE = answer_text(BuiltShard("0" * 32, "0" * 64, 1, 0, (), 1, "nowhere"))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pairs", type=int, default=800)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--tasks", type=int, help="measure the cost of so many tasks")
    chosen = options.parse_args()
    print(machine(), versions((*PACKER_PACKAGES, "distributed")), sep="\n", flush=True)
    if chosen.tasks:
        measure_tasks(chosen.tasks)
        return
    with tempfile.TemporaryDirectory() as temporary:
        compare(Path(temporary), chosen.pairs, chosen.rounds)


@contextmanager
def dask() -> Iterator[str]:
    """The URL of a Dask cluster of this machine with two worker processes."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(REPO), str(REPO / "tools")])
    options = {"dashboard_address": ":0", "silence_logs": 50, "protocol": "tcp"}
    with LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster:
        yield cluster.scheduler_address.replace("tcp", "dask")


def compare(root: Path, pairs: int, rounds: int) -> None:
    """Build locally and on Dask in turns, and print the rates."""
    make_linked_streets(root / "raw", pairs)
    figures: dict[str, list[tuple[float, float]]] = {"local": [], "dask": []}
    with dask() as url:
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


def answered(task: str, worker: str = "") -> str:
    """Build nothing."""
    return DONE


@contextmanager
def dask_processes(folder: Path) -> Iterator[tuple[str, int, list[int]]]:
    """A scheduler and two workers, started as users start them: the address, and the processes."""
    found = folder / "scheduler.json"
    common = ["--no-dashboard", "--scheduler-file", str(found)]
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--host", "127.0.0.1", *common]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPO), str(REPO / "tools")])}
    quiet: dict[str, Any] = {"stderr": subprocess.DEVNULL, "env": environment}
    with ExitStack() as stack:
        scheduler = stack.enter_context(subprocess.Popen(command, **quiet))
        stack.callback(scheduler.terminate)
        while not found.exists() or not (text := found.read_text()):
            time.sleep(0.05)
        command = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1", *common]
        workers = [stack.enter_context(subprocess.Popen(command, **quiet)) for _ in range(2)]
        for worker in workers:
            stack.callback(worker.terminate)
        yield json.loads(text)["address"].removeprefix("tcp://"), scheduler.pid, [worker.pid for worker in workers]


def measure_tasks(count: int) -> None:
    """Print the time and the CPU time that a task costs besides its work, and what Dask alone costs."""
    tasks = [Task("/plans/0123456789abcdef", "0" * 64, each, "/out", None, 300) for each in range(count)]

    def submitted(slots: Callable[[], int], tasks: list[Task]) -> None:
        assert sum(1 for _ in submit_all(replace(connection, slots=slots), answered, tasks, ClusterEvents())) == len(
            tasks
        )

    def mapped(tasks: list[Task]) -> None:
        client.gather(client.map(answered, [task.to_text() for task in tasks], pure=False))

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address, scheduler, workers = stack.enter_context(dask_processes(folder))
        connection = stack.enter_context(connect(f"dask://{address}"))
        client: Any = stack.enter_context(Client(f"tcp://{address}"))
        client.wait_for_workers(2)
        cases: dict[str, Callable[[list[Task]], None]] = {
            "a build, 4 in flight": partial(submitted, connection.slots),
            "a build, 32 in flight": partial(submitted, lambda: 16),
            "client.map, all at once": mapped,
        }
        rows: list[tuple[str, ...]] = [("ms a task", "clock", "cpu", "command", "scheduler", "workers")]
        for name, run in cases.items():
            run(tasks[:100])  # the first ones warm up
            began, before = time.perf_counter(), _cpu(scheduler, workers)
            run(tasks)
            seconds = time.perf_counter() - began
            spent = [after - cpu for after, cpu in zip(_cpu(scheduler, workers), before, strict=True)]
            rows.append((name, *(f"{1000 * each / count:.2f}" for each in (seconds, sum(spent), *spent))))
    print(*aligned(rows), sep="\n")


def _cpu(scheduler: int, workers: list[int]) -> tuple[float, float, float]:
    """The CPU seconds of this process, of the scheduler and of the workers."""
    there, them = cpu_seconds(scheduler), sum(map(cpu_seconds, workers))
    return cpu_seconds() - there - them, there, them


if __name__ == "__main__":
    from bench import engines

    engines.main()  # functions of __main__ would be pickled with what they use
