"""A Ray cluster whose nodes are all on this machine, each a program of its own that the test ends."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from conftest import HANG

RAY = str(Path(sys.executable).with_name("ray"))


@contextmanager
def ray_head(*options: str) -> Iterator[str]:
    """Start the head of a cluster, which `ray://auto` then names. Yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"127.0.0.1:{port}"
    head = ray_node(1, "--head", f"--port={port}", "--include-dashboard=false", *options)
    with mock.patch.dict(os.environ, RAY_ADDRESS=address), head:
        yield address


@contextmanager
def ray_node(number: int, *options: str, **environment: str) -> Iterator[None]:
    """Start a node, whose workers have these variables, and wait until its cluster has this number of nodes.

    At the end, end it with all of its processes.
    """
    command = [RAY, "start", "--block", "--disable-usage-stats", *options]
    with subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as node:
        try:
            _wait_for_nodes(number, node)
            yield
        finally:
            node.terminate()


def _wait_for_nodes(count: int, last: subprocess.Popen[bytes]) -> None:
    """Wait until the cluster has this number of nodes that live, also the last one that was started."""
    import ray

    end = time.monotonic() + HANG
    while True:
        try:
            with ray.init("auto", log_to_driver=False, logging_level="error"):
                while sum(node["Alive"] for node in ray.nodes()) != count:
                    _check(last, end)
                    time.sleep(0.1)
                return
        except ConnectionError:  # its head is not there yet
            _check(last, end)
            time.sleep(0.5)


def _check(node: subprocess.Popen[bytes], end: float) -> None:
    assert node.poll() is None
    assert time.monotonic() < end


@contextmanager
def dask_worker(scheduler: str, **environment: str) -> Iterator[None]:
    """Add a worker with these variables to the cluster of a scheduler. At the end, end it."""
    command = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler, "--nthreads", "1", "--no-dashboard"]
    with subprocess.Popen(command, env={**os.environ, **environment}, stderr=subprocess.DEVNULL) as worker:
        try:
            yield
        finally:
            worker.terminate()


def broken_modules(folder: Path, *names: str) -> dict[str, str]:
    """Return an environment in which the import of these modules fails, as if a shared library were missing."""
    folder.mkdir()
    for name in names:
        (folder / f"{name}.py").write_text("raise ImportError('libGL.so.1: cannot open')")
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ["PYTHONPATH"]])}
