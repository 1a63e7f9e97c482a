"""Reading pairs from a pack, next to other libraries that read their own copies of the same pairs.

    python -m venv ENV && ENV/bin/pip install -c constraints.txt -e . -r tools/bench/peers-requirements.txt
    ENV/bin/python tools/run bench.reading_peers [--rounds 7] [--only ffcv,lance] [--keep FOLDER] [--plot FOLDER]

1,200 pairs of 512x512 (uint8 image and label), uncompressed if the library can, in shuffled batches of 16, page cache
warm. Each library is set up as its own documentation recommends for speed (see libraries/). Libraries take turns, three
at a time, so that their files fit in memory: in each round the copy loop runs, then our `loader` over npy, then each
library. The result is the ratio within a round. Each library first proves its work: all pairs, each once, image and
label of the same pair. A library that cannot be measured stays in the table, with the reason.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
import warnings
from argparse import Namespace
from collections.abc import Iterator
from datetime import datetime, timezone
from functools import partial
from importlib import import_module
from pathlib import Path

# On a machine that is shared, threads of torch that spin while they wait slow the copy loop down.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
import torch
from program import parser

from bench.copy_loops import copy_loops, fastest
from bench.libraries import LIBRARIES, Library, Loaders
from bench.machine import machine, versions
from bench.pairs import Pairs, make_pairs
from bench.peers_table import COPY, OURS, draw, lines
from bench.reading import one_by_one
from bench.rounds import Candidate, ReadResult, take_turns

SEGPACK = LIBRARIES[0]
AT_ONCE = 3


def main() -> None:
    chosen = arguments()
    warnings.simplefilter("ignore")  # torch warns about mapped memory that is read-only
    libraries = named(chosen.only)
    with tempfile.TemporaryDirectory() as temporary:
        root = (chosen.keep or Path(temporary)).resolve()
        pairs = make_pairs(root, chosen.pairs)
        print(header(libraries, len(pairs), chosen.rounds), flush=True)
        results = compare(libraries, pairs, root, chosen.rounds, keep=chosen.keep is not None)
    print(f"\nload at the end, this bench included: {os.getloadavg()[0]:.1f}\n")
    print("\n".join(lines(results)))
    if chosen.plot:
        draw(chosen.plot, results)


def arguments() -> Namespace:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--pairs", type=int, default=1200, help="a multiple of 16")
    options.add_argument("--only", default="", metavar="NAMES", help="files of libraries/, separated by commas")
    options.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="make everything there and keep it for the next run (20 GB)"
    )
    options.add_argument("--plot", type=Path, metavar="FOLDER", help="write peers.png and peers.svg there")
    return options.parse_args()


def named(only: str) -> list[Library]:
    """Return the libraries of --only, or all."""
    names = set(filter(None, only.split(",")))
    if unknown := names - {library.module for library in LIBRARIES}:
        known = ", ".join(library.module for library in LIBRARIES)
        raise SystemExit(f"--only {','.join(sorted(unknown))}: expected some of {known}")
    return [library for library in LIBRARIES if not names or library.module in names]


def header(libraries: list[Library], pairs: int, rounds: int) -> str:
    """Describe the run, the machine and the versions."""
    return "\n".join(
        [
            f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC; {pairs:,} pairs, rounds: {rounds}",
            machine(),
            f"torch on {torch.get_num_threads()} threads",
            versions(["torch", "numpy", "segpack", *(library.package for library in libraries)]),
            f"load at the start: {os.getloadavg()[0]:.1f}",
        ]
    )


def compare(libraries: list[Library], pairs: Pairs, root: Path, rounds: int, keep: bool) -> list[ReadResult]:
    """Measure the copy loop and our loader in every round, and the others a few at a time."""
    prepare(SEGPACK, pairs, root)
    limit = fastest(copy_loops((pairs.images, pairs.labels)), report=partial(print, file=sys.stderr))
    copy = Candidate(ReadResult(f"{COPY}, {limit.name}"), limit.batches)
    ours = Candidate(ReadResult(OURS), loaders(SEGPACK, pairs, root)["npy"])
    memory = Candidate(ReadResult("memcpy, 1 thread"), partial(one_by_one, pairs.images, pairs.labels))
    results = [copy.result, ours.result, memory.result]
    others = [library for library in libraries if library is not SEGPACK]
    for first in range(0, len(others), AT_ONCE):
        group = others[first : first + AT_ONCE]
        candidates = [candidate for library in group for candidate in candidates_of(library, pairs, root)]
        take_turns(copy, ours, [memory, *candidates] if not first else candidates, rounds)
        results += [candidate.result for candidate in candidates]
        print("\n".join(lines(results)), file=sys.stderr, flush=True)  # so far
        del candidates
        gc.collect()  # ends their workers
        for library in () if keep else group:
            discard(folder_of(library, pairs, root))
    return results


def candidates_of(library: Library, pairs: Pairs, root: Path) -> Iterator[Candidate]:
    """Yield a candidate for each setting of a library. If it fails, yield one with the reason."""
    try:
        prepare(library, pairs, root)
        for setting, passes in loaders(library, pairs, root).items():
            yield Candidate(ReadResult(f"{library.title}, {setting}", library.goal), passes)
    except Exception as error:  # noqa: BLE001 - other libraries raise what they like
        trouble = f"{type(error).__name__}: {error}"
        print(f"{library.title}: {trouble}", file=sys.stderr)
        yield Candidate(ReadResult(library.title, library.goal, trouble), tuple)


def prepare(library: Library, pairs: Pairs, root: Path) -> None:
    """Let a library write the pairs, unless an earlier run did."""
    out = folder_of(library, pairs, root)
    done = out.with_suffix(".done")
    if not done.is_file():
        discard(out)
        import_module(f"bench.libraries.{library.module}").write(pairs, out)
        done.touch()


def loaders(library: Library, pairs: Pairs, root: Path) -> Loaders:
    out = folder_of(library, pairs, root)
    found: Loaders = import_module(f"bench.libraries.{library.module}").loaders(out)
    return found


def folder_of(library: Library, pairs: Pairs, root: Path) -> Path:
    return root / f"{library.module}_{len(pairs)}"


def discard(out: Path) -> None:
    """Delete the files of a library, and the mark that they are complete."""
    out.with_suffix(".done").unlink(missing_ok=True)
    if out.is_dir() and not out.is_symlink():
        shutil.rmtree(out)
    else:
        out.unlink(missing_ok=True)
