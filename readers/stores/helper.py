"""`Helper`: a process that fetches for a forked one, in which the client of an object store refuses to work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from readers.contract import errors
from readers.contract.errors import ReadError
from readers.stores.evict import CacheFullError


class Helper:
    """`python -m readers.stores.fetch`, which is started when it is first needed and ends with this process."""

    def __init__(self, url: str, folder: Path, limit: int, name: str) -> None:
        self._arguments = (url, str(folder), str(limit), name)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def shard(self, stem: str, digest: str) -> None:
        """Have a shard fetched. Raises the errors of `Fetcher.shard`."""
        with self._lock:
            process = self._process = self._process or self._start()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(f"{stem} {digest}\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except OSError:
                line = ""
            if not line:
                self._process = None
                raise ReadError(f"{self._arguments[0]}: the process that fetches {stem} ended with {process.wait()}")
        kind, message = json.loads(line)
        if kind == CacheFullError.__name__:
            raise CacheFullError(message)
        if kind:
            raise getattr(errors, kind, ReadError)(message)

    def _start(self) -> subprocess.Popen[str]:
        package = str(Path(__file__).parents[2])
        paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
        return subprocess.Popen(
            [sys.executable, "-m", "readers.stores.fetch", *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
