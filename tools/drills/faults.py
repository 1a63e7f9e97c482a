"""Put faults into the product at random places, one at a time, and see which tests find each.

    tools/run drills.faults --data FOLDER [--count 30] [--seed 1]

A fault is a comparison turned round, a condition negated, a number that is one more, `and` for `or`, plus for minus, or
a call that is left out. Its line is one that a test reaches, each as likely as the others. `--data` is what
`checks.short_cases --data` left. Only tests that reach the line run, the quick ones first, in a copy of the checkout:
those of `make test`, then those that it leaves out, until one fails. More than two minutes are a failure, too. The
drill prints each fault, who found it, and the sums. What no test finds may change nothing.
"""

from __future__ import annotations

import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

from checks.short_cases import FILE
from program import REPO, parser
from reach import Line, Reach

LONGEST = 120
COPIED = ("packer", "readers", "tests", "tools", "data_samples", "docs", "setup.cfg", "README.md", "CHANGELOG.md")
MOST = 400
"""Tests that run at once: a command line has a limit."""
TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclass(frozen=True)
class Fault:
    """A changed file of the product, and what was changed."""

    file: str
    line: int
    what: str
    text: str


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    options.add_argument("--count", type=int, default=30)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    reach, kept = Reach.load(chosen.data), json.loads(FILE.read_text())
    dice = random.Random(chosen.seed)
    lines = sorted(line for line in reach.of(reach.seconds) if line[0].endswith(".py"))
    found = {"make test": 0, "other cases": 0, "none": 0}
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        for name in COPIED:
            (shutil.copytree if (REPO / name).is_dir() else shutil.copy)(REPO / name, root / name)
        while sum(found.values()) < chosen.count:
            fault = fault_at(dice.choice(lines), dice)
            if fault is not None:
                who = finder(root, fault, reach, kept)
                found[who] += 1
                print(f"{who:12} {fault.file}:{fault.line} {fault.what}", flush=True)
    print(", ".join(f"{who}: {count}" for who, count in found.items()))


def fault_at(line: Line, dice: random.Random) -> Fault | None:
    """Return one of the faults that a line can have; None if there is none."""
    file, number = line
    tree = ast.parse((REPO / file).read_text(encoding="utf-8"))
    count = sum(1 for node in ast.walk(tree) if getattr(node, "lineno", 0) == number)
    changes = [change for index in range(count) for change in _changed(tree, number, index)]
    if not changes:
        return None
    what, changed = dice.choice(changes)
    return Fault(file, number, what, ast.unparse(ast.fix_missing_locations(changed)) + "\n")


def _changed(tree: ast.Module, line: int, index: int) -> Iterator[tuple[str, ast.Module]]:
    """Yield the faults of one node of a line, each in a tree of its own."""
    copy = deepcopy(tree)
    node = [node for node in ast.walk(copy) if getattr(node, "lineno", 0) == line][index]
    before = ast.unparse(node).partition("\n")[0]
    if isinstance(node, ast.Compare) and type(node.ops[0]) in TURNED:
        node.ops[0] = TURNED[type(node.ops[0])]()
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        node.op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        node.value += 1
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        node.value = ast.Constant(None)
    else:
        return
    yield f"{before[:60]} -> {ast.unparse(node).partition(chr(10))[0][:60]}", copy


def finder(root: Path, fault: Fault, reach: Reach, kept: dict[str, dict[str, list[str]]]) -> str:
    """Return who finds a fault."""
    reaching = sorted(
        (name for name, lines in reach.lines.items() if (fault.file, fault.line) in lines),
        key=reach.seconds.__getitem__,
    )
    short = [name for name in reaching if _is_short(name, kept)]
    (root / fault.file).write_text(fault.text, encoding="utf-8")
    try:
        if _fails(root, short):
            return "make test"
        return "other cases" if _fails(root, [name for name in reaching if name not in short]) else "none"
    finally:
        shutil.copy(REPO / fault.file, root / fault.file)


def _is_short(name: str, kept: dict[str, dict[str, list[str]]]) -> bool:
    function, _, case = name.removeprefix("tests/").partition("[")
    file, _, test = function.partition("::")
    cases = kept.get(file, {}).get(test)
    return cases is None or case.removesuffix("]") in cases


def _fails(root: Path, names: Sequence[str]) -> bool:
    """Return whether one of these tests fails in the copy."""
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    for first in range(0, len(names), MOST):
        command = [sys.executable, "-m", "pytest", "-q", "-x", "--all-cases", "-p", "no:cacheprovider"]
        try:
            done = subprocess.run(
                [*command, *names[first : first + MOST]],
                cwd=root,
                env=environment,
                timeout=LONGEST,
                check=False,
                capture_output=True,
            )
        except subprocess.TimeoutExpired:
            return True
        if done.returncode not in (0, 5):
            return True
    return False
