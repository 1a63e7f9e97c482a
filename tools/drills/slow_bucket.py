"""A bucket of S3 to read from, whose server waits before each answer, as a network does."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from unittest import mock
from urllib.parse import unquote

from drills.s3_server import environment


@contextmanager
def served(root: Path, latency: float) -> Iterator[list[str]]:
    """Serve a folder as a bucket of S3, and yield the list of requests. Each waits for `latency` seconds."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        """Answers listings and ranges."""

        protocol_version, disable_nagle_algorithm, wbufsize = "HTTP/1.1", True, -1

        def do_GET(self) -> None:
            requests.append(self.path)
            time.sleep(latency)
            path, _, query = self.path.partition("?")
            is_listing = "list-type" in query
            body, status, part = listing(root, query).encode() if is_listing else b"", 200, ""
            if not is_listing:
                with (root / unquote(path).lstrip("/")).open("rb") as file:
                    first, last = map(int, re.findall(r"\d+", self.headers["range"]))
                    file.seek(first)
                    body, size, status = file.read(last + 1 - first), os.fstat(file.fileno()).st_size, 206
                    part = f"bytes {first}-{first + len(body) - 1}/{size}"
            self.send_response_only(status)
            for name, text in (("content-range", part), ("etag", '"1"'), ("content-length", len(body))):
                self.send_header(name, str(text))
            self.send_header("last-modified", self.date_time_string(0))
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with mock.patch.dict(os.environ, environment(f"http://127.0.0.1:{server.server_address[1]}")):
            yield requests
        server.shutdown()


def listing(root: Path, query: str) -> str:
    """Return the objects whose names begin with the prefix, behind `start-after`."""
    prefix, after = (re.findall(rf"{name}=([^&]*)", query) or [""] for name in ("prefix", "start-after"))
    names = sorted(str(path.relative_to(root / "b")) for path in (root / "b").rglob("*") if path.is_file())
    chosen = [name for name in names if name.startswith(unquote(prefix[0])) and name > unquote(after[0])]
    entries = (
        f"<Contents><Key>{name}</Key><Size>{(root / 'b' / name).stat().st_size}</Size><ETag>1</ETag>"
        "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
        for name in chosen
    )
    return f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(entries)}</ListBucketResult>"
