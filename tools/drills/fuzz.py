"""Fuzz every parser of ours, guided by coverage: it may only raise our own errors, soon and with little memory.

    pip install atheris
    tools/run drills.fuzz [--seconds 300] [--target lmdb …] [--keep FOLDER]

Each target runs in a process of its own, which is restarted when it crashes. Exits 1 if anything was found: another
error, more than 5 seconds, more than 512 MiB, or a crash. The findings stay in FOLDER/found.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
import time
from argparse import SUPPRESS
from pathlib import Path

import atheris
from program import command, parser
from tables import line

with atheris.instrument_imports(include=["packer", "readers", "tomllib"]):
    from drills.fuzz_target import HEADROOM, SECONDS, Target
    from drills.fuzz_targets import make_targets

MOST_BYTES = 1 << 16
MOST_STARTS = 50
WIDTHS = (-10, 10, 10, 7)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seconds", type=int, default=300, help="seconds for each target")
    options.add_argument("--target", action="append", help="only this target; may be repeated")
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="work there and delete nothing")
    options.add_argument("--child", help=SUPPRESS)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        targets = make_targets(folder)
        if chosen.child:
            fuzz(targets[chosen.child], folder, chosen.seconds)
        print(line(("target", "runs", "coverage", "found"), WIDTHS))
        found = sum(drill(targets[name], folder, chosen.seconds) for name in chosen.target or targets)
    sys.exit(1 if found else 0)


def drill(target: Target, folder: Path, seconds: int) -> int:
    """Fuzz a target for some seconds, print its runs, coverage and findings, and return the number of findings."""
    corpus, found = folder / "corpus" / target.name, folder / "found" / target.name
    for path in (corpus, found):
        path.mkdir(parents=True, exist_ok=True)
    for seed in target.seeds:
        (corpus / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    end = time.monotonic() + seconds
    runs = coverage = 0
    for _ in range(MOST_STARTS):
        left = round(end - time.monotonic())
        if left < 1:
            break
        child = command("drills.fuzz", "--keep", folder, "--child", target.name, "--seconds", left)
        done = subprocess.run(child, capture_output=True, text=True, errors="replace", check=False)
        runs += max((int(number) for number in re.findall(r"^#(\d+)", done.stderr, re.MULTILINE)), default=0)
        coverage = max([coverage, *map(int, re.findall(r"cov: (\d+)", done.stderr))])
        if done.returncode:
            (found / f"died-{time.time_ns()}.log").write_text(done.stderr[-4000:])
    count = len([path for path in found.iterdir() if path.suffix == ".log"])
    print(line((target.name, runs, coverage, count), WIDTHS), flush=True)
    return count


def fuzz(target: Target, folder: Path, seconds: int) -> None:
    """Run a target on inputs that libFuzzer makes from its seeds. Never return."""
    found = folder / "found" / target.name
    reported: set[str] = set()

    def judge(data: bytes) -> None:
        wrong = target.judge(data)
        if wrong is not None and (kind := wrong.partition(": ")[0]) not in reported:
            reported.add(kind)
            name = hashlib.sha256(kind.encode()).hexdigest()[:16]
            (found / f"{name}.bin").write_bytes(data)
            (found / f"{name}.log").write_text(wrong + "\n")

    options = {
        "max_total_time": seconds,
        "timeout": round(SECONDS),
        "rss_limit_mb": (_resident() + HEADROOM) >> 20,
        "max_len": MOST_BYTES,
        "artifact_prefix": f"{found}/",
    }
    corpus = str(folder / "corpus" / target.name)
    atheris.Setup([sys.argv[0], corpus, *(f"-{name}={value}" for name, value in options.items())], judge)
    atheris.Fuzz()


def _resident() -> int:
    """Return the bytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
