"""Choose the cases that `make test` runs, and write them to tests/short_cases.json.

    tools/run checks.short_cases [--data FOLDER]

All tests that are not marked long run with coverage once, some 30 minutes. `--data` keeps the result, or takes that of
an earlier run. A test function whose cases take less than 0.3 seconds together runs whole. Of another one its
shortest case runs, if it takes less than a second. Then cases are added that reach new lines of the product, at
least five a second. The file names the cases of the functions that do not run whole. `pytest --all-cases` and `--long`
ignore it. A function that is not in the file runs whole, so new tests run.
"""

from __future__ import annotations

import heapq
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from program import REPO, parser
from reach import TIMES, Reach, measure

FILE = REPO / "tests" / "short_cases.json"
WHOLE, SHORTEST = 0.3, 1.0
"""Seconds up to which all cases of a function run together, and its shortest case alone."""
LEAST = 5.0
"""New lines that a case must reach a second."""
START = 0.02
"""Seconds that are added to each case, so that many cases that each reach one line are not free."""


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--data", type=Path, metavar="FOLDER", help="what a run with coverage left, or is to leave")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.data or Path(temporary)
        if not (folder / TIMES).exists():
            measure(folder)
        reach = Reach.load(folder)
    runs = choose(reach)
    FILE.write_text(text_of(kept_cases(reach.seconds, runs)))
    seconds, every = sum(map(reach.seconds.__getitem__, runs)), sum(reach.seconds.values())
    print(f"{len(runs)} of {len(reach.seconds)} tests, {seconds:.0f} of {every:.0f} seconds", end="; ")
    print(f"{len(reach.of(reach.seconds) - reach.of(runs))} lines are reached by other tests only")


def choose(reach: Reach) -> set[str]:
    """Return the names of the tests that run."""
    runs: set[str] = set()
    for names in functions_of(reach.seconds).values():
        shortest = min(names, key=reach.seconds.__getitem__)
        if sum(map(reach.seconds.__getitem__, names)) < WHOLE:
            runs.update(names)
        elif reach.seconds[shortest] < SHORTEST:
            runs.add(shortest)
    reached = reach.of(runs)
    waiting = [(-float("inf"), name) for name in reach.seconds if name not in runs]
    heapq.heapify(waiting)
    while waiting:  # the case with the most new lines a second is first; lines only become fewer
        _, name = heapq.heappop(waiting)
        gain = len(reach.lines[name] - reached) / (reach.seconds[name] + START)
        if gain < LEAST:
            continue
        if not waiting or -gain <= waiting[0][0]:
            runs.add(name)
            reached |= reach.lines[name]
        else:
            heapq.heappush(waiting, (-gain, name))
    return runs


def kept_cases(names: Iterable[str], runs: set[str]) -> dict[str, dict[str, list[str]]]:
    """Return the cases that run, by file and function, of each function of which not all run."""
    kept: defaultdict[str, dict[str, list[str]]] = defaultdict(dict)
    for function, cases in sorted(functions_of(names).items()):
        if not runs.issuperset(cases):
            file, _, name = function.removeprefix("tests/").partition("::")
            kept[file][name] = [case.partition("[")[2].removesuffix("]") for case in cases if case in runs]
    return dict(kept)


def text_of(kept: dict[str, dict[str, list[str]]]) -> str:
    """Return JSON with a line for each function."""
    files = []
    for file, functions in kept.items():
        lines = (f"  {json.dumps(name)}: {json.dumps(cases)}" for name, cases in functions.items())
        files.append(f" {json.dumps(file)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(files) + "\n}\n"


def functions_of(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the cases of each test function."""
    functions: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        functions[name.partition("[")[0]].append(name)
    return functions
