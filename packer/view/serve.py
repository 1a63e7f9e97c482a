"""Serve the page about a pack until the user presses Ctrl-C."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn

from packer.errors import UsageError
from packer.view.app import make_app
from packer.view.viewed import Settings, Viewed

LOCAL = "localhost"


def serve(settings: Settings, host: str, port: int, open_page: bool, say: Callable[[str], None]) -> None:
    """Serve a pack at `host` and `port`, and say at which address. Port 0 takes a free one."""
    token = secrets.token_urlsafe(24)
    with _listening(host, port) as listening:
        bound = listening.getsockname()[1]
        app = make_app(Viewed(settings), own_names(bound) if is_loopback(host) else (), token)
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{bound}/{token}/"
        say(address)
        options = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, ws="none", timeout_graceful_shutdown=1
        )
        with _opened(address) if open_page else nullcontext():
            uvicorn.Server(options).run([listening])


@contextmanager
def _opened(address: str) -> Iterator[None]:
    """Open the address in the browser, by a private file: others see the arguments of a program, and so the token."""
    with TemporaryDirectory(prefix="segpack-view-") as folder:
        file = Path(folder) / "open.html"
        file.write_text(
            f'<!doctype html><title>packer view</title><meta http-equiv="refresh" content="0;url={address}">'
        )
        webbrowser.open(file.as_uri())
        yield


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return host == LOCAL or ip_address(host).is_loopback
    except ValueError:
        return False


def own_names(port: int) -> list[str]:
    """Return what a browser may send as the name of this server."""
    names = [LOCAL, "127.0.0.1", "[::1]"]
    with_port = [f"{name}:{port}" for name in names]
    return with_port + names if port == 80 else with_port


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens, before the pack is opened: a port that is taken is an error at once."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=128)
    except OSError as error:
        raise UsageError(f"{host}:{port}: cannot listen there ({error.strerror}); choose another --port") from error
