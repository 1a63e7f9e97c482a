"""Benchmark: how fast pairs come out of a pack, and out of what others make of the same pairs.

    python -m venv ENV && ENV/bin/pip install -c constraints.txt -e . -r tools/bench/peers-requirements.txt
    PYTHONPATH=tools ENV/bin/python -m bench.peers [--rounds 7] [--only ffcv,lance] [--keep FOLDER] [--plot FOLDER]

1,200 pairs of 512x512 (uint8 image and label), uncompressed where the contender can, in shuffled batches of 16, page
cache warm. Contenders are set up the way their own documentation says is fastest (see contenders/), and take turns,
three at a time, so that what they read fits in memory: in each round the copy loop runs, then our `loader` over npy,
then each contender. What counts is the ratio within a round. Each first proves its work: all pairs, each once, image
and label of the same. Whoever cannot be measured stays in the table, with the reason.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from datetime import datetime, timezone
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

# Where others use the machine too, threads of torch that spin while they wait make the copy loop crawl.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
import torch

from bench.chart import draw
from bench.contenders import CONTENDERS, Entry, Passes
from bench.contenders.pairs import Pairs, make_pairs
from bench.contest import Row, Turn, take_turns
from bench.reading import copied
from bench.table import COPY, OURS, lines

SEGPACK = CONTENDERS[0]
AT_ONCE = 3


def main() -> None:
    chosen = arguments()
    warnings.simplefilter("ignore")  # torch on mapped memory that is read-only
    entries = named(chosen.only)
    with tempfile.TemporaryDirectory() as temporary:
        root = (chosen.keep or Path(temporary)).resolve()
        pairs = make_pairs(root, chosen.pairs)
        print(header(entries, len(pairs), chosen.rounds), flush=True)
        rows = contest(entries, pairs, root, chosen.rounds, keep=chosen.keep is not None)
    print(f"\nload at the end, this benchmark included: {os.getloadavg()[0]:.1f}\n")
    print("\n".join(lines(rows)))
    if chosen.plot:
        draw(chosen.plot, rows)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--pairs", type=int, default=1200, help="A multiple of 16.")
    parser.add_argument("--only", default="", help="Files of contenders/, separated by commas.")
    parser.add_argument("--keep", type=Path, help="Where everything is made, and left for the next time (20 GB).")
    parser.add_argument("--plot", type=Path, help="Where peers.png and peers.svg go.")
    return parser.parse_args()


def named(only: str) -> list[Entry]:
    """The contenders that are asked for."""
    names = set(filter(None, only.split(",")))
    if unknown := names - {entry.module for entry in CONTENDERS}:
        known = ", ".join(entry.module for entry in CONTENDERS)
        raise SystemExit(f"--only {','.join(sorted(unknown))}: expected some of {known}")
    return [entry for entry in CONTENDERS if not names or entry.module in names]


def header(entries: list[Entry], pairs: int, rounds: int) -> str:
    """What ran where: the machine, and the version of everything."""
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    names = dict.fromkeys(["torch", "numpy", "segpack", *(entry.package for entry in entries)])
    packages = ", ".join(f"{name} {known_version(name)}" for name in names)
    return "\n".join(
        [
            f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC; {pairs:,} pairs, rounds: {rounds}",
            f"{models[0].partition(': ')[2] if models else platform.machine()}, {os.cpu_count()} cores",
            f"Linux {platform.release()}, Python {platform.python_version()}",
            f"torch on {torch.get_num_threads()} threads",
            packages,
            f"load at the start: {os.getloadavg()[0]:.1f}",
        ]
    )


def known_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"


def contest(entries: list[Entry], pairs: Pairs, root: Path, rounds: int, keep: bool) -> list[Row]:
    """All rows: the copy loop and ours, which run in every round, then the others, a few at a time."""
    prepare(SEGPACK, pairs, root)
    copy = Turn(Row(COPY), partial(copied, pairs.images, pairs.labels))
    ours = Turn(Row(OURS), ways(SEGPACK, pairs, root)["npy"])
    rows = [copy.row, ours.row]
    others = [entry for entry in entries if entry is not SEGPACK]
    for first in range(0, len(others), AT_ONCE):
        group = others[first : first + AT_ONCE]
        turns = [turn for entry in group for turn in turns_of(entry, pairs, root)]
        take_turns(copy, ours, turns, rounds)
        rows += [turn.row for turn in turns]
        print("\n".join(lines(rows)), file=sys.stderr, flush=True)  # so far
        del turns
        gc.collect()  # their workers end
        for entry in () if keep else group:
            discard(place(entry, pairs, root))
    return rows


def turns_of(entry: Entry, pairs: Pairs, root: Path) -> Iterator[Turn]:
    """A turn for each of its settings; or one that says what the trouble is."""
    try:
        prepare(entry, pairs, root)
        for way, passes in ways(entry, pairs, root).items():
            yield Turn(Row(f"{entry.title}, {way}", entry.goal), passes)
    except Exception as error:  # noqa: BLE001 - what others raise is theirs to choose
        print(f"{entry.title}: {type(error).__name__}: {error}", file=sys.stderr)
        yield Turn(Row(entry.title, entry.goal, trouble=f"{type(error).__name__}: {error}"), tuple)


def prepare(entry: Entry, pairs: Pairs, root: Path) -> None:
    """Have it write the pairs its own way, where that was not done before."""
    out = place(entry, pairs, root)
    done = out.with_suffix(".done")
    if not done.is_file():
        discard(out)
        import_module(f"bench.contenders.{entry.module}").write(pairs, out)
        done.touch()


def ways(entry: Entry, pairs: Pairs, root: Path) -> dict[str, Passes]:
    found: dict[str, Passes] = import_module(f"bench.contenders.{entry.module}").ways(place(entry, pairs, root))
    return found


def place(entry: Entry, pairs: Pairs, root: Path) -> Path:
    return root / f"{entry.module}_{len(pairs)}"


def discard(out: Path) -> None:
    """Whatever it is, and the mark that it is whole."""
    out.with_suffix(".done").unlink(missing_ok=True)
    if out.is_dir() and not out.is_symlink():
        shutil.rmtree(out)
    else:
        out.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
