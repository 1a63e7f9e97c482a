"""Drill: fuzz every parser of ours, guided by coverage; only errors of ours may come out, soon and with little memory.

    pip install atheris
    python tools/drills/fuzz.py [--seconds 300] [--target lmdb …] [--keep FOLDER]

Each target runs in a process of its own, which is started again when it dies. Exits 1 if anything was found: another
error, more than 5 seconds, more than 512 MiB, or a crash. What was found stays in FOLDER/found.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
with atheris.instrument_imports(include=["packer", "readers", "tomllib"]):
    from drills.targets import HEADROOM, SECONDS, Target, make_targets

MOST_BYTES = 1 << 16
MOST_STARTS = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=300, help="for each target")
    parser.add_argument("--target", action="append", help="only this one; may be given again")
    parser.add_argument("--keep", type=Path, help="where to work, and to leave everything")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        targets = make_targets(folder)
        if options.child:
            fuzz(targets[options.child], folder, options.seconds)
        print(f"{'target':<10}{'runs':>10}{'coverage':>10}{'found':>7}")
        found = sum(drill(targets[name], folder, options.seconds) for name in options.target or targets)
    sys.exit(1 if found else 0)


def drill(target: Target, folder: Path, seconds: int) -> int:
    """Fuzz a target for so long, and tell how often it ran, what it reached and what was found."""
    corpus, found = folder / "corpus" / target.name, folder / "found" / target.name
    for place in (corpus, found):
        place.mkdir(parents=True, exist_ok=True)
    for seed in target.seeds:
        (corpus / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    end = time.monotonic() + seconds
    runs = coverage = 0
    for _ in range(MOST_STARTS):
        left = round(end - time.monotonic())
        if left < 1:
            break
        command = [sys.executable, __file__, "--keep", str(folder), "--child", target.name, "--seconds", str(left)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        runs += max((int(one) for one in re.findall(r"^#(\d+)", done.stderr, re.MULTILINE)), default=0)
        coverage = max([coverage, *map(int, re.findall(r"cov: (\d+)", done.stderr))])
        if done.returncode:
            (found / f"died-{time.time_ns()}.log").write_text(done.stderr[-4000:])
    count = len([path for path in found.iterdir() if path.suffix == ".log"])
    print(f"{target.name:<10}{runs:>10}{coverage:>10}{count:>7}", flush=True)
    return count


def fuzz(target: Target, folder: Path, seconds: int) -> None:
    """Run a target on what libFuzzer makes of its seeds; never returns."""
    found = folder / "found" / target.name
    told: set[str] = set()

    def one(data: bytes) -> None:
        wrong = target.judge(data)
        if wrong is not None and (kind := wrong.partition(": ")[0]) not in told:
            told.add(kind)
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
    atheris.Setup([sys.argv[0], corpus, *(f"-{name}={value}" for name, value in options.items())], one)
    atheris.Fuzz()


def _resident() -> int:
    """The bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


if __name__ == "__main__":
    main()
