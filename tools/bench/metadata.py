"""Calls that a file server must answer, by kind, of parts and of a commit; and the time if each takes longer.

    tools/run bench.metadata [--shards 1000] [--wait 1000] [--format npy] [--before FOLDER] [--folder FOLDER]

A folder of pairs of 16x16 is planned with a row in each shard, and built by parts: real shards, receipts and tickets.
The calls about names and states of files below OUT are counted, in all processes, by a library that is loaded before
that of C (metadata.c). Then the steps that look at all shards run, and each call waits `--wait` microseconds: the start
of a part all of whose shards are there, that of a part of 500, `packer commit --missing`, `packer commit`. Counts are
exact. Each time has the CPU time next to it, as other programs may run.

With `--before`, another checkout, whose kernels are built, takes turns with this one: on the same shards.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from program import REPO, parser
from tables import markdown

from bench.machine import machine
from bench.nights import make_linked_noise
from readers.contract.manifest import GENERATIONS, MANIFEST, STORAGES

SOURCE = Path(__file__).with_suffix(".c")
KINDS = ("open", "create", "stat", "list", "rename", "link", "unlink", "mkdir", "rmdir", "fsync", "fsync of a folder")
"""The kinds of calls, in the order of metadata.c."""
FEW = 100
"""Shards that are built to count the calls of one."""


class _State(ctypes.Structure):
    """The `struct shared` of metadata.c."""

    _fields_ = (("calls", ctypes.c_uint64 * len(KINDS)), ("wait", ctypes.c_uint64), ("folder", ctypes.c_char * 2048))


@dataclass(frozen=True)
class Run:
    """The calls of a command, its seconds, and the most memory of one of its processes."""

    calls: tuple[int, ...]
    seconds: float = 0.0
    cpu: float = 0.0
    mebibytes: int = 0


@dataclass(frozen=True)
class Bench:
    """A folder for all files, also the library."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Bench:
        """Compile the library into a folder."""
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", folder / "metadata.so", SOURCE], check=True)
        return cls(folder)

    def run(self, code: Path, out: Path, wait: int, *arguments: object) -> Run:
        """Run the packer of a checkout, and count its calls below `out`."""
        state = _State(wait=wait, folder=os.fsencode(out))
        path = self.folder / "state"
        path.write_bytes(bytes(state))
        environment = {**os.environ, "LD_PRELOAD": str(self.folder / "metadata.so"), "METADATA_STATE": str(path)}
        command, started = [sys.executable, "-m", "packer", *map(str, arguments)], time.perf_counter()
        process = subprocess.Popen(command, env=environment, cwd=code, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        calls = tuple(_State.from_buffer_copy(path.read_bytes()).calls)
        return Run(calls, time.perf_counter() - started, used.ru_utime + used.ru_stime, used.ru_maxrss >> 10)

    def plan(self, name: str, shards: int, storage: str) -> Path:
        """Plan pairs with a row in each shard."""
        raw, plan = self.folder / name / "raw", self.folder / name / "plan"
        make_linked_noise(raw, shards)
        options = ("--quiet", "--classes", 4, "--labels", "index", "--shard-size", "1B", "--format", storage)
        self.run(REPO, plan, 0, "plan", *options, raw, plan)
        return plan

    def part(self, code: Path, plan: Path, part: str, out: Path, wait: int = 0, workers: int = 1) -> Run:
        """Build a part of a plan."""
        options = ("--quiet", "--workers", workers, "--plan", plan, "--part", part)
        return self.run(code, out, wait, "build-part", *options, out)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--shards", type=int, default=1000)
    options.add_argument("--wait", type=int, default=1000, help="microseconds that are added to each call")
    options.add_argument("--format", choices=STORAGES, default="npy")
    options.add_argument("--before", type=Path, help="another checkout")
    options.add_argument("--folder", type=Path, help="make a temporary folder there")
    chosen = options.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(dir=chosen.folder) as temporary:
        bench = Bench.make(Path(temporary))
        codes = {"before": chosen.before.resolve(), "now": REPO} if chosen.before else {"now": REPO}
        rows = [["a shard", "code", "all", *KINDS]]
        for storage in STORAGES:
            plan = bench.plan(storage, FEW, storage)
            rows += [[storage, name, *of_a_shard(bench, code, plan)] for name, code in codes.items()]
        print("\n".join(markdown(rows, padded=False)), flush=True)
        print("\n".join(markdown(of_all_shards(bench, codes, chosen), padded=False)))


def of_a_shard(bench: Bench, code: Path, plan: Path) -> Iterator[str]:
    """Yield the calls of a shard that is built, all of them first: what more shards add, divided by their number."""
    runs = []
    for part in (f"1/{FEW}", "1/1"):
        runs.append(bench.part(code, plan, part, bench.folder / "out"))
        shutil.rmtree(bench.folder / "out")
    calls = [(more - first) / (FEW - 1) for first, more in zip(*(run.calls for run in runs), strict=True)]
    return (f"{count:.1f}".removesuffix(".0") for count in (sum(calls), *calls))


def of_all_shards(bench: Bench, codes: Mapping[str, Path], chosen: Namespace) -> list[list[str]]:
    """Return the rows of a table: the calls and the seconds of each step that looks at all shards."""
    plan, out = bench.plan("many", chosen.shards, chosen.format), bench.folder / "many" / "out"
    bench.part(REPO, plan, "1/1", out, workers=2)
    steps = {
        "a part of 1, done": ("build-part", "--quiet", "--workers", 1, "--plan", plan, "--part", "1/1", out),
        "a part of 500, done": ("build-part", "--quiet", "--workers", 1, "--plan", plan, "--part", "1/500", out),
        "commit --missing": ("commit", "--plan", plan, "--missing", out),
        "commit": ("commit", "--quiet", "--plan", plan, out),
    }
    rows = [[f"{chosen.shards:,} shards, {chosen.format}", "code", "s", "CPU s", "MiB", "all", *KINDS]]
    for step, arguments in steps.items():
        for name, code in codes.items():
            run = bench.run(code, out, chosen.wait, *arguments)
            counts = map("{:,}".format, (sum(run.calls), *run.calls))
            rows.append([step, name, f"{run.seconds:.1f}", f"{run.cpu:.1f}", str(run.mebibytes), *counts])
            (out / MANIFEST).unlink(missing_ok=True)
            shutil.rmtree(out / GENERATIONS)
            (out / GENERATIONS).mkdir()
    return rows


if __name__ == "__main__":
    main()
