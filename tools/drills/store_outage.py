"""Read an epoch from a bucket whose server fails for a while: the epoch ends with the same rows, only later.

    tools/run drills.store_outage [--seconds 5 60 170] [--kind busy refuse hang reset]

The server answers 503, refuses connections, keeps them without a word, or breaks them in the middle of an object. This
begins when a part of the shards was read. Exits 1 if an epoch ends with an error, or has other rows.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from program import REPO, parser
from scenes.tiny import make_tiny
from tables import markdown

from packer import build_pack

KINDS = ("busy", "refuse", "hang", "reset")
ROWS, BEFORE = 48, 4
"""The rows of the pack, each in a shard, and the shards that are read before the server fails."""
READ = """
import hashlib, sys
from readers import open_dataset
digest = hashlib.sha256()
for images, labels in open_dataset(sys.argv[1], split="train", label="index", cache=sys.argv[2]).loader(2):
    digest.update(images.numpy().tobytes() + labels.numpy().tobytes())
print(digest.hexdigest())
"""


class Server:
    """Serves a folder as a bucket, and fails in one way while an outage lasts."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.kind, self.shards = folder, "", 0
        self._port = 0
        self._open()
        self.url = f"http://127.0.0.1:{self._port}"

    def _open(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), handler(self))
        self._server.daemon_threads = True
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def fail(self, kind: str, seconds: float) -> None:
        """Fail in this way for some seconds."""
        self.kind = kind
        if kind == "refuse":
            self.close()
        time.sleep(seconds)
        self.kind = ""
        if kind == "refuse":
            self._open()


def handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            """Say nothing."""

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            if server.kind == "busy":
                self.answer(503, b"<Error><Code>SlowDown</Code></Error>")
                return
            if server.kind in ("hang", "refuse"):  # a connection that was open before
                while server.kind == "hang":
                    time.sleep(0.05)
                self.drop()
                return
            path = server.folder / self.path.removeprefix("/bucket/")
            if not path.is_file():
                self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
                return
            data = path.read_bytes()
            if path.suffix == ".npy" and path.parent.name == "shards":
                server.shards += 1
            self.answer(200, data, len(data) // 2 if server.kind == "reset" else None)
            if server.kind == "reset":
                self.drop()

        def answer(self, status: int, body: bytes, most: int | None = None) -> None:
            span = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("range", ""))
            if span and status == 200:
                first, last = int(span[1]), min(int(span[2] or len(body) - 1), len(body) - 1)
                self.send_response_only(206)
                self.send_header("content-range", f"bytes {first}-{last}/{len(body)}")
                body = body[first : last + 1]
            else:
                self.send_response_only(status)
            self.send_header("content-length", str(len(body)))
            self.send_header("last-modified", "Sun, 22 Nov 2026 00:00:00 GMT")
            self.send_header("etag", '"1"')
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body[:most])

        def drop(self) -> None:
            """Break the connection, as a server that crashes does."""
            with suppress(OSError):
                self.wfile.flush()
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
            self.close_connection = True

    return Handler


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """Serve a folder."""
    server = Server(folder)
    try:
        yield server
    finally:
        server.close()


def epoch(server: Server, cache: Path, kind: str, seconds: float) -> dict[str, Any]:
    """Read an epoch in a process, with an outage in it. Return its seconds, its digest and its error."""
    cache.mkdir()
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1", "no_proxy": "127.0.0.1"}
    environment = {**os.environ, **keys, "AWS_ENDPOINT_URL": server.url, "PYTHONPATH": str(REPO)}
    command = [sys.executable, "-c", READ, "s3://bucket/out", str(cache)]
    server.shards, begun = 0, time.monotonic()
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        while server.shards < BEFORE and child.poll() is None:
            time.sleep(0.01)
        if kind:
            server.fail(kind, seconds)
        output, errors = child.communicate()
    return {
        "seconds": time.monotonic() - begun,
        "digest": output.strip(),
        "error": errors.strip().splitlines()[-1] if child.returncode else "",
    }


def make_pack(folder: Path) -> Path:
    """Make a pack with a shard for each row."""
    make_tiny(folder / "raw", {"train": ROWS})
    build_pack(folder / "raw", folder / "out", labels="index", shard_size="1KB", workers=1)
    return folder


def main() -> None:
    options = parser(__doc__)
    options.add_argument(
        "--seconds", type=float, nargs="+", default=[5.0, 60.0, 170.0], help="how long the outages last"
    )
    options.add_argument("--kind", nargs="+", choices=KINDS, default=KINDS)
    chosen = options.parse_args()
    rows = [["outage", "lasts", "epoch", "outcome"]]
    with tempfile.TemporaryDirectory() as temporary:
        folder = make_pack(Path(temporary))
        with serving(folder) as server:
            whole = epoch(server, folder / "cache", "", 0)
            rows.append(["none", "", f"{whole['seconds']:.1f} s", whole["error"] or "whole"])
            for kind in chosen.kind:
                for seconds in chosen.seconds:
                    read = epoch(server, folder / f"cache-{kind}-{seconds}", kind, seconds)
                    outcome = read["error"] or ("the same rows" if read["digest"] == whole["digest"] else "OTHER ROWS")
                    rows.append([kind, f"{seconds:.0f} s", f"{read['seconds']:.1f} s", outcome])
                    print(*rows[-1], file=sys.stderr)
    print(*markdown(rows, padded=False), sep="\n")
    if any(row[-1] != "the same rows" for row in rows[2:]):
        sys.exit(1)


if __name__ == "__main__":
    main()
