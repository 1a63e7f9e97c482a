"""Cut, delay and lose the network between builds, readers and a store, in network namespaces.

    tools/run drills.network [--case NAME ...] [--short]

Every host is a network namespace with wires to that of an S3 server, MiniStack. At the end the store must have the pack
of a local build, or a build must have ended with exit code 75 in time, with nothing published and nothing in the way of
the next one. With --short a host waits seconds, and not minutes, for a store that does not answer. It needs root, and
the commands ip, unshare and nsenter. Exits 1 if a case fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from program import REPO, parser
from scenes.tiny import make_tiny

from drills.published import same
from drills.s3_server import BUCKET, PORT, ask, environment, serving
from drills.wire import FAR, NEAR, Host, Trap, Wire, end_with_parent, missing
from packer import build_pack
from readers.stores import object_store
from readers.stores.waiting import RETRY_SECONDS

T = TypeVar("T", Host, Wire)
BUSY = 75
SHORT = {"RETRY_SECONDS": 6.0, "CONNECT_SECONDS": 1.0, "SILENT_SECONDS": 3.0}
"""The seconds that a host waits with --short, by their constants."""
DEFAULTS = {
    "RETRY_SECONDS": RETRY_SECONDS,
    "CONNECT_SECONDS": object_store.CONNECT_SECONDS,
    "SILENT_SECONDS": object_store.SILENT_SECONDS,
}
ROWS, FEW = 12, 3
SIZE, SHARD = 256, "1MB"
MIDDLE = 1_500_000
"""Bytes after which a wire is cut: the probe of a store has some 200,000, and the shards of ROWS have 3,100,000."""
RAW_BYTES = 10_000
"""The same of reading raw files, of which ROWS have 40,000 bytes."""
WORDS = ("--size", f"{SIZE}x{SIZE}", "--shard-size", SHARD, "--workers", "2")
START = """
import sys
import readers.stores.object_store, readers.stores.waiting
for name, value in {limits!r}.items():
    for module in (readers.stores.object_store, readers.stores.waiting):
        if hasattr(module, name):
            setattr(module, name, value)
{then}
"""
COPY = """
from pathlib import Path
from readers.stores.open_store import open_store
store, raw = open_store(sys.argv[2]), Path(sys.argv[1])
for path in raw.rglob("*.*"):
    store.put(path.relative_to(raw).as_posix(), path.read_bytes())
"""
PACKER = "from packer.__main__ import main; sys.argv[0] = 'packer'; main()"
READ = """
from readers import open_dataset
import hashlib
data = open_dataset(sys.argv[1], split="train", cache=sys.argv[2])
digest = hashlib.sha256()
for row in range(len(data)):
    for part in data[row]:
        digest.update(part.numpy())
print(len(data), digest.hexdigest())
"""
READ_BATCHES = """
from readers import open_dataset
for batch in open_dataset(sys.argv[1], split="train", cache=sys.argv[2]).loader(2, shuffle=False):
    pass
"""


@dataclass
class Ended:
    """A command that has ended."""

    code: int
    output: str
    seconds: float


class Net:
    """A server in a namespace, and hosts that reach it over a wire each."""

    def __init__(self, folder: Path, limits: dict[str, float], hosts: int = 2) -> None:
        self.folder, self.limits = folder, limits
        self._stack = ExitStack()
        self._server = self._open(Host())
        self.hosts = [self._open(Host()) for _ in range(hosts)]
        self.wires = [self._open(Wire(host, self._server)) for host in self.hosts]
        server = serving(folder, "0.0.0.0", PORT, self._server.inside, lambda: self.ask("PUT", ""))
        self._stack.enter_context(server)

    def __enter__(self) -> Net:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _open(self, part: T) -> T:
        self._stack.callback(part.close)
        return part

    def ask(self, method: str, name: str) -> int:
        """Ask the server from its own namespace, and return the status; 0 if it does not answer."""
        return self._server.call(lambda: ask(method, name))

    def start(self, host: int, *arguments: object, then: str = PACKER) -> subprocess.Popen[str]:
        """Start the packer on a host, or another program."""
        endpoint = f"http://{self.wires[host].peer}:{PORT}"
        program = START.format(limits=self.limits, then=then)
        return subprocess.Popen(
            self.hosts[host].inside(sys.executable, "-c", program, *arguments),
            env={**os.environ, "PYTHONPATH": str(REPO), **environment(endpoint)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=end_with_parent,
        )

    def run(self, host: int, *arguments: object, then: str = PACKER) -> Ended:
        begun = time.monotonic()
        process = self.start(host, *arguments, then=then)
        output, _ = process.communicate()
        return Ended(process.returncode, output, time.monotonic() - begun)


class Case:
    """Has all that a case needs: the net, raw folders, and the packs that local builds make of them."""

    def __init__(self, net: Net, work: Path, short: bool) -> None:
        self.net, self.work, self.short = net, work, short
        self.outage = 2.0 if short else 20.0
        limits = {**DEFAULTS, **net.limits}
        self.longest = sum(limits.values()) + limits["RETRY_SECONDS"] + 20  # a try may begin as the time is over
        """The most seconds after which a build ends whose link is cut."""
        self._raws: dict[int, Path] = {}
        self._packs: dict[int, Path] = {}
        self._count = 0

    def raw(self, rows: int) -> Path:
        if rows not in self._raws:
            self._raws[rows] = self.work / f"raw-{rows}"
            make_tiny(self._raws[rows], {"train": rows})
        return self._raws[rows]

    def new(self, name: str) -> Path:
        self._count += 1
        return self.work / f"{name}-{self._count}"

    def url(self) -> str:
        return f"s3://{BUCKET}/{self.new('pack').name}"

    def local(self, rows: int) -> Path:
        """Return the pack of a local build."""
        if rows not in self._packs:
            self._packs[rows] = self.new("local")
            build_pack(self.raw(rows), self._packs[rows], size=(SIZE, SIZE), shard_size=SHARD, workers=2)
        return self._packs[rows]

    def build(self, rows: int, url: str) -> list[object]:
        return ["build", "--quiet", *WORDS, self.raw(rows), url]

    def fault(self, rows: int, url: str) -> str | None:
        """Return what is wrong with the pack in the store."""
        copy = self.new("copy")
        pulled = self.net.run(1, "pull", "--quiet", url, copy)
        if pulled.code != 0:
            return f"pull: {pulled.output}"
        return None if same(copy, self.local(rows)) else "the pack is not that of a local build"

    def is_published(self, url: str) -> bool:
        return self.net.ask("GET", f"{url.removeprefix(f's3://{BUCKET}/')}/manifest.json") == 200


def expected(ended: Ended, code: int, *words: str) -> str | None:
    if ended.code == code and all(word in ended.output for word in words):
        return None
    return f"exit code {ended.code} after {ended.seconds:.1f} s, not {code}: {ended.output[-800:]}"


def cut_and_back(case: Case) -> str | None:
    """A build whose link is cut in the middle of an upload, and comes back."""
    url, wire = case.url(), case.net.wires[0]
    wire.after(NEAR, MIDDLE, case.outage)
    ended = case.net.run(0, *case.build(ROWS, url))
    return expected(ended, 0) or was_cut(wire) or case.fault(ROWS, url)


def cut_for_good(case: Case) -> str | None:
    """A build whose link stays cut; then another one."""
    url, wire = case.url(), case.net.wires[0]
    wire.after(NEAR, MIDDLE)
    ended = case.net.run(0, *case.build(ROWS, url))
    wire.cut = False
    print(f"  after {ended.seconds:.0f} s: {ended.output.strip()}")
    if ended.seconds > case.longest:
        return f"it ended after {ended.seconds:.0f} s, not {case.longest:.0f}"
    fault = expected(ended, BUSY, url) or ("it was published" if case.is_published(url) else None)
    return fault or expected(case.net.run(0, *case.build(ROWS, url)), 0) or case.fault(ROWS, url)


def lossy(case: Case) -> str | None:
    """A build over a link that loses 5 % of the packets, with a delay of 50 ms each way."""
    url, wire = case.url(), case.net.wires[0]
    before = wire.lost
    wire.loss, wire.delay = (0.02, 0.002) if case.short else (0.05, 0.05)
    try:
        ended = case.net.run(0, *case.build(FEW, url))
    finally:
        wire.loss = wire.delay = 0.0
    print(f"  {wire.lost - before} packets were lost, {ended.seconds:.0f} s")
    return expected(ended, 0) or case.fault(FEW, url)


def two_coordinators(case: Case, name: bytes, is_lost: bool) -> str | None:
    """A coordinator is cut off as it writes an object that publishes, and another one publishes."""
    url, wire = case.url(), case.net.wires[0]
    wire.trap = Trap(lambda side, packet: side == NEAR and b"PUT /" in packet and name in packet, is_lost=is_lost)
    first = case.net.start(0, *case.build(FEW, url))
    while wire.trap is not None and first.poll() is None:
        time.sleep(0.02)
    if wire.trap is not None:
        return f"it was not cut off: {first.communicate()[0]}"
    second = case.net.run(1, *case.build(FEW + 1, url))
    wire.cut = False
    output, _ = first.communicate()
    ended = Ended(first.returncode, output, 0)
    return expected(second, 0) or expected(ended, BUSY) or case.fault(FEW + 1, url)


def reader(case: Case) -> str | None:
    """A reader whose link is cut in the middle of a shard, and comes back."""
    url, wire = case.url(), case.net.wires[0]
    built = case.net.run(1, *case.build(ROWS, url))
    here = case.net.run(1, case.local(ROWS), case.new("cache"), then=READ)
    wire.after(FAR, MIDDLE, case.outage)
    read = case.net.run(0, url, case.new("cache"), then=READ)
    return expected(built, 0) or expected(here, 0) or expected(read, 0, here.output) or was_cut(wire)


def reader_cut_for_good(case: Case) -> str | None:
    """A reader whose link stays cut, row by row and in batches."""
    url, wire = case.url(), case.net.wires[0]
    built = case.net.run(1, *case.build(ROWS, url))
    fault = expected(built, 0)
    for program in (READ, READ_BATCHES):
        wire.after(FAR, MIDDLE)
        ended = case.net.run(0, url, case.new("cache"), then=program)
        wire.cut = False
        print(f"  after {ended.seconds:.0f} s: {ended.output.strip().splitlines()[-1]}")
        if ended.seconds > case.longest:
            return f"it ended after {ended.seconds:.0f} s, not {case.longest:.0f}"
        fault = fault or was_cut(wire) or expected(ended, 1, "StoreBusyError", url)
    return fault


def part(case: Case) -> str | None:
    """A part by hand whose link is cut while it reads raw files from the store, and comes back."""
    raw, wire = case.url(), case.net.wires[0]
    copied = case.net.run(1, case.raw(ROWS), raw, then=COPY)
    plan, out = case.new("plan"), case.new("out")
    planned = case.net.run(1, "plan", "--quiet", *WORDS, raw, plan)
    wire.after(FAR, RAW_BYTES, case.outage)
    built = case.net.run(0, "build-part", "--quiet", "--plan", plan, "--part", "1/1", out)
    committed = case.net.run(1, "commit", "--quiet", "--plan", plan, out)
    fault = next(filter(None, (expected(ended, 0) for ended in (copied, planned, built, committed))), None)
    if fault or was_cut(wire):
        return fault or was_cut(wire)
    return None if same(out, case.local(ROWS)) else "the pack is not that of a local build"


def part_sent(case: Case) -> str | None:
    """A part by hand whose link is cut while it sends shards to the store, and comes back."""
    url, plan, wire = case.url(), case.new("plan"), case.net.wires[0]
    planned = case.net.run(1, "plan", "--quiet", *WORDS, case.raw(ROWS), plan)
    wire.after(NEAR, MIDDLE, case.outage)
    built = case.net.run(0, "build-part", "--quiet", "--plan", plan, "--part", "1/1", url)
    committed = case.net.run(1, "commit", "--quiet", "--plan", plan, url)
    fault = next(filter(None, (expected(ended, 0) for ended in (planned, built, committed))), None)
    return fault or was_cut(wire) or case.fault(ROWS, url)


def was_cut(wire: Wire) -> str | None:
    """Return a fault if the wire was not cut; then a case shows nothing."""
    return None if wire.trap is None else "the wire was not cut"


CASES: dict[str, Callable[[Case], str | None]] = {
    "cut and back": cut_and_back,
    "part": part,
    "part sent": part_sent,
    "reader": reader,
    "two coordinators, claim lost": partial(two_coordinators, name=b"/generations/000001.json", is_lost=True),
    "two coordinators, claim sent": partial(two_coordinators, name=b"/generations/000001.json", is_lost=False),
    "two coordinators, manifest lost": partial(two_coordinators, name=b"/manifest.json", is_lost=True),
    "lossy": lossy,
    "cut for good": cut_for_good,
    "reader cut for good": reader_cut_for_good,
}


def drill(names: Sequence[str], work: Path, short: bool) -> dict[str, str]:
    """Run cases, and return what went wrong in each."""
    wrong = dict[str, str]()
    with Net(work, SHORT if short else {}) as net:
        case = Case(net, work, short)
        for name in names:
            begun = time.monotonic()
            fault = CASES[name](case)
            print(f"{name}: {fault or 'right'}, {time.monotonic() - begun:.1f} s", flush=True)
            if fault:
                wrong[name] = fault
    return wrong


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--case", action="append", choices=CASES, help="only this one; may be repeated")
    options.add_argument("--short", action="store_true", help="seconds instead of minutes")
    chosen = options.parse_args()
    if lacking := missing():
        raise SystemExit(f"network namespaces need {lacking}")
    with tempfile.TemporaryDirectory() as work:
        wrong = drill(chosen.case or list(CASES), Path(work), chosen.short)
    sys.exit(1 if wrong else 0)
