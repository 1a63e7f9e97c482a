"""Ray core as an engine: `ray://HOST:PORT` is a server of Ray's client, `ray://auto` the cluster of this machine."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import ray

from packer.engines.engine import Build, Connection
from packer.engines.task import id_of, worker_text
from packer.errors import UnavailableError


class RayEngine:
    """Gives each task a core of a node: our worker. Ray's own retries are off, because `submit_all` tries again."""

    def __init__(self) -> None:
        self._avoided = set[str]()
        self._remote = lru_cache(_remote)

    def submit(self, build: Build, task: str, /) -> Future[str]:
        future: Future[str] = self._remote(frozenset(self._avoided)).remote(build, task).future()
        return future

    def avoid(self, worker: str) -> None:
        self._avoided.add(id_of(worker))

    def shutdown(self, wait: bool = True) -> None:
        """Leave the cluster. It drops the tasks of a driver that left."""
        ray.shutdown()

    def slots(self) -> int:
        """Count the cores of the nodes that get tasks."""
        return sum(cores for node, cores in _nodes().items() if node not in self._avoided)


def _remote(avoided: frozenset[str]) -> Any:
    labels = {"ray.io/node-id": f"!in({','.join(sorted(avoided))})"} if avoided else None
    return ray.remote(_build).options(max_retries=0, num_cpus=1, label_selector=labels)


def _build(build: Build, task: str) -> str:
    """Run a task in a worker of Ray."""
    return build(task, worker_text(ray.get_runtime_context().get_node_id()))


def _nodes() -> dict[str, int]:
    """Return the cores of each node that has some."""
    cores = {node["NodeID"]: int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]}
    return {node: count for node, count in cores.items() if count}


@contextmanager
def connect_ray(address: str) -> Iterator[Connection]:
    """Connect to a cluster."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address if address == "auto" else f"ray://{address}", log_to_driver=False, logging_level="error")
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UnavailableError(f"ray://{address}: no cluster answers ({error})") from error
    if threading.current_thread() is threading.main_thread():  # Ray has set a handler of its own
        signal.signal(signal.SIGTERM, handler)
    engine = RayEngine()
    try:
        yield Connection(engine, engine.slots, _nodes)
    finally:
        engine.shutdown(wait=False)
