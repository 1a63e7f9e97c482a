"""Ray core as an engine: `ray://HOST:PORT` is a server of Ray's client, `ray://auto` the cluster of this machine."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import ray

from packer.engines.engine import Connection
from packer.errors import UnavailableError


class RayEngine:
    """Gives each task a core. Ray's own retries are off, because `submit_all` tries again."""

    def __init__(self) -> None:
        self._remote = lru_cache(_remote)

    def submit(self, build: Callable[[str], str], task: str, /) -> Future[str]:
        future: Future[str] = self._remote(build).remote(task).future()
        return future

    def shutdown(self, wait: bool = True) -> None:
        """Leave the cluster. It drops the tasks of a driver that left."""
        ray.shutdown()


def _remote(build: Callable[[str], str]) -> Any:
    return ray.remote(build).options(max_retries=0, num_cpus=1)


def _cores() -> int:
    return int(ray.cluster_resources().get("CPU", 0))


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
        yield Connection(engine, _cores, _cores)  # each task has a core, and a process of its own
    finally:
        engine.shutdown(wait=False)
