"""MiniStack, an S3 server in a process, with an empty bucket."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from unittest import mock

from drills.wire import end_with_parent

BUCKET, PORT = "drill", 9000
ANSWERED = 200


def ask(method: str, name: str, port: int = PORT) -> int:
    """Ask for an object of the bucket without a signature, and return the status; 0 if there is no answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, f"/{BUCKET}/{name}")
        return int(connection.getresponse().status)
    except (OSError, HTTPException):
        return 0
    finally:
        connection.close()


@contextmanager
def serving(
    folder: Path,
    address: str,
    port: int,
    inside: Callable[..., Sequence[str]] = lambda *command: command,
    asked: Callable[[], int] | None = None,
) -> Iterator[None]:
    """Run the server until the end. `inside` puts its command into a namespace, `asked` makes the bucket."""
    settings = {"GATEWAY_PORT": str(port), "BIND_HOST": address, "SERVICES": "s3", "IOT_MTLS_ENABLED": "0"}
    process = subprocess.Popen(
        inside(sys.executable, "-m", "ministack"),
        cwd=folder,
        env={**os.environ, **settings},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=end_with_parent,
    )
    try:
        until = time.monotonic() + 120
        while (asked or (lambda: ask("PUT", "", port)))() != ANSWERED:
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit("MiniStack does not start")
            time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait()


def environment(endpoint: str) -> dict[str, str]:
    """Return the variables with which a client finds the server."""
    keys = {"AWS_ACCESS_KEY_ID": "drill", "AWS_SECRET_ACCESS_KEY": "drill", "AWS_REGION": "us-east-1"}
    return {"AWS_ENDPOINT_URL": endpoint, **keys}


@contextmanager
def started(folder: Path) -> Iterator[str]:
    """Run the server on loopback, and let this process use it. Yield its endpoint."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    with serving(folder, "127.0.0.1", port), mock.patch.dict(os.environ, environment(endpoint)):
        yield endpoint
