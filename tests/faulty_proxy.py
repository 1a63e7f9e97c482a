"""An HTTP proxy on loopback that does what networks and stores do at times. A script says what happens to a request."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

ERROR, BUSY = "500", "503"
"""The request is not passed on."""
LOST = "lost"
"""The request is done, and the connection ends before the reply."""
SLOW = "slow"
"""The reply comes in pieces, with pauses."""
CUT = "cut"
"""The connection ends in the middle of the body of the reply."""
DOUBLED = "doubled"
"""The request is done twice. The second reply is given."""
CONDITIONS = ("if-match", "if-none-match")
PAUSE, PIECES = 0.01, 5
_OWN = ("transfer-encoding", "connection", "content-length")


class Request(NamedTuple):
    """A request to a store whose URLs are http://host/bucket/name?query."""

    method: str
    name: str
    query: str

    @property
    def is_listing(self) -> bool:
        return self.method == "GET" and "list-type=" in self.query


Script = Callable[[Request], "str | None"]


def times(count: int, fault: str, method: str = "", part: str = "") -> Script:
    """Return a script by which the next so many requests of a method, with this text in their name, fail."""
    left = iter(range(count))

    def script(request: Request) -> str | None:
        fits = request.method.startswith(method) and part in request.name
        return fault if fits and next(left, None) is not None else None

    return script


class Proxy:
    """Passes requests on to a server, and has all of them in `requests`."""

    def __init__(self, upstream: str, one_put_at_a_time: bool = False, ignores_conditions: bool = False) -> None:
        self.upstream = urlsplit(upstream).netloc
        self.puts = Lock() if one_put_at_a_time else None
        self.ignores_conditions = ignores_conditions
        self.script: Script = lambda request: None
        self.requests: list[Request] = []
        self.faults = 0
        self._lock = Lock()

        class Handler(_Handler):
            """Gives requests of every method to this proxy."""

        for method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
            setattr(Handler, f"do_{method}", lambda handler: self.handle(handler))
        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @contextmanager
    def doing(self, script: Script) -> Iterator[Proxy]:
        """Follow a script for a while. `requests` and `faults` begin empty."""
        self.script, self.requests, self.faults = script, [], 0
        try:
            yield self
        finally:
            self.script = lambda request: None

    def handle(self, handler: _Handler) -> None:
        """Answer a request, as the script says."""
        body = handler.rfile.read(int(handler.headers.get("content-length", 0)))
        parts = urlsplit(handler.path)
        request = Request(handler.command, unquote(parts.path).lstrip("/").partition("/")[2], parts.query)
        with self._lock:
            self.requests.append(request)
            fault = self.script(request)
            self.faults += fault is not None
        if fault in (ERROR, BUSY):
            handler.reply(int(fault or 0), [], b"<Error><Code>SlowDown</Code></Error>")
            return
        status, headers, answer = self._passed_on(handler, body)
        if fault == DOUBLED:
            status, headers, answer = self._passed_on(handler, body)
        if fault == LOST:
            handler.end()
        else:
            handler.reply(status, headers, answer, fault)

    def _passed_on(self, handler: _Handler, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        """Return the reply of the server."""
        headers = {
            name: value
            for name, value in handler.headers.items()
            if not (self.ignores_conditions and name.lower() in CONDITIONS)
        }
        if self.puts is None or handler.command != "PUT":
            return self._asked(handler, body, headers)
        with self.puts:
            return self._asked(handler, body, headers)

    def _asked(
        self, handler: _Handler, body: bytes, headers: dict[str, str]
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        for connection in (handler.upstream, HTTPConnection(self.upstream, timeout=60)):
            if connection is None:
                continue
            try:
                connection.request(handler.command, handler.path, body, headers)
                reply: HTTPResponse = connection.getresponse()
                answer = reply.read()
            except (OSError, HTTPException):  # the server has ended an idle connection
                connection.close()
                continue
            handler.upstream = connection
            return reply.status, reply.getheaders(), answer
        return 502, [], b""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A client may hang up at any time."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream: HTTPConnection | None = None
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Say nothing."""

    def finish(self) -> None:
        super().finish()
        if self.upstream is not None:
            self.upstream.close()

    def end(self) -> None:
        """End the connection."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def reply(self, status: int, headers: list[tuple[str, str]], body: bytes, fault: str | None = None) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in _OWN:
                self.send_header(name, value)
        sizes = [value for name, value in headers if name.lower() == "content-length"]
        self.send_header("content-length", sizes[0] if sizes and self.command == "HEAD" else str(len(body)))
        self.end_headers()
        if fault == CUT:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            self.end()
            return
        step = max(1, -(-len(body) // (PIECES if fault == SLOW else 1)))
        for start in range(0, len(body), step):
            self.wfile.write(body[start : start + step])
            if fault == SLOW:
                self.wfile.flush()
                time.sleep(PAUSE)
