"""Benchmark: `packer build` in every format against the writers of others, all fed with the same decoded pairs.

    python -m venv ENV && ENV/bin/pip install -c constraints.txt -e . -r tools/bench/peers-requirements.txt
    PYTHONPATH=tools ENV/bin/python -m bench.writers [--pairs 400] [--size 512] [--rounds 3] [--only npy,ffcv]

JPEG and PNG of 960x720 become uint8 arrays of --size and one class number per pixel. Every worker of every writer
decodes with the packer's own functions, one pair at a time; all cores work. Writers store arrays, uncompressed, as
their own documentation says is fastest (contenders/). In a round the bare loop runs, which decodes and writes nothing,
then each writer, in a process and an empty folder of its own. Its clock starts when everything is imported and ends
when it returns; *durable* is when all its files are on the disk, too, which `packer build` sees to itself. In the first
round, what is read back must be what the bare loop made, by the CRC of each pair. Whoever cannot be measured stays in
the table, with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.bare import SIZE
from bench.building import LIBRARIES, MIB, machine
from bench.contenders import CONTENDERS
from bench.jobs import BARE, SHARD, Job, Written
from bench.streets import HEIGHT, WIDTH, make_streets
from readers.contract.manifest import STORAGES
from readers.machine import usable_cores

PEERS = {entry.module: entry for entry in CONTENDERS}
WRITERS = ("ffcv", "litdata", "mosaic", "webdataset", "huggingface")
"""Those of the contenders whose writers use all cores."""
TITLES = {
    BARE: "bare loop",
    **{storage: f"packer build, {storage}" for storage in STORAGES},
    **{module: PEERS[module].title for module in WRITERS},
}
PATIENCE = 600
"""Seconds for one writer, before it is ended."""
HEAD = f"{'':22}{'pairs/s':>18}{'of bare':>20}{'durable':>18}{'of bare':>20}{'cpu ms':>8}{'MiB':>6}"


@dataclass
class Row:
    """What a contender did in each round, beside the bare loop in the same."""

    name: str
    trouble: str = ""
    written: list[Written] = field(default_factory=list)
    bare: list[Written] = field(default_factory=list)


def main() -> None:
    chosen = arguments()
    names = named(chosen.only)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # and so end who is at work
    with tempfile.TemporaryDirectory(dir=chosen.out) as folder:
        raw = (chosen.raw or Path(folder) / "raw").resolve()
        if not raw.is_dir():
            make_streets(raw, chosen.pairs)
        job = Job(BARE, raw, Path(folder).resolve() / "out", chosen.pairs, chosen.size, usable_cores())
        heading = header(job, names, chosen.rounds)
        if not chosen.json:
            print("\n".join(heading), flush=True)
        rows = contest(job, names, chosen.rounds)
    if chosen.json:
        print(json.dumps({"header": heading, "pairs": job.pairs, "rows": [asdict(row) for row in rows]}, indent=1))
    else:
        print("\n".join(["", HEAD, *lines(rows, job.pairs)]))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=400)
    parser.add_argument("--size", type=int, default=SIZE, help="The stored height and width.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help=f"Some of {', '.join([*STORAGES, *WRITERS])}, separated by commas.")
    parser.add_argument("--json", action="store_true", help="Print everything that was measured as JSON.")
    parser.add_argument("--raw", type=Path, help="Where so many pairs are, or are made and left for the next time.")
    parser.add_argument("--out", type=Path, help="A folder on the disk to write to; nothing stays in it.")
    return parser.parse_args()


def named(only: str) -> list[str]:
    """The contenders that are asked for, in our order."""
    names = set(filter(None, only.split(",")))
    if unknown := names - {*STORAGES, *WRITERS}:
        raise SystemExit(f"--only {','.join(sorted(unknown))}: expected some of {', '.join([*STORAGES, *WRITERS])}")
    return [name for name in (*STORAGES, *WRITERS) if not names or name in names]


def header(job: Job, names: Sequence[str], rounds: int) -> list[str]:
    """What ran where: the work, the machine, and the version of everything."""
    packages = dict.fromkeys([*LIBRARIES, *(PEERS[name].package for name in names if name in PEERS)])
    versions = ", ".join(f"{name} {_version(name)}" for name in packages)
    now, load = datetime.now(timezone.utc), os.getloadavg()[0]
    return [
        f"{now:%Y-%m-%d %H:%M} UTC; {job.pairs} pairs of {WIDTH}x{HEIGHT}, JPEG and PNG, to {job.side}x{job.side}; "
        f"rounds: {rounds}; load at the start: {load:.1f}",
        f"{job.workers} workers each, shards of packer build of {SHARD // MIB} MiB",
        machine(),
        *textwrap.wrap(f"python {platform.python_version()}, {versions}", 118, break_on_hyphens=False),
    ]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"


def contest(job: Job, names: Sequence[str], rounds: int) -> list[Row]:
    """All rows, the bare loop's first."""
    expected = run("checksums", job)
    bare, *others = rows = [Row(name) for name in (BARE, *names)]
    for _ in range(rounds):
        loop = Written(**run("write", job))
        bare.written.append(loop)
        bare.bare.append(loop)
        for row in others:
            if not row.trouble:
                turn(row, replace(job, name=row.name), loop, None if row.written else expected)
    return rows


def turn(row: Row, job: Job, bare: Written, expected: Sequence[int] | None) -> None:
    """Write into an empty folder, and read back what is expected; what goes wrong is noted."""
    job.out.mkdir()
    os.sync()  # what others wrote before is not this one's to wait for
    try:
        written = Written(**run("write", job))
        if expected is not None and run("checksums", job) != expected:
            raise RuntimeError("what is read back is not what was decoded")
    except RuntimeError as error:
        row.trouble = str(error)
    else:
        row.written.append(written)
        row.bare.append(bare)
    finally:
        shutil.rmtree(job.out)
    print(f"  {TITLES[row.name]:24} {row.trouble or f'{job.pairs / written.seconds:.1f} pairs/s'}", file=sys.stderr)


def run(act: str, job: Job) -> Any:
    """What comes of a job in a process of its own; RuntimeError where that fails."""
    with tempfile.TemporaryDirectory() as folder:
        answer, log = Path(folder) / "answer", Path(folder) / "log"
        command = [sys.executable, "-m", "bench.writing", act, job.to_text(), str(answer)]
        # Our modules are compiled once, as those of installed packages are.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)  # wherever this program found its modules
        with (
            log.open("wb") as words,
            subprocess.Popen(command, stdout=words, stderr=words, start_new_session=True, env=environment) as process,
        ):
            try:
                code = process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end(process.pid)
        if code == 0:
            return json.loads(answer.read_text())
        last = (log.read_text(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        raise RuntimeError(f"not within {PATIENCE} s" if code is None else last)


def _end(session: int) -> None:
    """Whatever a contender left running would be in the way of the next."""
    try:
        os.killpg(session, signal.SIGKILL)
    except ProcessLookupError:
        return


def lines(rows: Sequence[Row], pairs: int) -> Iterator[str]:
    """The table; below it, why somebody was not measured."""
    for row in rows:
        if not row.trouble:
            yield line(row, pairs)
    for row in rows:
        if row.trouble:
            yield f"\n{TITLES[row.name]}: not measured: {' '.join(row.trouble.split())[:300]}"


def line(row: Row, pairs: int) -> str:
    """What comes of the clock, twice, then what it cost."""
    cells = "".join(
        _paced(pairs, seconds, [one.seconds for one in row.bare])
        for seconds in ([one.seconds for one in row.written], [one.durable for one in row.written])
    )
    cpu = 1000 * statistics.median(one.cpu for one in row.written) / pairs
    size = statistics.median(one.bytes for one in row.written) / MIB
    return f"{TITLES[row.name]:22}{cells}{cpu:8.1f}{size:6.0f}"


def _paced(pairs: int, seconds: Sequence[float], bare: Sequence[float]) -> str:
    """Pairs in a second, and which part of that of the bare loop in the same round."""
    rates = [pairs / one for one in seconds]
    ratios = [loop / one for one, loop in zip(seconds, bare, strict=True)]
    return f"{_spread(rates, 0):>18}{_spread(ratios, 2):>20}"


def _spread(numbers: Sequence[float], digits: int) -> str:
    """Median, and in brackets least and most."""
    middle, least, most = (f"{one:.{digits}f}" for one in (statistics.median(numbers), min(numbers), max(numbers)))
    return f"{middle} ({least}-{most})"


if __name__ == "__main__":
    main()
