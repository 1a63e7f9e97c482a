"""S3 servers on loopback: each starts when it is first asked for, and ends with the tests.

moto and MiniStack keep conditions. `rclone serve s3` and s3rver accept and ignore them, as some stores do. rclone
also answers a request for a range with 200 instead of 206, which obstore refuses, so it only serves to be refused.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cache
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import pytest
from conftest import HANG
from faulty_proxy import Proxy

from readers.stores.open_store import open_store

BUCKET = "segpack-tests"
KEY = "S3RVER"
"""The only key that s3rver knows, also as a secret. The others take any."""
S3RVER = "SEGPACK_S3RVER"
"""The variable with the path of s3rver, if it is not in PATH."""


def credentials(endpoint: str) -> dict[str, str]:
    """Return the variables of the environment with which a store is found."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": KEY,
        "AWS_REGION": "us-east-1",
    }


def new_url() -> str:
    """Return the URL of a folder that no other test has."""
    return f"s3://{BUCKET}/{uuid4().hex}"


def use_server(endpoint: str, patch: pytest.MonkeyPatch) -> str:
    """Let clients find a store; return the URL of a folder there that no other test has."""
    for name, value in credentials(endpoint).items():
        patch.setenv(name, value)
    return new_url()


def upload(folder: Path, url: str) -> None:
    """Put all files of a folder below a URL."""
    for path in filter(Path.is_file, folder.rglob("*")):
        open_store(url).put(path.relative_to(folder).as_posix(), path.read_bytes())


@cache
def server(name: str) -> str:
    """Return the endpoint of a server with an empty bucket. Skip the test if the server is not installed."""
    return SERVERS[name]()


@cache
def proxy(name: str, one_put_at_a_time: bool = False, ignores_conditions: bool = False) -> Proxy:
    """Return a proxy in front of a server."""
    started = Proxy(server(name), one_put_at_a_time, ignores_conditions)
    atexit.register(started.close)
    return started


def _moto() -> str:
    _need("moto")
    return _started([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "{port}"], {}, makes_bucket=True)


def _ministack() -> str:
    _need("ministack")
    settings = {"GATEWAY_PORT": "{port}", "BIND_HOST": "127.0.0.1", "SERVICES": "s3", "IOT_MTLS_ENABLED": "0"}
    return _started([sys.executable, "-m", "ministack"], settings, makes_bucket=True)


def rclone() -> str:
    """Return the path of rclone. Skip the test if it is not installed."""
    found = shutil.which("rclone", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    if found is None:
        pytest.skip("rclone is not installed")
    return found


def _rclone() -> str:
    program = rclone()
    folder = _folder()
    (folder / BUCKET).mkdir()
    # with 0s it empties its cache again and again, which takes a core and minutes for a hundred requests
    address = ["--addr", "127.0.0.1:{port}", "--auth-key", f"{KEY},{KEY}", "--dir-cache-time", "10ms"]
    return _started([program, "serve", "s3", *address, str(folder)], {}, makes_bucket=False)


def _s3rver() -> str:
    s3rver = os.environ.get(S3RVER) or shutil.which("s3rver")
    if s3rver is None:
        pytest.skip(f"s3rver of npm is not installed; {S3RVER} may name it")
    options = ["--directory", str(_folder()), "--address", "127.0.0.1", "--port", "{port}"]
    return _started([s3rver, *options, "--configure-bucket", BUCKET, "--silent"], {}, makes_bucket=False)


SERVERS: Mapping[str, Callable[[], str]] = {
    "moto": _moto,
    "ministack": _ministack,
    "rclone": _rclone,
    "s3rver": _s3rver,
}


def _need(module: str) -> None:
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed")


def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="store-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _started(command: list[str], settings: Mapping[str, str], makes_bucket: bool) -> str:
    """Start a server on a free port, and wait until it answers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    process = subprocess.Popen(
        [part.replace("{port}", port) for part in command],
        cwd=_folder(),
        env={**os.environ, **{name: value.replace("{port}", port) for name, value in settings.items()}},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=_end_with_the_tests,
    )
    atexit.register(process.wait)
    atexit.register(process.kill)  # the last that is registered is called first
    deadline = time.monotonic() + HANG
    while True:
        connection = HTTPConnection("127.0.0.1", int(port), timeout=HANG)
        try:
            connection.request("PUT" if makes_bucket else "GET", f"/{BUCKET}")
            connection.getresponse().read()
        except (OSError, HTTPException):
            assert process.poll() is None, f"{command} ended with {process.returncode}"
            assert time.monotonic() < deadline, f"{command} does not answer"
            time.sleep(0.05)
        else:
            return f"http://127.0.0.1:{port}"
        finally:
            connection.close()


def _end_with_the_tests() -> None:
    """Have the kernel end a server whose tests were killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
