"""`packer build` in every format, next to the writers of other libraries, with the same decoded pairs as input.

    python -m venv ENV && ENV/bin/pip install -c constraints.txt -e . -r tools/bench/peers-requirements.txt
    ENV/bin/python tools/run bench.building_peers [--pairs 400] [--size 512] [--rounds 3] [--only npy,ffcv]

JPEG and PNG of 960x720 become uint8 arrays of --size and one class number per pixel. Every worker of every writer
decodes with the packer's own functions, one pair at a time, on all cores. Writers store uncompressed arrays, as their
own documentation recommends for speed (libraries/). In a round the decode loop runs, which writes nothing, then each
writer, in a process and an empty folder of its own. The clock starts when everything is imported and ends when the
writer returns. *durable* ends when all files are on the disk, too, which `packer build` itself ensures. In the first
round the pairs are read back and compared with the decode loop, by the CRC of each pair. A writer that cannot be
measured stays in the table, with the reason.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import textwrap
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from program import command, parser
from scenes.camera import HEIGHT, WIDTH, make_linked_streets
from tables import line, spread

from bench.decode_loop import SIZE
from bench.libraries import LIBRARIES
from bench.machine import PACKER_PACKAGES, machine, versions
from bench.write_job import LOOP, SHARD, WriteJob, Written
from readers.contract.manifest import STORAGES
from readers.machine import usable_cores

MIB = 1 << 20
BY_MODULE = {library.module: library for library in LIBRARIES}
WRITERS = ("ffcv", "litdata", "mosaic", "webdataset", "huggingface")
"""The libraries whose writers use all cores."""
TITLES = {
    LOOP: "decode loop",
    **{storage: f"packer build, {storage}" for storage in STORAGES},
    **{module: BY_MODULE[module].title for module in WRITERS},
}
TIMEOUT = 600
"""Seconds after which a writer is killed."""
HEAD = ("", "pairs/s", "of loop", "durable", "of loop", "cpu ms", "MiB")
WIDTHS = (-22, 18, 20, 18, 20, 8, 6)


@dataclass
class WriteResult:
    """The figures of a writer in each round, and those of the decode loop in the same rounds."""

    name: str
    trouble: str = ""
    written: list[Written] = field(default_factory=list)
    bare: list[Written] = field(default_factory=list)


def main() -> None:
    chosen = arguments()
    names = named(chosen.only)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # kills the writer on the way out
    with tempfile.TemporaryDirectory(dir=chosen.out) as folder:
        raw = (chosen.raw or Path(folder) / "raw").resolve()
        if not raw.is_dir():
            make_linked_streets(raw, chosen.pairs)
        job = WriteJob(LOOP, raw, Path(folder).resolve() / "out", chosen.pairs, chosen.size, usable_cores())
        heading = header(job, names, chosen.rounds)
        if not chosen.json:
            print("\n".join(heading), flush=True)
        results = compare(job, names, chosen.rounds)
    if chosen.json:
        rows = [asdict(result) for result in results]
        print(json.dumps({"header": heading, "pairs": job.pairs, "rows": rows}, indent=1))
    else:
        print("\n".join(["", line(HEAD, WIDTHS), *lines(results, job.pairs)]))


def arguments() -> Namespace:
    options = parser(__doc__)
    options.add_argument("--pairs", type=int, default=400)
    options.add_argument("--size", type=int, default=SIZE, help="the stored height and width")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument(
        "--only", default="", metavar="NAMES", help=f"some of {', '.join([*STORAGES, *WRITERS])}, separated by commas"
    )
    options.add_argument("--json", action="store_true", help="print all figures as JSON")
    options.add_argument(
        "--raw", type=Path, metavar="FOLDER", help="take pairs from there, or make and keep them there"
    )
    options.add_argument("--out", type=Path, metavar="FOLDER", help="write there, and delete everything at the end")
    return options.parse_args()


def named(only: str) -> list[str]:
    """Return the writers of --only, or all, in our order."""
    names = set(filter(None, only.split(",")))
    if unknown := names - {*STORAGES, *WRITERS}:
        raise SystemExit(f"--only {','.join(sorted(unknown))}: expected some of {', '.join([*STORAGES, *WRITERS])}")
    return [name for name in (*STORAGES, *WRITERS) if not names or name in names]


def header(job: WriteJob, names: Sequence[str], rounds: int) -> list[str]:
    """Describe the work, the machine and the versions."""
    packages = [*PACKER_PACKAGES, *(BY_MODULE[name].package for name in names if name in BY_MODULE)]
    now, load = datetime.now(timezone.utc), os.getloadavg()[0]
    return [
        f"{now:%Y-%m-%d %H:%M} UTC; {job.pairs} pairs of {WIDTH}x{HEIGHT}, JPEG and PNG, to {job.side}x{job.side}; "
        f"rounds: {rounds}; load at the start: {load:.1f}",
        f"{job.workers} workers each, shards of packer build of {SHARD // MIB} MiB",
        machine(),
        *textwrap.wrap(versions(packages), 118, break_on_hyphens=False),
    ]


def compare(job: WriteJob, names: Sequence[str], rounds: int) -> list[WriteResult]:
    """Run all rounds. The first result is that of the decode loop."""
    expected = run("checksums", job)
    loops, *others = results = [WriteResult(name) for name in (LOOP, *names)]
    for _ in range(rounds):
        loop = Written(**run("write", job))
        loops.written.append(loop)
        loops.bare.append(loop)
        for result in others:
            if not result.trouble:
                turn(result, replace(job, name=result.name), loop, None if result.written else expected)
    return results


def turn(result: WriteResult, job: WriteJob, loop: Written, expected: Sequence[Sequence[int]] | None) -> None:
    """Write into an empty folder, read back, compare with `expected`, and note what goes wrong."""
    job.out.mkdir()
    os.sync()  # a writer must not wait for what the one before wrote
    try:
        written = Written(**run("write", job))
        if expected is not None and run("checksums", job) != expected:
            raise RuntimeError("what is read back is not what was decoded")
    except RuntimeError as error:
        result.trouble = str(error)
    else:
        result.written.append(written)
        result.bare.append(loop)
    finally:
        shutil.rmtree(job.out)
    rate = result.trouble or f"{job.pairs / written.seconds:.1f} pairs/s"
    print(f"  {TITLES[result.name]:24} {rate}", file=sys.stderr)


def run(action: str, job: WriteJob) -> Any:
    """Run a job in a process of its own and return its answer. Raise RuntimeError if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        answer, log = Path(folder) / "answer", Path(folder) / "log"
        # Our modules are compiled once, as those of installed packages are.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)  # the modules that this program itself runs
        with (
            log.open("wb") as output,
            subprocess.Popen(
                command("bench.write_job", action, job.to_text(), answer),
                stdout=output,
                stderr=output,
                start_new_session=True,
                env=environment,
            ) as process,
        ):
            try:
                code = process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end(process.pid)
        if code == 0:
            return json.loads(answer.read_text())
        last = (log.read_text(errors="replace").strip().splitlines() or ["it printed nothing"])[-1]
        raise RuntimeError(f"not within {TIMEOUT} s" if code is None else last)


def _end(session: int) -> None:
    """Kill the processes that a writer left running, which would slow the next one down."""
    try:
        os.killpg(session, signal.SIGKILL)
    except ProcessLookupError:
        return


def lines(results: Sequence[WriteResult], pairs: int) -> Iterator[str]:
    """Yield the rows of the table, and below it why a writer was not measured."""
    for result in results:
        if not result.trouble:
            yield row(result, pairs)
    for result in results:
        if result.trouble:
            yield f"\n{TITLES[result.name]}: not measured: {' '.join(result.trouble.split())[:300]}"


def row(result: WriteResult, pairs: int) -> str:
    """Return the row of a writer: rates until it returns and until all is on the disk, CPU time and size."""
    cells = [TITLES[result.name]]
    for seconds, loops in (
        ([written.seconds for written in result.written], [loop.seconds for loop in result.bare]),
        ([written.durable for written in result.written], [loop.seconds for loop in result.bare]),
    ):
        cells.append(spread([pairs / taken for taken in seconds]))
        cells.append(spread([loop / taken for taken, loop in zip(seconds, loops, strict=True)], ".2f"))
    cpu = 1000 * statistics.median(written.cpu for written in result.written) / pairs
    size = statistics.median(written.bytes for written in result.written) / MIB
    return line((*cells, f"{cpu:.1f}", f"{size:.0f}"), WIDTHS)
